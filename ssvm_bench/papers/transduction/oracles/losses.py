"""Losses of a label and scores, and their proximal steps: the look-up table (Laude et al., (13)).

.. code-block:: text

    B_il = argmin_β ℓ(l; β) + ρ/2 ‖β − c_i‖²,      u_il = the minimum,      c_i = K_i α + λ_i/ρ

==================  ================================================  ==========================
loss                ℓ(l; β)                                           β − c, with e_l a unit vector
==================  ================================================  ==========================
``softmax``         log Σ_k exp β_k − β_l                             (e_l − p)/ρ
``crammer_singer``  max_k (β_k + [k ≠ l]) − β_l                       (e_l − p)/ρ
``one_vs_all``      Σ_k max(0, 1 − s_k β_k), s_k = ±1, + for k = l    one hinge at a time
==================  ================================================  ==========================

**softmax.** p is the softmax of the minimiser. With a = c + e_l/ρ and t = log Σ_k exp β_k,
p_k = exp(a_k − p_k/ρ − t). So p_k = ρ ω(a_k − t − log ρ), where ω(x) solves ω + log ω = x, and one
scalar equation remains, Σ_k p_k = 1. Its left side is convex and falls in t. Its root is between
the t at which the largest p_k is 1 and the t at which it is 1/L. Halley's method finds it from the
last t of the same entry, safeguarded by bisection (Lapin, Hein, Schiele: Analysis and optimization
of loss functions for multiclass, top-k, and multilabel classification, PAMI 2017). **With two
labels** both scores move by the same amount in opposite directions. The margin z = β_l − β_k then
solves z = c_l − c_k + 2p/ρ with p = 1/(1 + exp z); Newton's method finds it from the last z.

**crammer_singer.** With θ_k = β_k + [k ≠ l] and a_k = c_k + [k ≠ l] + [k = l]/ρ, the step is that
of max_k θ_k: θ = min(a, t) for the t with Σ_k max(0, a_k − t) = 1/ρ, found by sorting.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.jit import abstract, implements, kernel

# mypy: disable-error-code="no-untyped-def"

_LAST_STEP = 1e-5
"""Halley's last step: of third order, and ω bends on a scale of 1, so its cube is the error."""

_LAST_MOVE = 1e-8
"""Newton's last step: the method is of second order, so the square of the step is the error."""

_MOST_STEPS = 100  # far more than needed: bisection alone finds the root in 60


class Softmax(NamedTuple):
    """The logistic loss of several classes; ``p`` is scratch, shape (L,)."""

    p: np.ndarray


class CrammerSinger(NamedTuple):
    """The hinge loss of several classes of Crammer and Singer; ``order`` is scratch, shape (L,)."""

    order: np.ndarray


class OneVsAll(NamedTuple):
    """A hinge loss for each label against the others; ``none`` is not used."""

    none: np.ndarray


LOSSES: dict[str, Callable[[np.ndarray], Any]] = {
    "softmax": Softmax,
    "crammer_singer": CrammerSinger,
    "one_vs_all": OneVsAll,
}
"""Name in the options → type."""


def build(name: str, n_labels: int) -> Any:
    """Return a loss over ``n_labels`` labels."""
    return LOSSES[name](np.zeros(n_labels))


@abstract
def value(loss, label, beta):
    """Return ℓ(label; β)."""


@abstract
def step(loss, label, c, rho, beta, guess):
    """Write argmin_β ℓ(label; β) + ρ/2 ‖β − c‖² into ``beta``.

    Returns
    -------
    minimum : float
    guess : float
        Where the next search may start, for a c nearby; the parameter is the last such guess.
    """


@kernel
def table(loss, c, rho, B, u, guess):
    """Write the look-up table of all points and labels.

    Parameters
    ----------
    loss : Softmax, CrammerSinger or OneVsAll
    c : ndarray of float64, shape (n, L)
    rho : float
    B, u : ndarrays of float64, shapes (n, L, L) and (n, L)
        Outputs: the minimisers and the minima.
    guess : ndarray of float64, shape (n, L)
        Where searches start; −∞ at first. Updated for the next call.
    """
    for i in range(c.shape[0]):
        for label in range(c.shape[1]):
            u[i, label], guess[i, label] = step(
                loss, label, c[i], rho, B[i, label], guess[i, label]
            )


@kernel
def steps(loss, y, c, rho, beta, guess):
    """Write the steps for given labels y into ``beta``, shape (n, L); ``guess`` has shape (n,)."""
    for i in range(y.size):
        _, guess[i] = step(loss, y[i], c[i], rho, beta[i], guess[i])


@kernel
def values(loss, beta, of):
    """Write ℓ(l; β_i) of all points and labels into ``of``, shape (n, L)."""
    for i in range(beta.shape[0]):
        for label in range(beta.shape[1]):
            of[i, label] = value(loss, label, beta[i])


@kernel
def total(loss, y, beta):
    """Return Σ_i ℓ(y_i; β_i)."""
    found = 0.0
    for i in range(y.size):
        found += value(loss, y[i], beta[i])
    return found


# ---- softmax ------------------------------------------------------------------------------------


@implements(value, Softmax)
def _softmax_value(loss, label, beta):
    top = beta[0]
    for k in range(1, beta.size):
        top = max(top, beta[k])
    mass = 0.0
    for k in range(beta.size):
        mass += math.exp(beta[k] - top)
    return (top - beta[label]) + math.log(mass)


@implements(step, Softmax)
def _softmax_step(loss, label, c, rho, beta, guess):
    L, length = c.size, 1.0 / rho
    if L == 2:
        z = _margin(c[label] - c[1 - label], rho, guess)
        p = _logistic(z)
        beta[label] = c[label] + p * length
        beta[1 - label] = c[1 - label] - p * length
        loss_there = math.log1p(math.exp(-z)) if z > 0.0 else math.log1p(math.exp(z)) - z
        return loss_there + length * p * p, z
    for k in range(L):
        beta[k] = c[k] + (length if k == label else 0.0)  # a, until p is known
    t = _log_normaliser(beta, rho, guess, loss.p)
    square = 0.0
    for k in range(L):
        p = loss.p[k]
        beta[k] -= p * length
        square += (1.0 - p) ** 2 if k == label else p * p
    p = loss.p[label]  # exp(β_l − t), whose logarithm is exact even if β_l and t are large
    return (-math.log(p) if p > 0.0 else t - beta[label]) + 0.5 * length * square, t


@kernel
def _logistic(z):
    """Return 1/(1 + exp z)."""
    small = math.exp(-abs(z))
    return (small if z > 0.0 else 1.0) / (1.0 + small)


@kernel
def _margin(start, rho, guess):
    """Return the z with z − start = 2/ρ · 1/(1 + exp z), from a guess.

    The difference of the sides is concave on one side of z = 0 and convex on the other; its sign
    at 0 gives the root's side. There, Newton's steps after the first approach from one direction.
    """
    low, high = max(start, 0.0), start + 2.0 / rho
    if rho * start < -1.0:
        low, high = start, 0.0
    z = min(max(guess, low), high)
    for _ in range(_MOST_STEPS):
        p = _logistic(z)
        before = z
        z -= (0.5 * rho * (z - start) - p) / (0.5 * rho + p * (1.0 - p))
        z = min(max(z, low), high)
        if abs(z - before) <= _LAST_MOVE * max(1.0, abs(z)):
            break
    return z


@kernel
def _log_normaliser(a, rho, guess, p):
    """Return the t with Σ_k ρ ω(a_k − t − log ρ) = 1, and write the summands into ``p``."""
    L, top, log_rho = a.size, a[0], math.log(rho)
    for k in range(1, L):
        top = max(top, a[k])
    low = top - 1.0 / rho
    high = top + math.log(L) - 1.0 / (L * rho)
    t = before = min(max(guess, low), high)
    for _ in range(_MOST_STEPS):
        excess, slope, bend = -1.0, 0.0, 0.0
        for k in range(L):
            p[k] = omega(a[k] - t - log_rho)
            one = 1.0 / (1.0 + p[k])
            share = rho * p[k]
            excess += share
            slope -= share * one
            bend += share * one * one * one
        if excess > 0.0:
            low = t
        else:
            high = t
        before = t
        t -= 2.0 * excess * slope / (2.0 * slope * slope - excess * bend)
        if not low <= t <= high:
            t = 0.5 * (low + high)
        if abs(t - before) <= _LAST_STEP:
            break
    last = t - before
    for k in range(L):  # p after the last step, to second order: ω' = ω/(1 + ω), ω'' = ω/(1 + ω)³
        one = 1.0 / (1.0 + p[k])
        p[k] *= rho * (1.0 - last * one * (1.0 - 0.5 * last * one * one))
    return t


@kernel
def omega(x):
    """Return the ω > 0 with ω + log ω = x (Wright's function; Lawrence, Corless, Jeffrey 2012)."""
    if x < -18.0:
        w = math.exp(x)
        return w * (1.0 - w)
    if x < -2.0:
        w = math.exp(x)
    elif x < 1.0:
        w = math.exp((x - 1.0) * (2.0 / 3.0))
    elif x < 4.0:
        w = 1.0 + (x - 1.0) * (0.5 + (x - 1.0) * 0.0625)
    else:
        w = math.log(x)
        w = x - w + w / x
    for _ in range(2):  # steps of fourth order
        r = x - w - math.log(w)
        y = 2.0 * (1.0 + w) * (1.0 + w + r * (2.0 / 3.0))
        w *= 1.0 + r / (1.0 + w) * (y - r) / (y - 2.0 * r)
    return w


# ---- Crammer and Singer -------------------------------------------------------------------------


@implements(value, CrammerSinger)
def _crammer_singer_value(loss, label, beta):
    top = beta[label]
    for k in range(beta.size):
        if k != label:
            top = max(top, beta[k] + 1.0)
    return top - beta[label]


@implements(step, CrammerSinger)
def _crammer_singer_step(loss, label, c, rho, beta, guess):
    L, length, order = c.size, 1.0 / rho, loss.order
    for k in range(L):  # a, in falling order
        a = c[k] + (length if k == label else 1.0)
        place = k
        while place > 0 and order[place - 1] < a:
            order[place] = order[place - 1]
            place -= 1
        order[place] = a
    mass, t = 0.0, 0.0
    for k in range(L):
        mass += order[k]
        t = (mass - length) / (k + 1)
        if k + 1 == L or order[k + 1] <= t:
            break
    square = 0.0
    for k in range(L):
        margin = 0.0 if k == label else 1.0
        a = c[k] + (length if k == label else 1.0)
        beta[k] = min(a, t) - margin
        square += (beta[k] - c[k]) ** 2
    return t - beta[label] + 0.5 * rho * square, t


# ---- one against all ----------------------------------------------------------------------------


@implements(value, OneVsAll)
def _one_vs_all_value(loss, label, beta):
    found = 0.0
    for k in range(beta.size):
        found += max(0.0, 1.0 - (beta[k] if k == label else -beta[k]))
    return found


@implements(step, OneVsAll)
def _one_vs_all_step(loss, label, c, rho, beta, guess):
    length, found = 1.0 / rho, 0.0
    for k in range(c.size):
        sign = 1.0 if k == label else -1.0
        z = sign * c[k]
        moved = max(z, min(1.0, z + length))
        beta[k] = sign * moved
        found += max(0.0, 1.0 - moved) + 0.5 * rho * (moved - z) ** 2
    return found, guess
