"""What SGD-QN would change as the start of Prox-BMRM, on the digits of the bundle-method report.

    python docs/sgd_qn.py

The report starts from ten passes of a "variant" of SGD, after Bordes, Bottou and Gallinari (2009);
`solver.init=sgd` is plain SGD. Both draw the same permutations, seed 0, and take the steps

    w ← w − B/(t + t₀) (λ w + n φ̂⋆)        B = 1/λ: plain SGD with t₀ = 1

In SGD-QN, B is diagonal. Every 16th step, B⁻¹_kk moves by 2/r towards the ratio of the changes of
subgradient and of w, clipped to [λ, 100 λ] (the erratum of 2010), r = 2, 3, …; λ w is added every
16th step. Its t₀ is the best one of a few, in hindsight. The table has how far the best primal of
ten passes is above the best dual value known, and the passes that Prox-BMRM then takes to ε = 0.01.
"""

import json
from pathlib import Path

import numba
import numpy as np
from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs import components
from ssvm_bench.solvers.orders import Orders

OPTIMA = Path(__file__).parents[1] / "results" / "reference" / "optima.json"
LAMS, OFFSETS, SKIP, PASSES = (1000, 100, 10, 1), (1, 60000, 600000), 16, 10
MOST = 400
"""Passes of Prox-BMRM, where its own are few enough to wait for."""


@numba.njit(cache=True)
def steps(x, y, w, inverse, order, lam, t, offset, second):
    """Do the steps of a pass, in place; w and B⁻¹ have a row a class; return r."""
    r = 2.0 + t / SKIP
    for k, i in enumerate(order):
        scores = w @ x[i] + 1.0
        scores[y[i]] -= 1.0
        found = scores.argmax()
        rate = 1.0 / (t + k + offset)
        if not second:
            w *= 1.0 - rate
            if found != y[i]:
                w[found] -= rate / lam * x[i]
                w[y[i]] += rate / lam * x[i]
            continue
        due = (t + k + 1) % SKIP == 0
        before = w.copy() if due else w
        if found != y[i]:
            w[found] -= rate / inverse[found] * x[i]
            w[y[i]] += rate / inverse[y[i]] * x[i]
        if not due:
            continue
        scores = w @ x[i] + 1.0
        scores[y[i]] -= 1.0
        now = scores.argmax()
        for c in range(w.shape[0]):
            sign = (1.0 if c == now else 0.0) - (1.0 if c == found else 0.0)
            for f in range(w.shape[1]):
                moved = w[c, f] - before[c, f]
                if moved != 0.0:
                    ratio = lam + sign * x[i, f] / moved
                    inverse[c, f] += 2.0 / r * (min(max(ratio, lam), 100 * lam) - inverse[c, f])
        r += 1.0
        w -= SKIP * rate * lam / inverse * w
    return r


def best_of_ten(x, y, lam, offset, second):
    """Return the lowest primal value after a pass, and its w."""
    w, inverse = np.zeros((10, x.shape[1])), np.full((10, x.shape[1]), lam)
    orders, best = Orders(len(y), "permutation", 0), (np.inf, w)
    for k in range(PASSES):
        steps(x, y, w, inverse, next(orders), lam, k * len(y), offset, second)
        scores = x @ w.T
        truth = scores[np.arange(len(y)), y].copy()
        scores += 1.0
        scores[np.arange(len(y)), y] -= 1.0
        primal = lam / 2 * (w * w).sum() + (scores.max(axis=1) - truth).mean()
        if primal < best[0]:
            best = primal, w.copy()
    return best


def passes_after(config, problem, w):
    """Return the passes that Prox-BMRM takes from w₁ = w; None if over `MOST`."""
    made = components.build_solver(config, problem, Clock("work"))
    made._pretrains = False
    made._begin(w.ravel())
    passes = 0
    while not made.converged and passes < MOST:
        made.iterate()
        passes += 1
    return passes if made.converged else None


def table():
    """Yield the rows of the table."""
    (config,) = compose_runs(["solver=prox_bmrm", "dataset=mnist", "dataset.source=real"])
    data = components.load_dataset(config.dataset)
    oracle = components.oracle_of(config.oracle, data)
    x, y = data.x.toarray().astype(np.float64), data.y.astype(np.int64)
    optima = json.loads(OPTIMA.read_text())
    for K in LAMS:
        lam = K / len(y)
        problem = components.problem_of(oracle, lam, None)
        mine = [e for e in optima["instances"] if e["fingerprint"] == data.fingerprint]
        known = max(e["best_dual"]["value"] for e in mine if abs(e["lam"] / lam - 1) < 1e-9)
        for second in (False, True):
            found = {t: best_of_ten(x, y, lam, t, second) for t in OFFSETS[: 1 + 2 * second]}
            offset = min(found, key=lambda t: found[t][0])
            primal, w = found[offset]
            yield {
                "lam_n": K,
                "start": "SGD-QN" if second else "SGD",
                "offset": offset,
                "above": primal / known - 1,
                "passes": passes_after(config, problem, w),
            }


if __name__ == "__main__":
    keep("sgd_qn/sgd_qn", table())
