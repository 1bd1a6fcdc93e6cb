"""The hash of every run that a stored trace is of: as long as it stays, finished runs are found.

A hash changes with the ``kind``, with options that differ from their defaults, and with the
``CODE_VERSION`` of a component. What fails here has cost somebody all his runs.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ssvm_bench.config import catalog, registry, validation
from ssvm_bench.config.schema import RunConfig

TRACES = Path(__file__).parents[1] / "results" / "traces"
EXPERIMENTS = sorted(path.name for path in TRACES.iterdir())


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
    runs = 0
    for path in sorted((TRACES / experiment).glob("*.parquet")):
        for text in pq.read_table(path, columns=["run"])["run"].unique().to_pylist():
            run = json.loads(text)
            config = rebuilt(run["metadata"]["config"])
            assert config.own_hash() == run["metadata"]["hash"]
            assert "/".join(config.folder.parts[-4:]) == run["folder"]
            # and nothing that was stored has got lost on the way; options may have been added
            assert within(run["metadata"]["config"], config.resolved())
            runs += 1
    assert runs


def test_every_stored_run_is_looked_at():
    kinds, runs = set(), 0
    for path in sorted(TRACES.rglob("*.parquet")):
        for text in pq.read_table(path, columns=["run"])["run"].unique().to_pylist():
            kinds.add(json.loads(text)["metadata"]["config"]["solver"]["kind"])
            runs += 1
    assert runs >= 2000
    of_papers = {"mpbcfw", "mpbcfw_beyond", "n_slack", "one_slack", "bmrm"}
    assert kinds >= of_papers | {"fw", "ssg", "eg"}
