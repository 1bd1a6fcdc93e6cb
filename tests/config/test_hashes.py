"""The hash of every run that a stored trace is of: as long as it stays, finished runs are found.

A hash changes with the ``kind``, with options that differ from their defaults, and with the
``CODE_VERSION`` of a component. What fails here has cost somebody all his runs.
"""

import functools
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from program import of_a_checkout

from ssvm_bench.config import catalog, registry, validation
from ssvm_bench.config.schema import RunConfig

pytestmark = of_a_checkout
TRACES = Path(__file__).parents[2] / "results" / "traces"
EXPERIMENTS = sorted(path.name for path in TRACES.glob("*"))


@functools.cache
def stored(experiment):
    """Return what is told of the runs of an experiment."""
    tables = (pq.read_table(path, columns=["run"]) for path in (TRACES / experiment).iterdir())
    return [json.loads(run) for table in tables for run in table["run"].unique().to_pylist()]


def rebuilt(options):
    """Return the run config that these options are of today."""
    values = dict(options)
    for group in catalog.COMPONENTS:
        values[group] = registry.config(group, options[group])
    return validation.build(RunConfig, values)


def within(stored, now):
    """Tell whether all that was stored is there, as it was."""
    if isinstance(stored, dict) and isinstance(now, dict):
        return all(key in now and within(stored[key], now[key]) for key in stored)
    return stored == now


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_stored_runs_keep_their_hashes_and_folders(experiment):
    assert stored(experiment)
    for run in stored(experiment):
        config = rebuilt(run["metadata"]["config"])
        assert config.own_hash() == run["metadata"]["hash"]
        # in its own folder where a run of another budget went further
        assert run["folder"] in ["/".join(folder.parts[-4:]) for folder in config.folders]
        # and nothing that was stored has got lost on the way; options may have been added
        assert within(run["metadata"]["config"], config.resolved())


def test_every_stored_run_is_looked_at():
    runs = [run for experiment in EXPERIMENTS for run in stored(experiment)]
    kinds = {run["metadata"]["config"]["solver"]["kind"] for run in runs}
    assert len(runs) >= 2000
    of_papers = {"mpbcfw", "mpbcfw_beyond", "n_slack", "one_slack", "bmrm"}
    assert kinds >= of_papers | {"fw", "ssg", "eg"}
