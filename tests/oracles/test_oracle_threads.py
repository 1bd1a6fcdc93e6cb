"""Oracles that several threads call: the bits of one thread, errors, and which oracles cannot."""

import numpy as np
import pytest
from helpers import Plain, oracle, random_chains, random_graphs, random_multiclass, solver

from ssvm_bench.base import threads
from ssvm_bench.base.threads import Team
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.caller import Caller
from ssvm_bench.oracles.weighted import Weighted

LAM = 0.1
CHAINS = random_chains([3, 1, 4, 2, 3, 2, 1, 3, 2, 4], 3, 2, seed=3)
ORACLES = {
    "chains": lambda: oracle(CHAINS),
    "words": lambda: oracle(random_chains([3, 1, 4, 2, 3], 3, 17_000)),  # rows for w ≠ 0
    "multiclass": lambda: oracle(random_multiclass(12, 5, 3, seed=4)),
    "mincut": lambda: oracle(random_graphs([4, 2, 4, 1, 4, 3, 3, 2], 2, 8, seed=8)),
    "expansion": lambda: oracle(random_graphs([4, 2, 4, 1, 4, 3, 3, 2], 3, 8, seed=8)),
    "weighted": lambda: Weighted(oracle(CHAINS), np.linspace(0.5, 2.0, CHAINS.n)),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Let every pass be worth several threads, which take a term at a time."""
    monkeypatch.setattr(threads, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(threads, "_LEAST_ITEM", 0.0)


def evaluated(made, w):
    """Return all numbers of an evaluation."""
    primal, of_calls = Problem(made, LAM).measured(w)
    value, star, offset = made.risk(w)
    part = made.risk(w, terms=range(2, made.n - 1))
    numbers = [primal, *of_calls.values(), value, offset, *star, part.value, *part.star]
    return np.array([*numbers, made.mean_loss(w), *made.predictions(w), *made.upper_bounds(w)])


@pytest.mark.processors
@pytest.mark.parametrize("kind", ORACLES)
def test_an_evaluation_has_the_bits_of_one_thread(kind):
    made = ORACLES[kind]()
    assert made.takes_threads
    if not made.exact:
        made.upper_bound(np.zeros(made.d), 0)  # compiled before threads begin
    for k in range(3):
        rng = np.random.default_rng(k)
        w = rng.normal(size=made.d) * (rng.random(made.d) < 0.5)
        expected = evaluated(made, w)
        for size in (2, 3):
            with Team(size) as team, team.working():
                np.testing.assert_array_equal(evaluated(made, w), expected)


@pytest.mark.parametrize("name", ["bmrm", "one_slack", "mpbcfw", "ssg"])
@pytest.mark.parametrize("kind", ["chains", "mincut"])
def test_a_solver_has_the_bits_of_one_thread(kind, name):
    def rows(size):
        with Team(size) as team:
            posed = Problem(ORACLES[kind]().called_by(Caller(batch=4, team=team)), LAM)
            made, found = solver(posed, name), []
            for _ in range(5):
                made.iterate()
                w, dual = made.reported()
                found.append([posed.primal(w), dual, made.clock.now(), *w])
            assert made.problem.oracle.caller.seconds > 0 < made.problem.oracle.caller.waited
        return np.array(found)

    expected = rows(1)
    for size in (2, 3):
        np.testing.assert_array_equal(rows(size), expected)


def test_a_term_that_is_drawn_twice_is_called_once():
    made = ORACLES["mincut"]().called_by(Caller(team=Team(2)))
    terms, w = np.array([3, 0, 3, 3, 5, 0]), np.linspace(-1, 1, made.d)
    found = made.caller.labelings(made, w, terms)
    made.caller.close()
    assert all(map(np.array_equal, found, made.own_labelings(w, terms, 1.0)))


class Broken(Plain):
    """An oracle of a plug-in that says that threads may call it, and fails at two examples."""

    takes_threads = True

    def argmax(self, w, i):
        if i in (4, 7):
            raise ZeroDivisionError(f"of example {i}")
        return super().argmax(w, i)


def test_what_an_oracle_raises_in_a_thread_is_raised():
    made = Broken(ORACLES["multiclass"]())
    with Team(3) as team, team.working():
        for _ in range(10):
            with pytest.raises(ZeroDivisionError, match="of example 4"):
                made.risk(np.ones(made.d))


def test_a_plug_in_is_called_by_one_thread():
    made = Plain(ORACLES["chains"]())
    with Team(2) as team, team.working():
        assert not made.takes_threads
        assert made.team.size == 1
