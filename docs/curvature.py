"""C_f of the structural SVM's dual against n C_f^prod, on OCR and USPS (the BCFW poster).

    python docs/curvature.py

f = −F is quadratic, λ/2 ‖w‖², so that a curvature constant is λ times a largest squared distance
(Lacoste-Julien et al. 2013, appendix A):

    C_f      = 1/λ max ‖1/n Σ_i (ϕ(x_i, y_i) − ϕ(x_i, y'_i))‖²        over all y and y'
    C_f^prod = 1/λ Σ_i max ‖1/n (ϕ(x_i, y_i) − ϕ(x_i, y'_i))‖²

OCR: with features ≥ 0, both are at labelings of one label each, all parts a against all parts b.
The squared distance is then 2 ‖s‖², s being the sum of an example's features and its transitions,
and no other pair of labelings has a larger one. So

    C_f / (n C_f^prod) = ‖mean_i s_i‖² / mean_i ‖s_i‖²  ≤ 1

USPS: one part an example, features in [−1, 1]. Term i's largest distance is √2 ‖x_i‖. Examples of
two labels a and b, y_i = a and y'_i = b or the other way round, bound C_f from below, the triangle
inequality from above; the signs σ_i are those of a local maximum:

    ‖mean_i σ_i x_i‖² / mean_i ‖x_i‖²  ≤  C_f / (n C_f^prod)  ≤  (mean_i ‖x_i‖)² / mean_i ‖x_i‖²
"""

import numpy as np

from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs.components import load_dataset


def vectors(name, *options):
    """Return the s_i of a dataset, or its x_i."""
    (config,) = compose_runs([f"dataset={name}", "dataset.source=real", *options])
    data = load_dataset(config.dataset)
    sums = np.add.reduceat(np.asarray(data.x, float), data.offsets[:-1], axis=0)
    if data.structure == "chain":
        sums = np.column_stack((sums, np.diff(data.offsets) - 1))
    return sums


def furthest(x):
    """Return max ‖mean_i σ_i x_i‖² over signs, as far as going uphill from the mean finds it."""
    signs = np.ones(len(x))
    while (better := np.where(x @ (signs @ x) < 0, -1.0, 1.0)).tolist() != signs.tolist():
        signs = better
    return ((signs @ x / len(x)) ** 2).sum()


s = vectors("ocr", "dataset.folds=[1,2,3,4,5,6,7,8,9]")
assert (s >= 0).all()
share = (s.mean(axis=0) ** 2).sum() / (s**2).sum(axis=1).mean()
print(f"OCR, n = {len(s)}: C_f = {share:.2f} n C_f^prod")
x = vectors("usps")
squares = (x**2).sum(axis=1)
low, high = furthest(x) / squares.mean(), np.sqrt(squares).mean() ** 2 / squares.mean()
print(f"USPS, n = {len(x)}: C_f = {low:.2f} to {high:.2f} n C_f^prod")
