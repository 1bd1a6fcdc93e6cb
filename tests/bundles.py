"""Made-up runs of the bundle methods."""

import numpy as np
from traces import make_trace

N = 60000
REACHED = {"stop_reason": "converged"}


def run_of(solver, lam_n, *, P=1, seed=0, primal=(2.0, 1.5, 1.25), source="real", **more):
    """Return a run, on MNIST by default, with F = 1 at its end; the report's λ is lam_n."""
    name = more.get("dataset", "mnist")
    pixels, epsilon = more.get("pixels", "unit"), more.get("epsilon", 0.01)
    seconds, iterations = more.get("seconds", 10.0), more.get("iterations", 100)
    rows = len(primal)
    time = 2 * seconds * np.arange(rows) / (rows - 1)
    trace = make_trace(
        primal,
        [k / (rows - 1) for k in range(rows)],
        iteration=[round(k * iterations / (rows - 1)) for k in range(rows)],
        time=time,
        solver=solver,
        seed=seed,
        source=source,
        lam=lam_n / N,
        options={"P": P, "epsilon": epsilon, **more.get("options", {})},
        columns={"cpu_time": time / 2, "qp_time": more.get("qp", 0.25) * time},
        dataset={"name": name, "n": N, "fingerprint": f"{source}-{pixels}"},
        config={"dataset": {"name": name, "pixels": pixels}},
    )
    trace.end.update(REACHED if more.get("reached", True) else {})
    trace.end["primal_rises"] = more.get("rises")
    trace.end.update({f"{name}_loss": more.get(name) for name in ("validation", "test")})
    return trace


def above(height):
    """Return a primal that is above its least value by a share of it, in the geometric mean."""
    return (0.5, 1.0, (1.0 + height) ** 2)  # the first is not counted


def statement_runs(**changes):
    """Return runs by which every statement holds, with changes: name → options."""
    high, low = {"primal": above(0.4)}, {"primal": above(0.1)}
    runs = {
        "plain_10": ("bmrm", 10, {"iterations": 100, "seconds": 10, "rises": 0.4, **high}),
        "plain_1": ("bmrm", 1, {"iterations": 500, "seconds": 60, "rises": 0.5, **high}),
        "prox_10": ("prox_bmrm", 10, {"iterations": 110, "seconds": 11, "rises": 0.1, **low}),
        "prox_1": ("prox_bmrm", 1, {"iterations": 150, "seconds": 15, "rises": 0.2, **low}),
        "both_10": ("prox_p_bmrm", 10, {"P": 16, "iterations": 90, "seconds": 12}),
        "both_1": ("prox_p_bmrm", 1, {"P": 16, "iterations": 90, "seconds": 12}),
        "two_10": ("p_bmrm", 10, {"P": 2, "iterations": 90}),
        "two_1": ("p_bmrm", 1, {"P": 2, "iterations": 400}),
        "four_1": ("p_bmrm", 1, {"P": 4, "iterations": 300}),
    }
    return [
        run_of(solver, lam_n, **{**options, **(changes.get(name) or {})})
        for name, (solver, lam_n, options) in runs.items()
        if changes.get(name, {}) is not None
    ]
