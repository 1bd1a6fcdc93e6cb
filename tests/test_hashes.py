"""The hash of every run that a stored trace is of: as long as it stays, finished runs are found.

A hash changes with the ``kind``, the options, their neutral values and the ``CODE_VERSION`` of a
component. What fails here has cost somebody all his runs: give a new option a neutral value
(``NEUTRAL`` of its ``Config``), and keep the kind of a module that is renamed.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ssvm_bench.config import catalog, registry, typed, yaml_files
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.solvers.block import mpbcfw, mpbcfw_beyond

TRACES = Path(__file__).parents[1] / "results" / "traces"
EXPERIMENTS = sorted(path.name for path in TRACES.iterdir())


def stored(experiment):
    """Return the options of each of its runs by solver, hash and seed, read from one column."""
    runs = {}
    for path in sorted((TRACES / experiment).glob("*.parquet")):
        for text in pq.read_table(path, columns=["run"])["run"].unique().to_pylist():
            run = json.loads(text)
            _, solver, digest, seed = run["folder"].split("/")
            digest = run["metadata"].get("hash", digest)
            runs[solver, digest, seed] = run["metadata"]["config"]
    return runs


def columns(experiment):
    """Return the columns of its traces."""
    return {
        name
        for path in (TRACES / experiment).glob("*.parquet")
        for name in pq.read_schema(path).names
    }


def rebuilt(options, experiment):
    """Return the run config that these options are of today."""
    values = {**RunConfig.NEUTRAL, **options}
    for group in catalog.COMPONENTS:
        config = registry.module(group, options[group]["kind"]).Config
        values[group] = typed.build(config, options[group], group)
    return typed.build(RunConfig, values)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_stored_runs_keep_their_hashes_and_folders(experiment, monkeypatch):
    # made when the dual of averages was their own alone: today's runs have another hash
    if "dual_of_average" not in columns(experiment):
        for module in (mpbcfw, mpbcfw_beyond):
            monkeypatch.setattr(module.Config, "revision", "")
    runs = stored(experiment)
    assert runs
    for (solver, digest, seed), options in runs.items():
        config = rebuilt(options, experiment)
        own = config.solver.name, config.own_hash(), f"seed={config.seed}"
        assert own == (solver, digest, seed)
        assert config.own_folder.parts[-3:] == (solver, digest, seed)
        assert config.own_folder in config.folders
        # and nothing that was stored has got lost on the way
        assert config.resolved() == options


def test_the_dual_of_averages_is_in_the_hash_of_those_alone(monkeypatch):
    before, after = {}, {}
    options = ("dataset.source=real",)
    names = ("fw", "bcfw", "bcfw_avg", "mpbcfw_fast", "ssg_weighted")
    overrides = {name: [f"solver={name}", *options] for name in names}
    overrides["average"] = ["solver=mpbcfw_fast", "solver.average=true", *options]
    for name, chosen in overrides.items():
        (config,) = compose_runs(chosen)
        after[name] = config.hash()
    for module in (mpbcfw, mpbcfw_beyond):
        monkeypatch.setattr(module.Config, "revision", "")
    for name, chosen in overrides.items():
        (config,) = compose_runs(chosen)
        before[name] = config.hash()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"bcfw_avg", "average"}


@pytest.mark.parametrize("group", catalog.COMPONENTS)
def test_neutral_values_are_those_of_the_base_classes_too(group):
    for file in catalog.entries(group).values():
        config = registry.module(group, yaml_files.read(file)["kind"]).Config
        for base in config.__mro__:
            assert getattr(base, "NEUTRAL", {}).items() <= config.NEUTRAL.items()


def test_every_stored_run_is_looked_at():
    found = {key[:2] for experiment in EXPERIMENTS for key in stored(experiment)}
    kinds = {
        options["solver"]["kind"]
        for experiment in EXPERIMENTS
        for options in stored(experiment).values()
    }
    assert len(found) >= 200
    assert kinds >= {"fw", "block", "cached", "ssg", "eg", "cutting_plane", "one_slack", "bundle"}
