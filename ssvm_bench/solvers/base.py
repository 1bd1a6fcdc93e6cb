"""The contract of a solver: a state and one outer iteration; the loop is the runner's.

A solver sees the problem of its family (:mod:`ssvm_bench.oracles.objective`) and a
:class:`~ssvm_bench.base.clock.Clock`. It knows neither the dataset, nor the file system, nor what
kind of clock it is. To add one, derive from :class:`Solver` and put ``Config``, ``CODE_VERSION``
and ``build`` beside it. What must be known of a solver before anything is loaded is data on its
``Config``, a `SolverConfig`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.state import Stateful
from ssvm_bench.config.validation import Count, Options
from ssvm_bench.oracles.objective import STRUCTURAL_SVM

if TYPE_CHECKING:
    from ssvm_bench.planes.dual_iterate import DualIterate

STEPS = ("line_search", "2n/(k+2n)")
STARTS = TRUTH, ORACLE = ("truth", "oracle")
"""φ begins at the planes of the true labelings, which are 0, or of those found at w = 0."""


@dataclass(frozen=True)
class SolverConfig(Options):
    """Options of every solver, and what the solver is.

    Attributes
    ----------
    name, kind : str
        Name of the YAML file, and of the module.
    has_dual : bool
        Whether it has a dual value, and so a gap.
    follows_paths : bool
        Whether it can continue with another λ: `Solver.warm_start` is there.
    needs_path : bool
        Whether it begins nowhere but at the solution of another λ.
    needs_expectations : bool
        Whether it asks the oracle for expectations
        (:func:`ssvm_bench.oracles.labeling.expect`), not for maximisers alone.
    takes_kernels : bool
        Whether it asks of w only what kernel values tell: steps along planes, scores, ‖w‖².
    keeps_nonnegative : bool
        Whether it keeps the weights ≥ 0 of which its oracle says so (`Oracle.nonnegative`).
    structures : tuple of str
        The structures of datasets that it accepts; empty: any.
    least_n : int
        Fewest terms that it needs.
    family : str
        Of the problems that it solves (:mod:`ssvm_bench.oracles.objective`).
    chunk_rows : int or None
        It trains on streams, by `Oracle.chunks`, with so many examples at a time in memory; None:
        it needs all of them there.
    latent_rounds : int
        Most convex problems to solve, each with the latent values that are best at the solution of
        the one before (:mod:`ssvm_bench.runs.loop`).
    """

    section: ClassVar[str] = "solver"
    has_dual: ClassVar[bool] = True
    follows_paths: ClassVar[bool] = False
    needs_expectations: ClassVar[bool] = False
    takes_kernels: ClassVar[bool] = False
    keeps_nonnegative: ClassVar[bool] = False
    structures: ClassVar[tuple[str, ...]] = ()
    family: ClassVar[str] = STRUCTURAL_SVM

    name: str
    kind: str
    latent_rounds: Count = field(default=1, kw_only=True)

    @property
    def constraint(self) -> str:
        """Which w it may return, where that is not all: such a problem has another optimum."""
        return ""

    @property
    def needs_path(self) -> bool:
        """See the class."""
        return False

    @property
    def least_n(self) -> int:
        """See the class."""
        return 1

    @property
    def chunk_rows(self) -> int | None:
        """See the class."""
        return None

    def check_chunks(self) -> None:
        """Raise ``ConfigError`` if examples that are read in chunks will not do."""

    def check_path(self, follows: bool) -> None:
        """Raise ``ConfigError`` unless the solver can do with a path of λ, or without one."""
        if self.needs_path and not follows:
            raise ConfigError(
                f"solver={self.name} goes on from the solution of a larger lam, so it "
                "needs them: path=[larger,smaller,…]."
            )
        if follows and not self.follows_paths:
            raise ConfigError(
                f"solver={self.name} cannot go on with another λ: "
                "leave path empty, or choose another solver."
            )

    def check_latent(self, has_latent: bool, path: bool) -> None:
        """Raise ``ConfigError`` if there is nothing latent to choose anew, or too much to do."""
        if self.latent_rounds > 1 and (path or not has_latent):
            why = (
                "take a path of λ: leave path empty"
                if has_latent
                else "are for oracles with latent values, as oracle=latent, without example weights"
            )
            raise ConfigError(f"solver.latent_rounds={self.latent_rounds} {why}, or set it to 1.")

    def check_oracle(self, has_expectations: bool | None) -> None:
        """Raise ``ConfigError`` if the oracle is known not to do what the solver asks."""
        if self.needs_expectations and has_expectations is False:
            raise ConfigError(
                f"solver={self.name} needs the expectations of a distribution over labelings, "
                "which the oracles of graphs, of latent positions and of landmarks have not. "
                "Choose another solver for this dataset."
            )

    def check_kernel(self, has_kernel: bool) -> None:
        """Raise ``ConfigError`` if w is known by kernel values alone, and that will not do."""
        if has_kernel and not self.takes_kernels:
            raise ConfigError(
                f"solver={self.name} needs weights of features, which oracle.kernel has not. "
                "Choose bcfw, mpbcfw or one of their variants, or oracle.kernel=linear."
            )

    def check_nonnegative(self, of_oracle: bool) -> None:
        """Raise ``ConfigError`` if the oracle needs weights ≥ 0, and the solver keeps none so."""
        if of_oracle and not self.keeps_nonnegative:
            raise ConfigError(
                f"solver={self.name} does not keep a weight ≥ 0, as oracle.potts=learned needs: "
                "choose bcfw, mpbcfw or one of its variants, or dcd."
            )

    def check_prior(self, mean: np.ndarray, variance: np.ndarray) -> None:
        """Raise ``ConfigError`` if the solver's constraint is none of ŵ under N(μ, Σ).

        Parameters
        ----------
        mean, variance : ndarrays of float64
            μ and Σ in their simplest form, of shape () or (d,), and (), (d,) or (d, d).
        """
        if self.constraint and (mean.any() or variance.ndim == 2):
            raise ConfigError(
                f"solver={self.name} with {self.constraint} needs prior.mean=0, and as "
                "prior.variance a number or one per weight: under another prior, the sign of a "
                "weight is not that of a variable of the solver."
            )

    def check_family(self, family: str, oracle: str) -> None:
        """Raise ``ConfigError`` if the oracle makes a problem of another family."""
        if family != self.family:
            raise ConfigError(
                f"solver={self.name} solves problems of the family {self.family}, and "
                f"oracle={oracle} makes one of the family {family}. Choose another solver, or a "
                "dataset of the solver's family (`ssvm-bench list` shows them)."
            )

    def check_data(self, n: int, structure: str) -> None:
        """Raise ``ConfigError`` if there are too few examples, or they are of another structure."""
        if n < self.least_n:
            raise ConfigError(
                f"solver={self.name} needs at least {self.least_n} examples, and there are {n}."
            )
        if self.structures and structure not in self.structures:
            raise ConfigError(
                f"solver={self.name} is for {' and '.join(self.structures)} labels, and those of "
                f"this dataset are {structure}. Choose another solver for it."
            )


class Iterate(NamedTuple):
    """What a solver reports: a point and its best lower bound, F or NaN.

    The point is w in its outer layout, shape (d,); of other families what their objective takes
    (:mod:`ssvm_bench.oracles.objective`).
    """

    w: Any
    dual: float


OF_ALL = ("converged", "ended", "approx_passes", "after_exact_pass", "clock", "problem")
"""What the runner restores of every solver."""


class Solver(Stateful, ABC):
    """A training algorithm.

    Attributes
    ----------
    STATE : tuple of str, or None
        The attributes that iterations change, but for those of all solvers, so that a run can go on
        from a checkpoint (:mod:`ssvm_bench.base.state`); None: it has none, and begins anew.
    converged : bool
        The last iteration has proved that the iterate is optimal, to the solver's own precision if
        it has one.
    ended : str or None
        Another reason to end the run, of those that :mod:`ssvm_bench.runs.loop` names.
    approx_passes : int
        Approximate passes of the last iteration.
    after_exact_pass : Iterate or None
        What would have been reported after the last exact pass; None unless `keep_after_exact_pass`
        was called, and of solvers that do not alternate exact and approximate passes.
    alternates : bool
        Whether it does: then it tells `exact_pass_ended`.
    """

    STATE: ClassVar[tuple[str, ...] | None] = None
    alternates: ClassVar[bool] = False

    converged: bool = False
    ended: str | None = None
    approx_passes: int = 0
    after_exact_pass: Iterate | None = None
    _keeps_after_exact_pass: bool = False

    def __init__(self, problem: Any, clock: Clock) -> None:
        self.problem = problem
        self.clock = clock

    def state(self) -> dict[str, Any]:
        """Return all that iterations have changed, which `restore` takes: arrays, plain values.

        Raises
        ------
        NotImplementedError
            If the solver does not say what that is.
        """
        if self.STATE is None:
            raise NotImplementedError(f"{type(self).__name__} does not say its STATE")
        return super().state()

    def begin(self) -> None:
        """Do what comes before the first iteration, on the clock; not called after `warm_start`."""

    @abstractmethod
    def iterate(self) -> None:
        """Do one outer iteration (batch methods: one pass of the exact oracle)."""

    def warm_start(self, lam: float, clock: Clock) -> None:
        """Continue with another λ, from all that is known so far, and with a new clock."""
        raise NotImplementedError

    def update_latent(self, problem: Any) -> bool:
        """Continue with the problem of other latent values, from all that is known, if it can.

        Returns
        -------
        bool
            Whether it does. If not, a new solver has to begin.
        """
        return False

    @abstractmethod
    def reported(self) -> Iterate:
        """Return the iterate to report; called while the clock is paused."""

    def keep_after_exact_pass(self) -> None:
        """Keep ``after_exact_pass`` from now on, off the clock."""
        self._keeps_after_exact_pass = self.alternates
        self.exact_pass_ended()

    def exact_pass_ended(self) -> None:
        """Keep what is reported now, if that is wanted."""
        if self._keeps_after_exact_pass:
            with self.clock.paused():
                self.after_exact_pass = self.reported()

    def working_set_mean(self) -> float:
        """Return the mean number of cached planes per term."""
        return 0.0

    def diagnostics(self) -> dict[str, float]:
        """Return what else to log of the solver's state: trace column → value."""
        return {}


class DualSolver(Solver):
    """A solver whose state is a dual iterate with working sets; the iterate has the problem.

    Attributes
    ----------
    phi : DualIterate
    iteration : int
        Outer iterations so far.
    """

    iteration: int = 0

    def __init__(self, phi: DualIterate, clock: Clock) -> None:
        self.phi = phi
        self.clock = clock

    def begin_iteration(self) -> None:
        """Count an outer iteration."""
        self.iteration += 1
        self.approx_passes = 0
        self.phi.set(now=self.iteration)

    @property
    def problem(self) -> Any:
        """The problem, with λ."""
        return self.phi.problem

    def update_latent(self, problem: Any) -> bool:
        """See `Solver`: where planes are labelings, they and their weights stay."""
        changed = self.phi.update_latent(problem)
        if changed is not None:
            self.converged, self.ended = False, None
            self.follow_latent(changed)
        return changed is not None

    @abstractmethod
    def follow_latent(self, changed: np.ndarray) -> None:
        """Continue where the planes of these terms have changed, and φ is to be summed anew."""

    def reported(self) -> Iterate:
        """Return w and F(φ)."""
        w = self.phi.point()
        return Iterate(w, self.problem.dual(w, self.phi.offset))

    def working_set_mean(self) -> float:
        """Return the mean of |W_i|."""
        return self.phi.working_set_mean()
