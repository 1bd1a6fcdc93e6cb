"""The claims of the transduction paper on hand-made traces, its table and its figure."""

from dataclasses import replace

import numpy as np
import pytest
from traces import make_trace

from ssvm_bench.claims import judging
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.papers.transduction import figures, tables
from ssvm_bench.papers.transduction.datasets import moons
from ssvm_bench.papers.transduction.paper import BASELINES, LEAST, MOST, PAPER
from ssvm_bench.papers.transduction.printed import MOONS
from ssvm_bench.results.trace import write_run

OURS = "dcadmm"


def trace(solver, draw, wrong, fingerprint=None, **options):
    """Return a run on a draw of the moons that ends with this share of wrong labels."""
    run = make_trace(
        [600.0, 9.0],
        [np.nan, np.nan],
        solver=solver,
        source="drawn",
        lam=0.1,
        dataset={
            "name": "moons",
            "source": "drawn",
            "n": 600,
            "d": 2400,
            "fingerprint": fingerprint or f"moons-{draw}",
        },
        objective="crammer_singer, rbf",
    )
    run.metadata["config"]["dataset"] = {"name": "moons", "kind": "moons", "draw": draw, **options}
    run.frame["accuracy"] = [0.25, 1.0 - wrong]
    return run


def runs(**wrong):
    """Return runs with these shares of wrong labels, draw by draw."""
    of = {OURS: [0.02] * 3, **dict.fromkeys(BASELINES, [0.6] * 3), **wrong}
    return [trace(solver, k, share) for solver in of for k, share in enumerate(of[solver])]


def judged(traces):
    """Return the rows on datasets that there are runs of."""
    rows = judging.evaluate(PAPER, traces, {})
    return {row.key: row for row in rows if row.note != judging.NO_RUNS}


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("recovers", {OURS: [MOST / 2, MOST * 1.1, MOST * 1.2]}),
        *(
            (f"stuck_{baseline}", {baseline: [0.6, LEAST / 2, LEAST * 0.9]})
            for baseline in BASELINES
        ),
    ],
)
def test_a_claim_holds_by_its_median_over_draws(key, bad):
    good, worse = judged(runs()), judged(runs(**bad))
    assert {row.verdict for row in good.values()} == {judging.HOLDS}
    assert {name for name, row in worse.items() if row.verdict == judging.FAILS} == {key}
    assert (good[key].repeats, worse[key].agree) == (3, 1)


def test_draws_are_repeats_and_other_options_of_the_data_are_not():
    traces = [*runs(), *(trace(OURS, k, 0.5, f"few-{k}", cliques=5) for k in range(2))]
    rows = judging.evaluate(PAPER, traces, {})
    found = {(row.repeats, row.verdict) for row in rows if row.key == "recovers"}
    assert found == {(3, judging.HOLDS), (2, judging.FAILS)}


def test_without_accuracy_nothing_is_measured():
    traces = runs()
    for run in traces:
        del run.frame["accuracy"]
    assert {row.verdict for row in judged(traces).values()} == {judging.UNKNOWN}


def test_the_table_has_all_draws_beside_what_is_printed():
    table = tables.errors([*runs(**{OURS: [0.0, 0.03, 0.06]}), make_trace([1.0], [0.5])])
    rows = table.set_index("solver")
    assert len(rows) == 3
    assert rows.loc[OURS, ["draws", "mean", "median", "max"]].tolist() == pytest.approx(
        [3, 0.03, 0.03, 0.06]
    )
    assert rows.loc[OURS, "deviation"] == pytest.approx(np.std([0.0, 0.03, 0.06]))
    assert rows.loc["kernel_kmeans", "printed"] == MOONS["kernel_kmeans"]
    (table,) = tables.error_tables(table)
    assert "3 % ± 2.45 %" in table.rows[0]


def test_labels_are_drawn_of_the_first_draw_where_the_runs_are(tmp_path):
    data = moons.load(moons.Config(name="moons", kind="moons", draw=3))
    here = trace(OURS, 3, 0.0, data.fingerprint)
    here = replace(here, folder=tmp_path / "run")
    away = trace("kernel_kmeans", 3, 0.6, data.fingerprint)
    chosen = [here, away, trace(OURS, 4, 0.1)]
    assert not list(figures.KINDS[1].files(FigureData(chosen, {}), ["labels"]))
    rows = here.frame.to_dict("records")
    summary = {**rows[-1], "stop_reason": "converged", "solver": OURS, "wall_time": 1.0}
    arrays = {"w": np.zeros(2), "y": data.y}
    write_run(here.folder, rows, here.metadata, {}, summary, arrays)
    (output,) = figures.KINDS[1].files(FigureData(chosen, {}, "moons"), ["labels"])
    assert output.name == "labels_moons"
    assert list(output.table) == ["x", "y", "truth", OURS]
    assert len(output.figure().axes) == 2


def test_convergence_is_that_of_the_first_draw():
    traces = runs()
    for k, run in enumerate(traces):
        columns = figures.QUANTITIES.values()
        run.frame[[*columns]] = [[8.0, 4.0, 600.0], [4.0 + k, 0.5, 0.0]]
    (output,) = figures.KINDS[1].outputs(FigureData(traces, {}, "moons"), ["convergence"])
    last = output.table[output.table["x"] == 1].set_index("quantity")["median"]
    assert set(output.table["solver"]) == {OURS}
    assert last["augmented Lagrangian"] == 4.0
    assert last["residual"] == 0.5
    assert np.isnan(last["label changes"])  # nothing is drawn where no label changes


def test_conjugate_gradients_are_a_small_number_by_their_mean():
    run = make_trace([3.0, 2.0, 1.0], [0.0] * 3, iteration=[0, 10, 20])
    run.frame["cg_iterations"] = [0.0, 100.0, 420.0]
    run.frame["accuracy"], run.frame["cpu_time"] = 0.5, 1.0
    run.metadata["config"]["oracle"] = {"precision": None}
    run.metadata["dataset"] |= {"n": 50, "d": 14}
    table = tables.solves([run, make_trace([1.0], [0.5])])
    (row,) = table.to_dict("records")
    assert (row["unknowns"], row["precision"], row["solutions"]) == (14, 1e-11, 20)
    assert (row["mean"], row["most"]) == (21.0, 32.0)
    assert tables.SOLVE_CELLS["a small number"](row) == "does not hold"
    assert tables.SOLVE_CELLS["a small number"]({**row, "mean": 20.0}) == "holds"
