"""The contract of oracles (:mod:`ssvm_bench.oracles.base`), checked against its definitions.

The labelings to compare with are the ground truth, those that the oracle itself returns at other
weights and, where each part may have any label, random ones.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.random import approx_normal
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.oracles.labeling import PartsOracle
from ssvm_bench.runs.contracts import Findings, expect
from ssvm_bench.solvers.block.mpbcfw import Config as BlockConfig
from ssvm_bench.solvers.block.mpbcfw import build as build_block

SCALES = (0.0, 0.1, 1.0, 30.0)
ROUNDING = 1e-9
_EXAMPLES, _RANDOM, _PASSES = 6, 12, 12


def check(oracle: Oracle, findings: Findings) -> None:
    """Check an oracle of a few examples."""
    Check(oracle, findings).all()


class Check:
    """The checks of one oracle.

    Attributes
    ----------
    weights : list of ndarray
        The w at which the oracle is called.
    labelings : list of list of ndarray
        Some labelings of each example, the ground truth first.
    """

    def __init__(self, oracle: Oracle, findings: Findings) -> None:
        self.oracle, self.findings = oracle, findings
        self.bits = np.random.PCG64(11)
        self.some = range(min(oracle.n, _EXAMPLES))
        self.weights = [scale * approx_normal((oracle.d,), self.bits) for scale in SCALES]
        for w in self.weights:
            w[oracle.d - oracle.nonnegative :] = np.abs(w[oracle.d - oracle.nonnegative :])
        self.labelings: list[list[np.ndarray]] = []

    def all(self) -> None:
        """Check all claims, or only the first one if it yields no labelings."""
        with self.findings.claim("argmax and predict return labelings"):
            self.labelings = [self._some_labelings(i) for i in self.some]
        if not self.labelings:
            return
        for text, check in (
            ("the loss of the ground truth is 0, and no loss is negative", self._losses),
            ("planes are φ = [ϕ(y) − ϕ(y_i); Δ + Θ(y) − Θ(y_i)]/n", self._planes),
            ("H_i(w) ≥ 0, and best_plane has its value", self._values),
            ("risk is the sum of the best planes", self._risk),
            ("the same call has the same answer, whatever is asked between", self._determinism),
            ("radius bounds ‖ϕ(y) − ϕ(y_i)‖", self._radius),
            ("dual ≤ primal while bcfw trains with it", self._duality),
        ):
            self.findings.check(text, check)
        text = "argmax and predict are no worse than the truth and other labelings"
        unless = "" if self.oracle.exact else "the oracle says that it is not exact"
        self.findings.check(text, self._maximisers, unless)
        if self.oracle.exact:
            self._ties()

    def _some_labelings(self, i: int) -> list[np.ndarray]:
        oracle = self.oracle
        truth = oracle.truth(i)
        found = [truth]
        for w in self.weights:
            found.append(oracle.argmax(w, i))
            if oracle.latent() is None:  # else predict maximises over more labelings
                found.append(oracle.predict(w, i))
        for y in found:
            expect(
                isinstance(y, np.ndarray) and y.shape == truth.shape and y.dtype == truth.dtype,
                f"example {i}: {_shown(y)}, and the ground truth is {_shown(truth)}",
            )
        if isinstance(oracle, PartsOracle) and getattr(oracle, "any_label", True):
            draws = np.abs(approx_normal((_RANDOM, truth.size), self.bits) * 1e6).astype(np.int64)
            found += [*(draws % oracle.features.n_labels).astype(truth.dtype)]
        return [y.copy() for y in found]

    def _losses(self) -> None:
        for i in self.some:
            loss = self.oracle.loss(i, self.oracle.truth(i))
            expect(loss == 0.0, f"example {i}: that of the ground truth is {loss}")
            for y in self.labelings[i]:
                loss = self.oracle.loss(i, y)
                expect(0.0 <= loss < math.inf, f"example {i}: the loss of {_shown(y)} is {loss}")

    def _defined(self, i: int, y: np.ndarray) -> np.ndarray:
        """Return n φ^{iy}, shape (d + 1,), by its definition."""
        oracle, truth = self.oracle, self.oracle.truth(i)
        plane = np.zeros(oracle.d + 1)
        for sign, labeling in ((1.0, y), (-1.0, truth)):
            indices, values = oracle.joint_feature(i, labeling)
            expect(
                np.unique(indices).size == len(indices),
                f"example {i}: joint_feature({_shown(labeling)}) has an index twice",
            )
            plane[np.asarray(indices)] += sign * np.asarray(values)
            plane[-1] += sign * oracle.fixed_score(i, labeling)
        plane[-1] += oracle.loss(i, y)
        return plane

    def _planes(self) -> None:
        for i in self.some:
            for y in self.labelings[i]:
                given = _dense(self.oracle.plane(i, y), self.oracle.d) * self.oracle.n
                wrong = np.abs(given - self._defined(i, y))
                k, size = int(wrong.argmax()), 1.0 + np.abs(given).max()
                expect(
                    wrong[k] <= ROUNDING * size,
                    f"example {i}: n φ of {_shown(y)} is off by {wrong[k]:.3g} in "
                    f"{'its offset' if k == self.oracle.d else f'weight {k}'}",
                )

    def _value(self, i: int, y: np.ndarray, w: np.ndarray, loss: float) -> tuple[float, float]:
        """Return score(y) − score(truth), with or without the loss, and a bound of its rounding."""
        plane = self._defined(i, y)
        plane[-1] -= (1.0 - loss) * self.oracle.loss(i, y)
        terms = plane * np.append(w, 1.0)
        return float(terms.sum()), ROUNDING * (1.0 + float(np.abs(terms).sum()))

    def _maximisers(self) -> None:
        which = ("argmax", 1.0), ("predict", 0.0)
        for i, w, (name, loss) in product(self.some, self.weights, which):
            y = getattr(self.oracle, name)(w, i)
            value, rounding = self._value(i, y, w, loss)
            for other in self.labelings[i]:
                better, _ = self._value(i, other, w, loss)
                expect(
                    better <= value + rounding,
                    f"example {i}: {name} returns {_shown(y)}, of score {value:.6g} above the "
                    f"truth's, and {_shown(other)} has {better:.6g}",
                )

    def _values(self) -> None:
        for i, w in product(self.some, self.weights):
            plane, value = self.oracle.best_plane(w, i)
            dense = _dense(plane, self.oracle.d)
            at = float(dense @ np.append(w, 1.0))
            rounding = ROUNDING * (1.0 + float(np.abs(dense * np.append(w, 1.0)).sum()))
            expect(abs(at - value) <= rounding, f"example {i}: value {value}, its plane {at}")
            low = value >= -rounding or not self.oracle.exact
            expect(low, f"example {i}: H_i(w) = {value:.6g}")

    def _risk(self) -> None:
        for w in self.weights:
            planes = [self.oracle.best_plane(w, i) for i in range(self.oracle.n)]
            risk = self.oracle.risk(w)
            total = sum(value for _, value in planes)
            size = 1.0 + sum(abs(value) for _, value in planes)
            expect(abs(risk.value - total) <= ROUNDING * size, f"{risk.value}, and {total} in sum")
            at = float(risk.star @ w) + risk.offset
            size += float(np.abs(risk.star * w).sum())
            expect(abs(at - risk.value) <= ROUNDING * size, f"its plane is {at}, not {risk.value}")

    def _determinism(self) -> None:
        oracle = self.oracle.fresh()
        asked = [(w, i) for w in self.weights for i in self.some]
        first = [oracle.argmax(w, i).copy() for w, i in asked]
        if oracle is not self.oracle:  # its results may depend on earlier calls
            oracle = self.oracle.fresh()
            again = [oracle.argmax(w, i) for w, i in asked]
        else:
            again = [oracle.argmax(w, i) for w, i in reversed(asked)][::-1]
        for (_, i), one, other in zip(asked, first, again, strict=True):
            same = np.array_equal(one, other)
            expect(same, f"example {i}: first {_shown(one)}, then {_shown(other)}")

    def _radius(self) -> None:
        radius = self.oracle.radius()
        if math.isnan(radius):
            return
        for i in self.some:
            for y in self.labelings[i]:
                length = float(np.linalg.norm(self._defined(i, y)[:-1]))
                expect(length <= radius * (1 + ROUNDING), f"example {i}: {length} > {radius}")

    def _ties(self) -> None:
        """Note a prediction at w = 0 that is not the first one of several best labelings."""
        for i in self.some:
            w = np.zeros(self.oracle.d)
            y = self.oracle.predict(w, i)
            value, rounding = self._value(i, y, w, 0.0)
            for other in self.labelings[i]:
                equal = abs(self._value(i, other, w, 0.0)[0] - value) <= rounding
                if equal and other.tolist() < y.tolist():
                    self.findings.note(
                        "ties are broken in another way than in oracles of ours",
                        f"at w = 0, example {i} has {_shown(y)}, and {_shown(other)} is as good "
                        "and comes first. Runs are sound; but where labelings tie, they are not "
                        "those of an oracle that takes the lowest label first",
                    )
                    return

    def _duality(self) -> None:
        problem = Problem(self.oracle.fresh(), 1.0 / self.oracle.n)
        config = BlockConfig(name="bcfw", kind="mpbcfw", N=0, M=0)
        solver: Any = build_block(config, problem, Clock("work"), 0)
        for k in range(_PASSES):
            w, dual = solver.reported()
            primal = problem.primal(w)
            rounding = ROUNDING * max(1.0, abs(primal))
            low = dual <= primal + rounding or not self.oracle.exact
            expect(low, f"after {k} passes, dual {dual:.9g} > primal {primal:.9g}")
            solver.iterate()


def _dense(plane: Any, d: int) -> np.ndarray:
    indices, values, offset = plane
    dense = np.zeros(d + 1)
    np.add.at(dense, np.asarray(indices), np.asarray(values))
    dense[-1] = offset
    return dense


def _shown(y: Any) -> str:
    if not isinstance(y, np.ndarray):
        return f"a {type(y).__name__}"
    text = np.array2string(y, threshold=8, max_line_width=1000)
    return f"{text} ({y.dtype}{list(y.shape)})" if y.ndim != 1 else text
