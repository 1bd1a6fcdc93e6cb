"""Planes that are sparse rows: mixtures of them, and inner products between them."""

from __future__ import annotations

from ssvm_bench.base.jit import implements
from ssvm_bench.base.linalg import dot, dot_at
from ssvm_bench.planes import operations
from ssvm_bench.planes.rows import Rows, plane

# mypy: disable-error-code="no-untyped-def"


@implements(operations.present_value, Rows)
def _present_value(blocks, i):
    phi = blocks.phi[blocks.support_start[i] :]
    return dot(phi, blocks.w_here, blocks.size[i]) + blocks.circ[i]


@implements(operations.set_direction_of_mixture, Rows)
def _set_direction_of_mixture(blocks, i, own, change):
    phi = blocks.phi[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.delta[k] = own * phi[k]
    for p in range(blocks.n_planes[i]):
        if change[p] != 0.0:
            places, values = plane(blocks, i, p)
            for k in range(values.size):
                blocks.delta[places[k]] += change[p] * values[k]


@implements(operations.inner_products, Rows)
def _inner_products(blocks, i, p, row):
    for k in range(blocks.size[i]):
        blocks.delta[k] = 0.0
    places, values = plane(blocks, i, p)
    for k in range(values.size):
        blocks.delta[places[k]] = values[k]
    for q in range(p + 1):
        others, factors = plane(blocks, i, q)
        row[q] = dot_at(factors, others, blocks.delta)


@implements(operations.product_with_term, Rows)
def _product_with_term(blocks, i, p):
    places, values = plane(blocks, i, p)
    return dot_at(values, places, blocks.phi[blocks.support_start[i] :])
