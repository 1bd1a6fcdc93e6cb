"""The dual iterates, by how planes are stored; the oracle decides which.

===================  ==========================================================================
`LabelingIterate`    planes are labelings; a whole pass is one compiled call
`AllLabels`          all labels of examples of one part, from the beginning
`KernelIterate`      planes are labelings, and w is known by kernel values alone
`RowIterate`         planes are sparse rows, for any oracle; it is called from Python: also where
                     chains are so long that products between their parts are not kept
`GivenRows`          all planes, as the oracle lists them
===================  ==========================================================================

They are in :mod:`.labeling_iterates`, :mod:`.kernel_iterate` and :mod:`.row_iterates`.

With all planes from the beginning, a solver asks no oracle: an exact pass visits the terms with all
their planes instead.
"""

from __future__ import annotations

from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.kernel_features import KernelOracle
from ssvm_bench.oracles.labeling import LabelingOracle
from ssvm_bench.oracles.scoring import longest
from ssvm_bench.planes.dual_iterate import DualIterate
from ssvm_bench.planes.labeling_iterates import AllLabels, LabelingIterate, with_own_layout


def dual_iterate(
    problem: Problem, N: int, own_rows: bool = False, with_zeros: bool = False
) -> DualIterate:
    """Return φ^i = 0 for all i, with the ground truth's plane in every W_i of up to N planes.

    A w of many features may have a layout that only the iterate knows with ``own_rows``, and one of
    features with few zeros ``with_zeros``, in which sums are in another order.
    """
    if isinstance(problem.oracle, KernelOracle):
        from ssvm_bench.planes.kernel_iterate import KernelIterate

        return KernelIterate(problem, problem.oracle, N)
    if isinstance(problem.oracle, LabelingOracle) and problem.oracle.features.gram.size > 0:
        oracle = with_own_layout(problem.oracle, own_rows, with_zeros)
        return LabelingIterate(problem, oracle, N)
    from ssvm_bench.planes.row_iterates import RowIterate

    return RowIterate(problem, N)


def with_all_planes(problem: Problem, labels: bool) -> DualIterate | None:
    """Return φ with all planes of term i in W_i, the ground truth's first; None if it cannot be.

    It can where the oracle lists its planes, and, if ``labels`` are wanted, too, where a plane is
    the label of an example. φ^i stays at the ground truth's plane: solvers of this kind keep the
    weights of the planes.
    """
    from ssvm_bench.oracles.signed_features import SignedOracle
    from ssvm_bench.planes.row_iterates import GivenRows

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
