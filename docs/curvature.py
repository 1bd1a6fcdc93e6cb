"""C_f of the structural SVM's dual, and what bounds it, on OCR and USPS (the BCFW poster).

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

C_f ≤ L_f diam(M)² holds in every norm of α. With ψ_i(y) = ϕ(x_i, y_i) − ϕ(x_i, y),

    Euclidean norm      L_f = λ_max(Σ_iy ψ_i(y) ψ_i(y)ᵀ)/(λn²)     diam(M)² = 2n
    Σ_iy |α_i(y)|       L_f = max_iy ‖ψ_i(y)‖²/(λn²) = R²/(λn²)    diam(M)² = 4n²

so that the bound is 4R²/λ with sums, as in the ICML paper. On USPS, power iteration finds λ_max. On
OCR, the sum goes over the 26^L labelings of a word of L letters, whose mean ψ̄ tells λ_max ≥ 26^L
‖ψ̄‖²; the longest word is taken. Both are from below, so that a bound that is passed is.

It writes ``results/figures/curvature/curvature.csv``: with ``low`` and ``high`` the bounds of C_f
over n C_f^prod, and the two bounds of C_f over it, Euclidean and with sums.
"""

import numpy as np
from stored import keep

from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs.components import load_dataset


def load(name, *options):
    """Return a dataset."""
    (config,) = compose_runs([f"dataset={name}", "dataset.source=real", *options])
    return load_dataset(config.dataset)


def furthest(x):
    """Return max ‖mean_i σ_i x_i‖² over signs, as far as going uphill from the mean finds it."""
    signs = np.ones(len(x))
    while (better := np.where(x @ (signs @ x) < 0, -1.0, 1.0)).tolist() != signs.tolist():
        signs = better
    return ((signs @ x / len(x)) ** 2).sum()


def largest_eigenvalue(x, y, K, steps=100):
    """Return λ_max of Σ ψψᵀ over all examples and labels, as near as so many steps come."""
    rows, V = np.arange(len(x)), np.random.default_rng(0).normal(size=(K, x.shape[1]))
    for _ in range(steps):
        scores = x @ (V / np.linalg.norm(V)).T
        pulls = scores - scores[rows, y][:, None]
        pulls[rows, y] = -pulls.sum(axis=1)
        V = pulls.T @ x
    return np.linalg.norm(V)


def row(name, n, low, high, product, euclidean, of_sums):
    """Return C_f over n C_f^prod, and two bounds of it, given by their logarithms, over C_f."""
    above = [10 ** (bound - np.log10(end)) for bound in (euclidean, of_sums) for end in (high, low)]
    assert min(above) >= 1
    names = ("euclidean_low", "euclidean_high", "sums_low", "sums_high")
    ratios = {"low": low / product, "high": high / product}
    return {"dataset": name, "n": n, **ratios, **dict(zip(names, above, strict=True))}


data = load("ocr", "dataset.folds=[1,2,3,4,5,6,7,8,9]")
x, n, K = np.asarray(data.x, float), data.n, data.n_labels
lengths = np.diff(data.offsets)
s = np.column_stack((np.add.reduceat(x, data.offsets[:-1], axis=0), lengths - 1))
assert (s >= 0).all()
squares = (s**2).sum(axis=1)
curvature, product = 2 * (s.mean(axis=0) ** 2).sum(), 2 * squares.mean()
i = lengths.argmax()
word = slice(data.offsets[i], data.offsets[i + 1])
mean = (np.eye(K)[data.y[word]] - 1 / K).T @ x[word]  # its part without transitions
largest = lengths[i] * np.log10(K) + np.log10((mean**2).sum())
# ‖ψ_i(y)‖² ≥ ‖s_i‖² where y is one letter that the word does not have
bounds = np.log10(2 / n) + largest, np.log10(4 * squares.max())
rows = [row("ocr", n, curvature, curvature, product, *bounds)]

data = load("usps")
x, n = np.asarray(data.x, float), data.n
squares = (x**2).sum(axis=1)
low, high = 2 * furthest(x), 2 * np.sqrt(squares).mean() ** 2
bounds = np.log10(2 / n * largest_eigenvalue(x, data.y, data.n_labels)), np.log10(8 * squares.max())
rows.append(row("usps", n, low, high, 2 * squares.mean(), *bounds))
keep("curvature/curvature", rows)
