"""The visits of MP-BCFW and of the methods beyond it, as a solver holds them.

What happens at a term is compiled (:mod:`~ssvm_bench.solvers.block.one_step`,
:mod:`~ssvm_bench.solvers.block.several_steps`); what that needs before and between passes is here.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ssvm_bench.planes import simplex
from ssvm_bench.solvers.block.several_steps import STEPS, SeveralSteps

_FLOOR = 0.01
"""The planes of a term must also have this share of the mean gap (Osokin et al., ν)."""


class Visits:
    """What a solver does at each term: a policy, and what that needs around passes.

    Attributes
    ----------
    policy : NamedTuple
        For the kernels.
    may_skip : bool
        Whether a visit may do without the oracle.
    """

    may_skip: bool = False

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def prepare(self, n_planes: np.ndarray, order: np.ndarray, whole: bool) -> None:
        """Get ready for an exact pass.

        Parameters
        ----------
        n_planes : ndarray of int64, shape (n,)
            |W_i| now.
        order : ndarray of int64
            The terms that it will visit.
        whole : bool
            Whether it has to call the oracle at every visit.
        """

    def worth_visiting(self, order: np.ndarray) -> np.ndarray:
        """Return the terms that an approximate pass should visit, if it is not the first."""
        return order

    def go_on(self, n_planes: np.ndarray) -> None:
        """Get ready for another λ."""

    def renew(self, blocks: Any, changed: np.ndarray) -> None:
        """Get ready for other planes of some terms."""


class SeveralStepVisits(Visits):
    """Visits of several steps.

    Parameters
    ----------
    n : int
        Number of terms.
    policy : dict
        ``N``, ``T``, ``steps`` (one of ``STEPS``) and ``inner_steps``, as in `SeveralSteps`.
    share : float
        As in `SeveralSteps`.
    shrink : float
        Terms whose planes had less than this share of the mean gap are not worth visiting.
    """

    policy: SeveralSteps

    def __init__(self, n: int, share: float = np.inf, shrink: float = 0.0, **policy: Any) -> None:
        self.share = share if policy["N"] > 0 else np.inf
        self.may_skip = self.share < np.inf
        self.shrink = shrink
        policy["steps"] = STEPS.index(policy["steps"])
        super().__init__(
            SeveralSteps(
                **policy,
                share=self.share,
                floor=0.0,
                simplex=simplex.allocate(n),
                gaps=np.full(n, np.inf),
                planes_gaps=np.zeros(n),
                drops=np.zeros(1, np.int64),
            )
        )

    def prepare(self, n_planes: np.ndarray, order: np.ndarray, whole: bool) -> None:
        """Make room for a new plane at every visit, and look at the gaps."""
        policy = self.policy
        if policy.N > 0:
            known = policy.gaps[np.isfinite(policy.gaps)]
            visits = np.bincount(order, minlength=n_planes.size)
            self.policy = policy._replace(
                simplex=simplex.reserve(policy.simplex, n_planes + visits + 1),
                share=np.inf if whole else self.share,
                floor=_FLOOR * float(known.mean()) if known.size else 0.0,
            )

    def worth_visiting(self, order: np.ndarray) -> np.ndarray:
        """Leave out the terms with little to gain."""
        if self.shrink == 0:
            return order
        gaps = self.policy.planes_gaps
        return order[gaps[order] > self.shrink * gaps.mean()]

    def go_on(self, n_planes: np.ndarray) -> None:
        """Make room for the ground truths' planes, and forget the gaps."""
        self.prepare(n_planes, np.arange(n_planes.size), whole=True)
        self.policy.gaps[:] = np.inf

    def renew(self, blocks: Any, changed: np.ndarray) -> None:
        """Compute the inner products of the planes that have changed, and forget the gaps."""
        self.policy.gaps[:] = np.inf
        simplex.renew(self.policy.simplex, blocks, changed)

    def gap(self) -> float:
        """Return the gap over the working sets, as the last approximate visits found it."""
        return float(self.policy.planes_gaps.sum()) / self.policy.gaps.size

    def without_drops(self) -> SeveralSteps:
        """Return the policy of approximate passes that drop no plane."""
        return self.policy._replace(T=sys.maxsize)

    def changing(self) -> list[np.ndarray]:
        """Return the arrays that approximate passes change, as long as no plane is dropped."""
        return [getattr(self.policy.simplex, name) for name in simplex.CHANGED]
