"""The best values ever seen: from which runs they come, and that they only get better."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from traces import make_trace

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results import optima
from ssvm_bench.results.folder import SkippedFiles
from ssvm_bench.results.table import ProblemInstance
from ssvm_bench.results.trace import write_run

REAL, STAND_IN = ProblemInstance("f-real", 0.5), ProblemInstance("f-synthetic", 0.5)


def stored(results_dir):
    return json.loads((results_dir / optima.FILE).read_text())["instances"]


def seen(primal, dual, *, seed=0, kind="viterbi", **changes):
    """Return a run with rows of the given values and the summary that goes with them."""
    config = {"oracle": {"name": kind, "kind": kind}}
    run = make_trace(primal, dual, seed=seed, git="c0ffee", config=config, **changes)
    finite = [value for value in dual if not math.isnan(value)]
    best = {"best_primal": min(primal), "best_dual": max(finite, default=None)}
    return replace(run, end={**run.end, **best})


def store(run, results):
    """Write a run to its place below a results folder."""
    write_run(results / run.folder, run.frame, run.metadata, {}, run.end, np.zeros(1))
    return results / run.folder


def test_the_file_names_the_run_that_saw_each_value(tmp_path):
    runs = [seen([4.0, 2.0, 3.0], [0.0, 0.5, 0.25]), seen([2.5, 2.5], [0.0, 1.0], seed=1)]
    assert optima.reference(runs, tmp_path) == {REAL: (2.0, 1.0)}
    assert (tmp_path / optima.FILE).read_text().endswith("}\n")
    (instance,) = stored(tmp_path)
    assert [instance[key] for key in ("dataset", "source", "n", "lam")] == ["toy", "real", 2, 0.5]
    expected = {"value": 2.0, "iteration": 1, "solver": "bcfw", "config": "hash", "seed": 0}
    expected |= {"oracle": "viterbi", "exact": True, "commit": "c0ffee"}
    assert instance["best_primal"] == expected
    assert (instance["best_dual"]["seed"], instance["best_dual"]["iteration"]) == (1, 1)


def test_values_only_get_better_and_outlive_their_runs(tmp_path):
    optima.reference([seen([2.0], [1.0])], tmp_path)
    before = stored(tmp_path)
    assert optima.reference([seen([3.0], [0.5], seed=1)], tmp_path) == {REAL: (2.0, 1.0)}
    assert optima.reference([seen([2.0], [1.0], seed=2)], tmp_path) == {REAL: (2.0, 1.0)}
    assert stored(tmp_path) == before
    assert optima.reference([seen([1.5], [0.5], seed=3)], tmp_path) == {REAL: (1.5, 1.0)}


def test_problem_instances_are_kept_apart_and_in_order(tmp_path):
    runs = [seen([0.1], [0.1], source="synthetic"), seen([2.0], [1.0]), seen([9.0], [8.0], lam=0.1)]
    best = optima.reference(runs, tmp_path)
    assert best[REAL] == (2.0, 1.0)
    assert best[STAND_IN] == (0.1, 0.1)
    assert best[ProblemInstance("f-real", 0.1)] == (9.0, 8.0)
    content = (tmp_path / optima.FILE).read_bytes()
    (tmp_path / optima.FILE).unlink()
    optima.reference(runs[::-1], tmp_path)
    assert (tmp_path / optima.FILE).read_bytes() == content


def test_other_finished_runs_count_and_damaged_ones_are_passed_over(tmp_path):
    store(seen([2.0, 1.5], [0.0, 1.0], seed=1), tmp_path)
    damaged = store(seen([1.0], [1.0], seed=2), tmp_path)
    (damaged / "trace.parquet").write_bytes(b"")
    skipped = SkippedFiles()
    best = optima.reference([seen([3.0], [0.5])], tmp_path, skipped)
    assert best == {REAL: (1.5, 1.0)}
    assert len(skipped.problems) == 1
    assert str(damaged) in skipped.problems[0]
    assert stored(tmp_path)[0]["best_primal"]["iteration"] == 1


def test_a_solver_without_a_dual_leaves_it_open(tmp_path):
    best = optima.reference([seen([3.0], [math.nan])], tmp_path)[REAL]
    assert best.primal == 3.0
    assert math.isnan(best.dual)
    assert stored(tmp_path)[0]["best_dual"] is None


def test_a_primal_of_an_inexact_oracle_is_marked_and_makes_way(tmp_path):
    inexact = seen([1.0], [0.5], kind="alpha_expansion")
    assert optima.reference([inexact], tmp_path) == {REAL: (1.0, 0.5)}
    assert stored(tmp_path)[0]["best_primal"]["exact"] is False
    assert optima.reference([seen([2.0], [0.4], seed=1)], tmp_path) == {REAL: (2.0, 0.5)}
    assert optima.reference([inexact], tmp_path) == {REAL: (2.0, 0.5)}
    unknown = seen([1.9], [0.5], kind="of_a_package_that_is_gone")
    assert optima.reference([unknown], tmp_path) == {REAL: (2.0, 0.5)}


def test_many_at_once_lose_nothing(tmp_path):
    runs = [seen([5.0 - k], [0.1 * k], lam=0.5 + k % 2, seed=k) for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda run: optima.reference([run], tmp_path), runs))
    values = {ProblemInstance(e["fingerprint"], e["lam"]): e for e in stored(tmp_path)}
    assert values[REAL]["best_primal"]["value"] == -1.0
    assert values[ProblemInstance("f-real", 1.5)]["best_dual"]["value"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"format": 7, "instances": []}', '{"format": 1}'),
        '{"format": 1, "instances": [{"dataset": "toy"}]}',
        '{"format": 1, "instances": [{"best_primal": null, "best_dual": null}]}',
    ],
)
def test_a_damaged_file_is_one_message_and_is_left_alone(tmp_path, text):
    path = tmp_path / optima.FILE
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(RunFailedError, match="Restore the file") as error:
        optima.reference([seen([2.0], [1.0])], tmp_path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailedError, match="results_dir"):
        optima.reference([seen([2.0], [1.0])], tmp_path / "file")
