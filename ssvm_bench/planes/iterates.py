"""The dual iterates, one for each way to store planes; the oracle determines which is used.

===================  ==========================================================================
`LabelingIterate`    planes are labelings; a whole pass is one compiled call
`AllLabels`          all labels of examples of one part, from the beginning
`KernelIterate`      planes are labelings, and w is represented by kernel values
`RowIterate`         planes are sparse rows, for any oracle, which is called from Python, except
                     those of graphs; also for chains that are too long to keep the Gram matrices
                     of their parts
`GivenRows`          all planes, as listed by the oracle
===================  ==========================================================================

They are in :mod:`.labeling_iterates`, :mod:`.kernel_iterate`, :mod:`.rows` and :mod:`.given_rows`.

If all planes are known from the beginning, a solver calls no oracle: an exact pass visits the terms
with all their planes instead.
"""

from __future__ import annotations

from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.oracles.scoring import longest
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.planes.labeling_iterates import AllLabels, LabelingIterate, with_own_layout


def dual_iterate(
    problem: Problem, N: int, own_rows: bool = False, with_zeros: bool = False
) -> DualIterate:
    """Return φ^i = 0 for all i, with the ground truth's plane in every W_i of up to N planes.

    With ``own_rows``, a w of many features may have a layout that only the iterate knows. With
    ``with_zeros``, features with few zeros may have a layout that changes the order of sums.
    """
    oracle = problem.oracle
    if isinstance(oracle, LabelingOracle) and oracle.has_kernel:
        from ssvm_bench.planes.kernel_iterate import KernelIterate

        return KernelIterate(problem, N)
    if isinstance(oracle, LabelingOracle) and oracle.features.gram.size > 0:
        return LabelingIterate(problem, with_own_layout(oracle, own_rows, with_zeros), N)
    from ssvm_bench.planes.rows import RowIterate

    return RowIterate(problem, N)


def with_all_planes(problem: Problem, labels: bool) -> DualIterate | None:
    """Return φ with all planes of term i in W_i, the ground truth's first; None if not possible.

    It is possible if the oracle lists its planes or, with ``labels``, if a plane is the label of an
    example of one part. φ^i stays at the ground truth's plane: the solvers that use this keep the
    weights of the planes.
    """
    from ssvm_bench.oracles.signed_features import SignedOracle
    from ssvm_bench.planes.given_rows import GivenRows

    oracle = problem.oracle
    if (
        isinstance(oracle, LabelingOracle)
        and not isinstance(oracle, SignedOracle)
        and oracle.any_label
        and longest(oracle.features) == 1
    ):
        return AllLabels(problem, oracle) if labels else None
    constraints = oracle.constraints()
    if constraints is None:
        return None
    constraints.check(problem.n, problem.d)
    return GivenRows.of(problem, constraints)
