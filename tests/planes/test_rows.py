"""Planes as rows: their storage as it grows, and exact passes in kernels over them."""

import copy

import helpers
import numpy as np
import pytest

from ssvm_bench.base import state
from ssvm_bench.oracles import alpha_expansion, mincut
from ssvm_bench.oracles.base import Plane, Problem
from ssvm_bench.planes import operations, rows

# Sums of 40 products below 10, in different orders: 40 · 10 · 2⁻⁵³ · 40 < 2e-12.
ROUNDING = 2e-12
D, N_TERMS = 40, 3


def storage_of(rng, count):
    """Return a storage of random planes, few and many of whose entries are 0, and them, dense."""
    blocks, dense = rows.allocate(N_TERMS, D), [[] for _ in range(N_TERMS)]
    for _ in range(count):
        i, size = int(rng.integers(N_TERMS)), int(rng.choice([0, 1, 3, 20, D]))
        indices = np.sort(rng.choice(D, size, replace=False))
        plane = Plane(indices, rng.normal(size=size), rng.normal())
        blocks = rows.put(blocks, i, plane)
        operations.insert(blocks, i, 1)
        row = np.zeros(D + 1)
        row[indices], row[-1] = plane.values, plane.offset
        if not any((row == other).all() for other in dense[i]):
            dense[i].append(row)
    return blocks, dense


@pytest.mark.parametrize("seed", range(4))
def test_planes_are_what_they_were_however_often_terms_have_moved(seed):
    rng = np.random.default_rng(seed)
    blocks, dense = storage_of(rng, 60)
    w, products = rng.normal(size=D), np.zeros(60)
    for again in (blocks, state.like(blocks, state.of(blocks))):
        for i, planes in enumerate(dense):
            assert again.n_planes[i] == len(planes)
            for p, plane in enumerate(planes):
                operations.gather(again, w, i)
                value = N_TERMS * plane @ np.append(w, 1.0)
                assert operations.plane_value(again, i, p) == pytest.approx(value, abs=ROUNDING)
                operations.inner_products(again, i, p, products)
                among = N_TERMS**2 * np.array(planes)[: p + 1, :-1] @ plane[:-1]
                np.testing.assert_allclose(products[: p + 1], among, atol=ROUNDING)


def test_an_empty_plane_needs_a_slot_too():
    blocks = rows.allocate(2, 5)
    blocks.n_planes[:] = 1
    nothing = (np.zeros(0, np.int64), np.zeros(0), 0.25)
    short = rows.set_candidate(blocks, 0, *nothing)
    assert any(short)
    blocks = rows.with_space(blocks, *short)
    assert rows.set_candidate(blocks, 0, *nothing) == (0, 0)
    assert blocks.offset[blocks.start[0] + 1] == 0.5
    assert blocks.offset[blocks.start[1]] == 0  # not the other term's plane


# ---- exact passes --------------------------------------------------------------------------------

CONFIGS = {
    "cuts": (2, mincut, mincut.Config("mincut", "mincut")),
    "cuts, a learned weight": (2, mincut, mincut.Config("mincut", "mincut", potts="learned")),
    "expansions": (3, alpha_expansion, alpha_expansion.Config("a", "alpha_expansion")),
    "expansions, a learned weight": (
        3,
        alpha_expansion,
        alpha_expansion.Config("a", "alpha_expansion", potts="learned"),
    ),
    "expansions from the last labeling": (
        3,
        alpha_expansion,
        alpha_expansion.Config("a", "alpha_expansion", warm_start=True),
    ),
}


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bcfw_avg", {}),
        ("mpbcfw", {"T": 1, "N": 3}),
        ("mpbcfw_fast", {}),
        ("mpbcfw_seconds", {}),
    ],
)
def test_a_pass_in_kernels_is_that_in_python(config, name, options, monkeypatch):
    monkeypatch.setattr(rows, "_AT_A_TIME", 4)
    K, module, of = CONFIGS[config]
    data = helpers.random_graphs([5, 3, 8, 1, 6, 4, 7, 5, 3], K, 6, seed=5)
    oracle = module.build(of, data)
    in_python = copy.copy(oracle)
    in_python.__class__ = type("Own", (type(oracle),), {})
    assert oracle.writing() is not None
    assert in_python.writing() is None
    one, other = (
        helpers.solver(Problem(each, 0.02), name, **options) for each in (oracle, in_python)
    )
    for _ in helpers.together(7, one, other):
        here, there = one.reported(), other.reported()
        np.testing.assert_array_equal(here.w, there.w)
        assert here.dual == there.dual
        for tally in ("oracle_calls", "approx_calls", "plane_evaluations"):
            assert getattr(one.clock, tally) == getattr(other.clock, tally)


@pytest.mark.parametrize("engine", ["compiled", "pymaxflow"])
def test_a_call_that_no_kernel_makes_is_made_in_python(engine):
    if engine == "pymaxflow":
        pytest.importorskip("maxflow")
    data = helpers.random_graphs([5, 3, 8], 3, 6, seed=5)
    made = {
        fixing: alpha_expansion.build(
            alpha_expansion.Config("a", "alpha_expansion", fixing, engine=engine), data
        )
        for fixing in (False, True)
    }
    assert made[True].writing() is None
    assert (made[False].writing() is None) == (engine == "pymaxflow")
