"""Oracle calls by others: the numbers are those of an oracle that calls itself."""

import itertools
import os
import signal
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from helpers import Plain, oracle, random_chains, random_graphs, solver

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.messages import shown_by
from ssvm_bench.oracles import prior as priors
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.caller import Caller
from ssvm_bench.oracles.workers import Chunks, Pool

LAM = 0.1
LENGTHS = [3, 1, 4, 2, 3, 2, 1, 3, 2, 4]


def chains():
    """Build the oracle of the tests, here or in a worker."""
    return oracle(random_chains(LENGTHS, 3, 2, seed=3))


def graphs():
    return oracle(random_graphs([4, 2, 4, 1, 4, 3, 3, 2], 2, 8, seed=8))


def plain_chains():
    return Plain(chains())


class Broken(Plain):
    def argmax(self, w, i):
        if w.any():
            raise ZeroDivisionError("of this oracle")
        return super().argmax(w, i)


def broken():
    return Broken(chains())


ORACLES = {"chains": chains, "graphs": graphs, "rows": plain_chains}


@pytest.fixture(scope="module")
def pools():
    """Return a started pool of two workers for each oracle of the tests."""
    made = {}
    with shown_by(pytest.fail):
        for name, build in ORACLES.items():
            made[name] = Pool(build, 2)
            made[name].start(build())
        yield made
    for pool in made.values():
        pool.close()


def rows_of(posed, name, passes=6, **options):
    """Return P, F, the clock's time, the calls and w after every iteration."""
    made, found = solver(posed, name, **options), []
    for _ in range(passes):
        made.iterate()
        w, dual = made.reported()
        found.append([posed.primal(w), dual, made.clock.now(), made.clock.oracle_calls, *w])
    return np.array(found)


SMALL = {"p_bmrm": {"P": 3}, "cutting_plane": {"accumulate": 4}}
ALL = (
    *("fw", "cutting_plane", "one_slack", "bmrm", "p_bmrm", "prox_bmrm"),
    *("bcfw", "mpbcfw", "mpbcfw_avg", "mpbcfw_need", "bcfw_gap", "ssg", "ssg_tail"),
)


@pytest.mark.parametrize(
    ("kind", "name"), [*itertools.product(ORACLES, ALL), ("rows", "dcd_online")]
)
def test_workers_find_what_the_oracle_finds_itself(pools, kind, name):
    options = SMALL.get(name, {})
    serial = rows_of(Problem(ORACLES[kind](), LAM), name, **options)
    called = rows_of(Problem(ORACLES[kind]().called_by(pools[kind]), LAM), name, **options)
    np.testing.assert_array_equal(called, serial)


@pytest.mark.parametrize("name", ["fw", "mpbcfw", "ssg"])
def test_they_do_so_under_a_prior(pools, name):
    prior = priors.Prior(np.full(15, 0.1), np.linspace(1, 2, 15))
    serial, called = (
        rows_of(Problem(prior.oracle(made), LAM), name)
        for made in (chains(), chains().called_by(pools["chains"]))
    )
    np.testing.assert_array_equal(called, serial)


@pytest.mark.parametrize("batch", [2, 3, 100])
@pytest.mark.parametrize("name", ["bcfw", "mpbcfw", "mpbcfw_pairwise", "mpbcfw_need"])
@pytest.mark.parametrize("kind", ORACLES)
def test_mini_batches_never_lower_the_dual_nor_lift_it_above_the_primal(kind, name, batch):
    posed = Problem(ORACLES[kind]().called_by(Caller(batch=batch)), LAM)
    rows = rows_of(posed, name, passes=40)
    primal, dual = rows[:, 0], rows[:, 1]
    assert (np.diff(dual) >= -1e-12).all()  # rounding of sums over all terms
    assert (dual <= primal + 1e-12).all()
    serial = rows_of(Problem(ORACLES[kind](), LAM), name, passes=40)
    assert dual[-1] >= 0.9 * serial[-1, 1]  # with all terms in a batch, BCFW is slower


def test_a_batch_is_asked_for_at_one_w():
    asked = []

    class Watching(Caller):
        calls_here = False

        def labelings(self, oracle, w, terms, loss=1.0):
            asked.append((w.copy(), terms.tolist()))
            return super().labelings(oracle, w, terms, loss)

    solver(Problem(chains().called_by(Watching(batch=4)), LAM), "bcfw").iterate()
    assert [len(terms) for _, terms in asked] == [4, 4, 2]
    assert sorted(itertools.chain(*(terms for _, terms in asked))) == list(range(10))
    assert not np.array_equal(asked[0][0], asked[1][0])


@pytest.mark.parametrize("kind", ["chains", "rows"])
@pytest.mark.parametrize("name", ["ssg", "ssg_weighted"])
def test_ssg_follows_the_mean_subgradient_of_a_batch(kind, name):
    data = ORACLES[kind]()
    called = data.called_by(Caller(batch=4))
    made, same = (
        solver(Problem(each, LAM), name, sampling="permutation") for each in (called, data)
    )
    v, k, average = np.zeros(data.d), 0, np.zeros(data.d)
    for _ in range(3):
        order = next(same._orders)
        for begin in range(0, order.size, 4):
            terms = order[begin : begin + 4]
            w = v / (LAM * max(k, 1))
            for i in terms.tolist():
                plane, _ = data.best_plane(w, i)
                v[plane.indices] -= data.n * plane.values / terms.size
            k += 1
            average += k * v / (LAM * k)
        made.iterate()
        expected = v / (LAM * k) if name == "ssg" else 2 * average / (k * (k + 1))
        np.testing.assert_allclose(made.reported().w, expected, rtol=1e-12, atol=1e-13)


def test_a_slow_oracle_costs_the_clock_its_delay_and_evaluations_nothing():
    posed = Problem(chains().called_by(Caller(delay=0.005)), LAM)
    clock = Clock("wall")
    clock.caller = posed.oracle.caller
    made = solver(posed, "mpbcfw", clock=clock)
    made.iterate()
    assert 10 * 0.005 <= clock.caller_seconds <= clock.now()
    assert clock.caller_seconds <= clock.caller_waited <= clock.now()
    assert clock.oracle_time >= 10 * 0.005
    seconds = clock.caller_seconds
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("time.sleep")
        posed.measured(made.reported().w)
    made.iterate()
    assert clock.caller_seconds - seconds >= 10 * 0.005


def test_workers_sleep_at_the_same_time(pools, monkeypatch):
    pool = pools["chains"]
    monkeypatch.setattr(pool, "delay", 0.1)
    before = pool.seconds, pool.waited
    pool.labelings(None, np.zeros(chains().inner_d), np.zeros(8, np.int64))
    seconds, waited = pool.seconds - before[0], pool.waited - before[1]
    assert seconds >= 8 * 0.1
    assert waited < 0.9 * seconds


def test_messages_are_small_where_calls_differ_and_large_where_they_do_not():
    def sizes(chunks):
        return [part.stop - part.start for part in chunks.parts(160)]

    equal, unequal = Chunks(4, 1e-4), Chunks(4, 1e-4)
    assert sizes(equal) == [10] * 16
    for k in range(50):
        equal.learn(2, 0.02)
        unequal.learn(2, 0.02 if k % 5 else 0.2)
    assert sizes(equal) == [40] * 4
    assert sizes(unequal) == [1] * 160
    assert sizes(Chunks(1, 1e-4)) == [160]


class Incorrect(Caller):
    """Answers as a worker of another program might."""

    calls_here = False

    def __init__(self, change):
        super().__init__()
        self.change = change

    def _ask(self, *about):
        labelings, seconds = super()._ask(*about)
        return [self.change(y) for y in labelings], seconds


@pytest.mark.parametrize("kind", ["chains", "graphs"])
@pytest.mark.parametrize(
    "change",
    [lambda y: y + np.uint8(200), lambda y: y[:-1], lambda y: y.astype(np.int64)],
    ids=["labels", "size", "type"],
)
def test_answers_of_others_are_checked_before_a_kernel_sees_them(kind, change):
    posed = Problem(ORACLES[kind]().called_by(Incorrect(change)), LAM)
    with pytest.raises(RunFailedError, match="its labeling"):
        posed.risk(np.zeros(posed.d))
    with pytest.raises(RunFailedError, match="its labeling"):
        solver(posed, "bcfw").iterate()


class Mortal(Plain):
    """Its worker dies in a call if a certain file is there, of which it removes one."""

    def argmax(self, w, i):
        with suppress(FileNotFoundError):
            Path(os.environ["SSVM_BENCH_MARKS"], "dies").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().argmax(w, i)


def mortal():
    return Mortal(chains())


def test_calls_of_a_worker_that_dies_are_made_again_by_others(tmp_path, monkeypatch):
    monkeypatch.setenv("SSVM_BENCH_MARKS", str(tmp_path))
    said = []
    pool = Pool(mortal, 2)
    made = mortal().called_by(pool)
    pool.start(made)
    try:
        (tmp_path / "dies").touch()
        with shown_by(said.append):
            found = pool.labelings(made, np.ones(made.inner_d), np.arange(10))
        expected = Plain(chains()).own_labelings(np.ones(made.d), np.arange(10), 1.0)
        assert all(map(np.array_equal, found, expected))
        assert len(said) == 1
        assert "signal 9" in said[0]
        assert len(pool._children) == 1
        (tmp_path / "dies").touch()
        with pytest.raises(RunFailedError, match=r"None of the 2 workers .* is left"):
            pool.labelings(made, np.ones(made.inner_d), np.arange(10))
    finally:
        pool.close()


def test_what_an_oracle_raises_in_a_worker_ends_the_run_and_its_workers():
    pool = Pool(broken, 2)
    made = broken().called_by(pool)
    pool.start(made)
    processes = [child.process for child in pool._children]
    with pytest.raises(RunFailedError, match="ZeroDivisionError: of this oracle"):
        made.risk(np.ones(made.d))
    assert all(process.poll() is not None for process in processes)
    pool.close()


def nothing():
    raise ConfigError("There are no such data.")


def test_what_the_building_of_an_oracle_raises_is_told():
    with pytest.raises(ConfigError, match="no such data"):
        Pool(nothing, 2).start(chains())
