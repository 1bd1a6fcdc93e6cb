"""The two steps of dual coordinate descent (Ramanan 2013, section 3).

A step moves weight a from one plane of term i to another. With all of the term's planes, that of
the ground truth too, which is 0 and has what weight the others leave, Σ_p α_ip = 1,

.. code-block:: text

    F(α + a e_ij − a e_ik) = F(α) + a/n g − a²/(2 λ n²) h            −α_ij ≤ a ≤ α_ik
    g = ⟨n φ^{ij} − n φ^{ik}, [w 1]⟩         h = ‖n φ^{ij}⋆ − n φ^{ik}⋆‖²
    a* = clip( λ n g / h )

A *single* step, (25), is that with the ground truth's plane for k, whose gradient is 0 and whose
weight is the paper's 1 − α_i; a *pair* step, (28), that with another one. The paper's further
bounds, a ≤ 1 − α_ij and a ≥ α_ik − 1, follow from these.

=============================  ==================================================================
paper                          here
=============================  ==================================================================
C                              1/(λ n)
x_ij, l_ij                     −C n φ^{ij}⋆ and C n φ^{ij}∘
g_ij                           C ⟨n φ^{ij}, [w 1]⟩: a tolerance is in units of the loss here, not C
L(w), F(α)                     P(w)/λ and F/λ
=============================  ==================================================================
"""

from __future__ import annotations

from ssvm_bench.base.jit import kernel
from ssvm_bench.base.linalg import line_search

# mypy: disable-error-code="no-untyped-def"


@kernel
def exchanged(slope, curvature, taker, giver):
    """Return a*, the weight that goes from plane k to plane j.

    Parameters
    ----------
    slope, curvature : float
        λ n g and h, or both times the same; a flat direction leads to a bound.
    taker, giver : float
        α_ij and α_ik.
    """
    if slope > 0.0:
        return line_search(slope, curvature, giver)
    return -line_search(-slope, curvature, taker)


@kernel
def exchange(alpha, j, k, a):
    """Let α_j grow by a and α_k fall by as much; one that gives all it has is 0 then."""
    alpha[j] = 0.0 if a == -alpha[j] else alpha[j] + a
    alpha[k] = 0.0 if a == alpha[k] else alpha[k] - a
