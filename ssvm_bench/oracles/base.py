"""The contract of a max-oracle: everything that a solver may call on the terms of a problem.

.. code-block:: text

    H_i(w) = 1/n max_y { Δ(y_i,y) + Θ_i(y) − Θ_i(y_i) + ⟨w, ϕ(x_i,y) − ϕ(x_i,y_i)⟩ }
           = max_y ⟨φ^{iy}, [w 1]⟩

================  ==================================================
symbol            name
================  ==================================================
ϕ(x_i, y)         ``joint_feature(i, y)``
Δ(y_i, y)         ``loss(i, y)``
Θ_i(y)            ``fixed_score(i, y)``, not learned, 0 by default
φ^{iy}            ``plane(i, y)``, scaled by 1/n
Σ_i H_i(w)        ``risk(w).value``
================  ==================================================

A labeling is an array with one label per part of the example. Its type is uint8, or uint16 if there
are more than 256 labels. An oracle is *exact* if ``argmax`` returns a maximiser for every w; then
weak duality holds and H_i(w) ≥ 0. **Ties are broken the same way everywhere: the maximiser with the
lowest label in the first part wins, then in the second, and so on** (as compared in floating
point).

To plug in an oracle, derive from :class:`Oracle`, implement the abstract methods, and put
``Config``, ``CODE_VERSION`` and ``build`` beside it. A function ``predictor`` beside ``build`` may
return, for the same arguments, a smaller oracle that serves for predictions alone. Oracles over
labels of parts and of transitions derive from
:class:`ssvm_bench.oracles.labeling.LabelingOracle` instead. It needs one compiled function;
everything else comes compiled.

An oracle and λ make a `Problem`:

.. code-block:: text

    P(w) = λ/2 ‖w‖² + Σ_i H_i(w)            F(φ) = −‖φ⋆‖²/(2λ) + φ∘ = −λ/2 ‖w‖² + φ∘,  w = −φ⋆/λ

λ = 1/n unless set; H_i carries its 1/n. Solvers that work on a fixed finite set of planes take a
list of all planes of all terms, `Constraints`.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.interrupts import interruptible
from ssvm_bench.base.linalg import inner
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.threads import ALONE, Team, current
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.caller import answers
from ssvm_bench.oracles.objective import Objective, Terms
from ssvm_bench.oracles.options import OracleConfig

if TYPE_CHECKING:
    from ssvm_bench.oracles.caller import Caller

T = TypeVar("T")

_PLANES = 512
"""Number of planes that are in memory at a time while all are computed."""

_BYTES = 64
"""Bytes per non-zero while planes are listed: its value, row and column, and their copies."""


class Constraints(NamedTuple):
    """All planes φ^{iy} of all terms, scaled by 1/n, except those of ground truths, which are 0.

    Attributes
    ----------
    term_start : ndarray of integers, shape (n + 1,)
        Term i has the planes ``term_start[i]:term_start[i + 1]``, in the order of their labels.
    indptr, indices, values : ndarrays of integers, integers and floats
        φ⋆ of every plane: rows of a CSR matrix of shape (planes, d), without repeated indices.
    offset : ndarray of floats, shape (planes,)
        φ∘.
    """

    term_start: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    offset: np.ndarray

    def star(self, d: int) -> csr_array:
        """Return φ⋆ of every plane; no copy."""
        return csr_array((self.values, self.indices, self.indptr), shape=(self.offset.size, d))

    @classmethod
    def of(cls, term_start: np.ndarray, star: csr_array, offset: np.ndarray) -> Constraints:
        """Return planes whose φ⋆ are the rows of a matrix."""
        return cls(term_start, star.indptr, star.indices, star.data, offset)

    @staticmethod
    def check_fit(planes: int, entries: float) -> None:
        """Raise ``RunFailedError`` if planes with so many entries in all take too much memory.

        Call this before the planes are listed.
        """
        check_room(
            _BYTES * entries,
            f"A list of all {planes} planes",
            "Set solver.planes=found, or use fewer examples.",
        )

    def check(self, n: int, d: int) -> None:
        """Raise ``ValueError`` unless planes are the finite rows of a CSR matrix, term after term.

        Parameters
        ----------
        n, d : int
            Numbers of terms and of weights.
        """
        ends, kinds = self.term_start, "".join(array.dtype.kind for array in self)
        right = kinds.replace("u", "i") == "iiiff" and ends.shape == (n + 1,)
        right = right and ends[0] == 0 and ends[-1] == self.offset.size
        try:
            star = self.star(d)
            star.check_format(full_check=True)
        except ValueError:
            right = False
        if right and not star.has_canonical_format:  # indices that do not rise, or repeat
            star = star.copy()
            star.sum_duplicates()
        if not (right and np.diff(ends).min(initial=0) >= 0 and star.nnz == self.indices.size):
            raise ValueError(
                "the oracle's constraints are not the rows of a CSR matrix, term after term"
            )
        if not (np.isfinite(self.values).all() and np.isfinite(self.offset).all()):
            raise ValueError("the oracle's constraints are not finite")


def of_wrong_labels(truth: np.ndarray, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return term and label of each plane, in the planes' order, for terms with one label each.

    Parameters
    ----------
    truth : ndarray of uint8, shape (n,)
        y_i.
    n_labels : int
        K.
    """
    label = np.arange(n_labels - 1)
    wrong = label + (label >= truth[:, None])
    return np.repeat(np.arange(truth.size), label.size), wrong.ravel()


# ---- The contract -----------------------------------------------------------------------------

__all__ = ["Oracle", "OracleConfig", "Plane", "Problem", "Risk"]


class Plane(NamedTuple):
    """The plane φ = [φ⋆ φ∘] of one labeling, φ⋆ as a sparse row (indices without repeats)."""

    indices: np.ndarray
    values: np.ndarray
    offset: float


class Risk(NamedTuple):
    """H(w) = Σ_i H_i(w) and the sum of the maximising planes: H(w) = ⟨φ̂⋆, w⟩ + φ̂∘."""

    value: float
    star: np.ndarray
    offset: float


class Oracle(Terms):
    """Max-oracle of the n terms of a problem with d weights.

    Attributes
    ----------
    n, d : int
        Number of terms, and of weights.
    exact : bool
        Whether ``argmax`` always returns a maximiser.
    name : str
        See `Objective`.
    nonnegative : int
        How many weights, the last ones, must be ≥ 0 whenever the oracle is called.
    caller : Caller or None
        Calls `argmax` for a solver (:mod:`ssvm_bench.oracles.caller`); None: the oracle makes its
        own calls.
    """

    exact: bool = True
    name: str = ""
    nonnegative: int = 0
    caller: Caller | None = None

    @property
    def takes_threads(self) -> bool:
        """Whether several threads may call it at a time, each a copy that `apart` returns."""
        return False

    @property
    def calls_by_term(self) -> bool:
        """Whether Python calls a kernel for each term, and not one for many terms."""
        return True

    @abstractmethod
    def truth(self, i: int) -> np.ndarray:
        """Return the ground-truth labeling y_i."""

    @abstractmethod
    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the labeling that maximises Δ(y_i,y) + ⟨w, ϕ(x_i,y)⟩ + Θ_i(y)."""

    @abstractmethod
    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the labeling that maximises ⟨w, ϕ(x_i,y)⟩ + Θ_i(y)."""

    @abstractmethod
    def loss(self, i: int, y: np.ndarray) -> float:
        """Return Δ(y_i, y) ≥ 0."""

    @abstractmethod
    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-zeros of ϕ(x_i,y): indices (int64, without repeats) and values."""

    def fixed_score(self, i: int, y: np.ndarray) -> float:
        """Return Θ_i(y), the part of the score that is not learned."""
        return 0.0

    def score(self, w: np.ndarray, i: int, y: np.ndarray) -> float:
        """Return ⟨w, ϕ(x_i,y)⟩ + Θ_i(y)."""
        indices, values = self.joint_feature(i, y)
        return inner(values, w[indices]) + self.fixed_score(i, y)

    def plane(self, i: int, y: np.ndarray) -> Plane:
        """Return φ^{iy}; the plane of the ground truth is 0."""
        truth = self.truth(i)
        here, values = self.joint_feature(i, y)
        there, true_values = self.joint_feature(i, truth)
        indices, place = np.unique(np.concatenate((here, there)), return_inverse=True)
        star = np.zeros(indices.size)
        np.add.at(star, place[: here.size], values)
        np.subtract.at(star, place[here.size :], true_values)
        kept = star != 0
        loss = checks.check_loss(self, i, self.loss(i, y))
        offset = loss + self.fixed_score(i, y) - self.fixed_score(i, truth)
        return Plane(indices[kept], star[kept] / self.n, offset / self.n)

    def best_plane(self, w: np.ndarray, i: int) -> tuple[Plane, float]:
        """Return the plane of the labeling that `argmax` returns, and its value H_i(w), checked.

        Raises
        ------
        RunFailedError
            If the plane is invalid, or if an exact oracle's plane is below the ground truth's.
        """
        return self.plane_at(w, i, self.argmax(w, i))

    def plane_at(self, w: np.ndarray, i: int, y: np.ndarray) -> tuple[Plane, float]:
        """Return the plane of y, which `argmax` returned at w, and its value; see `best_plane`."""
        indices, values, offset, value = checks.check_plane(self, i, self.plane(i, y), w)
        checks.check_value(self, i, y, value, w)
        return Plane(indices, values, offset), value

    def best_planes(self, w: np.ndarray, terms: Sequence[int]) -> Iterator[tuple[Plane, float]]:
        """Yield the `best_plane` of each given term; the caller, if any, makes the calls."""
        if self.caller is None and self.team.size == 1:
            yield from (self.best_plane(w, i) for i in interruptible(terms))
        elif self.caller is None:
            for k in range(0, len(terms), _PLANES):
                yield from self._of(terms[k : k + _PLANES], lambda of, i: of.best_plane(w, i))
        else:
            for i, y in zip(terms, self.argmaxes(w, terms), strict=True):
                yield self.plane_at(w, i, y)

    def writing(self) -> Any:
        """Return a compiled oracle that implements `labeling.write_plane`; None: there is none.

        It makes the calls of `best_plane` in kernels, so a subclass that changes any of these has
        none. Its arrays are those of this oracle, as they are now.
        """
        return None

    def argmaxes(self, w: np.ndarray, terms: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield the `argmax` of each given term; the caller, if any, makes the calls."""
        if self.caller is not None:
            yield from self.caller.labelings(self, w, np.asarray(terms, np.int64))
        elif self.team.size > 1:
            yield from answers(self, self.pack(w), np.asarray(terms, np.int64))[0]
        else:
            yield from (self.argmax(w, i) for i in interruptible(terms))

    # ---- calls by several threads, or by a caller

    @property
    def team(self) -> Team:
        """The threads that make the calls now."""
        return current() if self.takes_threads else ALONE

    def apart(self) -> Oracle:
        """Return a copy for another thread, with whatever a call writes to of its own."""
        return copy.copy(self)

    def rejoin(self, other: Oracle) -> None:
        """Take over what the calls of a copy have counted (`diagnostics`)."""

    def called_by(self, caller: Caller) -> Oracle:
        """Return a copy of the oracle, whose calls ``caller`` makes."""
        made = copy.copy(self)
        made.caller = caller
        return made

    def own_labelings(self, w: np.ndarray, terms: np.ndarray, loss: float) -> list[np.ndarray]:
        """Return the labelings of some terms, computed by this oracle itself.

        Parameters
        ----------
        w : ndarray of float64, shape (inner_d,)
        terms : ndarray of int64
        loss : float
            Weight of Δ: 1, except for oracles that solvers call with another weight.
        """
        return [self.argmax(w, i) for i in interruptible(terms.tolist())]

    @property
    def inner_d(self) -> int:
        """Length of w in the layout of kernels."""
        return self.d

    def pack(self, w: np.ndarray) -> np.ndarray:
        """Return w in the layout of kernels, shape (inner_d,); a copy."""
        return w.copy()

    def packed(self, w: Any) -> Any:
        """Return w, an ndarray or `Nonzeros`, as `predict`, `predictions` and `mean_loss` take it.

        They take w itself, too. What is packed once serves all oracles for predictions by the same
        config, whatever their examples.
        """
        return np.asarray(w)

    def unpack(self, w: np.ndarray) -> np.ndarray:
        """Convert w from the layout of kernels to the outer one, shape (d,); return a copy."""
        return w.copy()

    def metric(self, w: np.ndarray) -> np.ndarray:
        """Return M w, with ⟨v, M w⟩ the inner product of weights: w itself, except with kernels."""
        return w

    @property
    def batch(self) -> int:
        """Mini-batch size: how many calls a solver that moves w in between makes at the same w."""
        return 1 if self.caller is None else self.caller.batch

    def without_delay(self) -> AbstractContextManager[None]:
        """Return a context in which no call is delayed on purpose."""
        return nullcontext() if self.caller is None else self.caller.without_delay()

    def pause(self, calls: int) -> None:
        """Sleep as long as so many calls would, if calls are delayed on purpose."""
        if self.caller is not None:
            self.caller.pause(calls)

    # ---- the problem

    def problem(self, lam: float) -> Problem:
        """Return the problem with a λ."""
        return Problem(self, lam)

    def constraints(self) -> Constraints | None:
        """Return all planes if terms have few; None: they cannot be listed."""
        return None

    def weights(self, w: np.ndarray) -> np.ndarray:
        """Return the weights of the data's features for a solver's w: w, without a prior."""
        return w

    def stored(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Return the arrays, besides w, that predictions for other examples need: none."""
        return {}

    @property
    def head(self) -> Oracle:
        """An oracle in memory, with the layout of w and planes that all chunks share: itself."""
        return self

    def chunks(self) -> Iterator[tuple[int, Oracle]]:
        """Yield the index of the first example and the oracle of each chunk that is in memory.

        The oracle itself is the only chunk, unless examples are read from a stream
        (:mod:`ssvm_bench.oracles.chunked`).
        """
        yield 0, self

    def latent(self) -> np.ndarray | None:
        """Return the latent values that are fixed in the convex problem; None: there are none.

        Other latent values make another problem.
        """
        return None

    def update_latent(self, w: np.ndarray) -> tuple[Oracle, int]:
        """Return the oracle with the latent values that are best at w, and how many changed.

        The new values raise no H_i(w).
        """
        return self, 0

    def with_latent(self, values: np.ndarray) -> Oracle:
        """Return the oracle with other latent values, as :meth:`Objective.with_latent` does."""
        raise NotImplementedError(f"{type(self).__name__} does not take latent values")

    def fresh(self) -> Oracle:
        """Return the oracle for one solver: itself, unless results depend on earlier calls."""
        return self

    def radius(self) -> float:
        """Return R = max over i and y of ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖, or a bound; NaN: not known."""
        return math.nan

    def diagnostics(self) -> dict[str, float]:
        """Return what to log of the calls since the last `diagnostics`: trace column → value."""
        return {}

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return the labelings that `predict` returns for all examples, one after the other."""
        return np.concatenate(self._of(range(self.n), lambda oracle, i: oracle.predict(w, i)))

    def upper_bound(self, w: np.ndarray, i: int) -> float:
        """Return an upper bound of H_i(w), which `argmax` need not reach if it is not exact.

        Raises
        ------
        ConfigError
            If the oracle is not exact and has no such bound.
        """
        if not self.exact:
            raise ConfigError(
                "eval.bound=true needs an oracle that is exact, or bounds what it may have missed, "
                "as alpha_expansion does."
            )
        return self.best_plane(w, i)[1]

    def upper_bounds(self, w: np.ndarray) -> list[float]:
        """Return the `upper_bound` of every term."""
        return self._of(range(self.n), lambda oracle, i: oracle.upper_bound(w, i))

    def mean_loss(self, w: np.ndarray) -> float:
        """Return 1/n Σ_i Δ(y_i, y) of the predictions y for the examples."""
        ask: Callable[[Oracle, int], float] = lambda of, i: of.loss(i, of.predict(w, i))  # noqa: E731
        losses = self._of(range(self.n), ask)
        return sum(checks.check_loss(self, i, loss) for i, loss in enumerate(losses)) / self.n

    def _of(self, terms: Sequence[int], ask: Callable[[Oracle, int], T]) -> list[T]:
        """Return what ``ask`` returns for different terms, by an oracle for each thread."""
        found: list[Any] = [None] * len(terms)
        oracles = [self, *(self.apart() for _ in range(1, self.team.size))]

        def call(number: int, begin: int, end: int) -> None:
            some = interruptible(terms[begin:end])
            found[begin:end] = [ask(oracles[number], i) for i in some]

        self.team.share(len(terms), call, by_item=True)
        for other in oracles[1:]:
            self.rejoin(other)
        return found

    def risk(self, w: np.ndarray, with_plane: bool = True, terms: range | None = None) -> Risk:
        """Return H(w) and its maximising plane by one call per term.

        Parameters
        ----------
        w : ndarray of float64, shape (d,)
        with_plane : bool
            False leaves ``star`` at zero, for callers that need the value only.
        terms : range, optional
            Sum over these consecutive terms only.
        """
        star, value, offset = np.zeros(self.d), 0.0, 0.0
        for plane, height in self.best_planes(w, range(self.n) if terms is None else terms):
            value += height
            offset += plane.offset
            if with_plane:
                star[plane.indices] += plane.values
        return Risk(value, star, offset)


# ---- The problem: the terms and λ -------------------------------------------------------------

_ROUNDING = 1e-9
"""Rounding error of primal and dual values, sums over all examples, relative to their size."""


@dataclass(frozen=True)
class Problem(Objective):
    """The terms of one training problem and its λ; a point is w.

    Attributes
    ----------
    oracle : Oracle
        The max-oracle of all terms.
    lam : float
        λ > 0.
    """

    STATE = ("oracle",)

    oracle: Oracle
    lam: float

    @property
    def n(self) -> int:
        """Number of terms."""
        return self.oracle.n

    @property
    def d(self) -> int:
        """Number of weights."""
        return self.oracle.d

    @property
    def name(self) -> str:  # type: ignore[override]
        """The oracle's name; see `Objective`."""
        return self.oracle.name

    @property
    def caller(self) -> Caller | None:
        """The caller of the oracle for the solver, if there is one."""
        return self.oracle.caller

    def primal(self, w: np.ndarray) -> float:
        """Return P(w), by n oracle calls."""
        return self._regulariser(w) + self.risk(w, with_plane=False).value

    def risk(self, w: np.ndarray, **options: Any) -> Any:
        """Return the result of ``oracle.risk``, checked."""
        risk = self.oracle.risk(w, **options)
        checks.check_risk(self.oracle, risk)
        return risk

    def dual(self, w: np.ndarray, offset: float) -> float:
        """Return F(φ) for φ⋆ = −λ w and φ∘ = ``offset``."""
        return offset - self._regulariser(w)

    def _regulariser(self, w: np.ndarray) -> float:
        return 0.5 * self.lam * inner(w, self.oracle.metric(w))

    def measured(self, point: np.ndarray) -> tuple[float, dict[str, float]]:
        """Return P(w), and the oracle's diagnostics of the calls that compute it."""
        self.oracle.diagnostics()  # drop those of earlier calls
        with self.oracle.without_delay():
            return self.primal(point), self.oracle.diagnostics()

    def upper_bound(self, point: np.ndarray, value: float) -> float:
        """Return an upper bound of P(w): P(w) itself if the oracle is exact."""
        if self.oracle.exact:
            return value
        chunks = (part for _, part in self.oracle.chunks())
        bounds = (sum(part.upper_bounds(point)) * part.n / self.n for part in chunks)
        return self._regulariser(point) + sum(bounds)

    def weights(self, point: np.ndarray) -> np.ndarray:
        """Return the weights of the data's features."""
        return self.oracle.weights(point)

    def latent(self) -> np.ndarray | None:
        """Return the latent values of the terms, if there are any."""
        return self.oracle.latent()

    def update_latent(self, point: np.ndarray) -> tuple[Problem, int]:
        """Return the problem with the latent values that are best at w, and how many differ."""
        oracle, changes = self.oracle.update_latent(point)
        return replace(self, oracle=oracle), changes

    def with_latent(self, values: np.ndarray) -> Problem:
        """Return the problem with other latent values."""
        return replace(self, oracle=self.oracle.with_latent(values))

    def size(self, point: np.ndarray) -> float:
        """Return ‖w‖₂."""
        return math.sqrt(inner(point, self.oracle.metric(point)))

    def radius(self) -> float:
        """Return R, the largest difference of features."""
        return float(self.oracle.radius())

    def losses(self, point: np.ndarray) -> dict[str, float]:
        """Return the mean loss of the predictions for the examples."""
        return {"train": self.oracle.mean_loss(point)}

    def arrays(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Return w, and the other arrays that predictions need."""
        return {"w": point, **self.oracle.stored(point)}

    def fresh(self) -> Problem:
        """Return the problem with an oracle of its own."""
        return replace(self, oracle=self.oracle.fresh())

    def check_bound(
        self, point: np.ndarray, earlier: np.ndarray | None, primal: float, dual: float
    ) -> None:
        """Raise ``RunFailedError`` if an exact oracle has F(φ) > P(w), beyond rounding."""
        oracle = self.oracle
        if oracle.exact and dual - primal > _ROUNDING * max(abs(primal), abs(dual), 1.0):
            before = np.zeros(self.d) if earlier is None else np.asarray(earlier)
            found = checks.contradicted(oracle, np.asarray(point), before)
            where = "" if found is None else f", as it does not at example {found}"
            raise RunFailedError(
                f"the dual value {dual:.9g} is above the primal one, {primal:.9g}, which cannot be "
                f"where the oracle returns a best labeling of every example{where}. Test it "
                "against brute force; an approximate oracle says `exact = False`"
            )
