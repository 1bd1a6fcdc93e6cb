"""A team of threads: the order of sums, errors in a part, and what is left behind."""

import threading
import time

import pytest

from ssvm_bench.base import interrupts, threads
from ssvm_bench.base.threads import ALONE, Team


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Let every piece of work be worth several threads, and have parts of one item."""
    monkeypatch.setattr(threads, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(threads, "_LEAST_ITEM", 0.0)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_every_item_is_done_once_and_added_in_order(size):
    with Team(size) as team:
        for count in (0, 1, 2, 7, 300):
            done, added, numbers = [], [], set()

            def call(number, begin, end, done=done, numbers=numbers):
                time.sleep(1e-5 * ((7 * begin) % 5))
                done.extend(range(begin, end))
                numbers.add(number)

            team.share(count, call, lambda begin, end, added=added: added.extend(range(begin, end)))
            assert sorted(done) == added == list(range(count))
            assert numbers <= set(range(size))


@pytest.mark.parametrize("where", ["call", "add"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_first_error_in_order_is_raised_and_the_team_works_on(size, where):
    def fails(at):
        def fail(*about):
            begin, end = about[-2:]
            for k in range(begin, end):
                if k % 50 == at:
                    raise ZeroDivisionError(k)

        return fail

    for at in (0, 13, 49):
        with Team(size) as team:
            added = [-1]
            steps = {"call": lambda *_: None, "add": lambda begin, _, to=added: to.append(begin)}
            with pytest.raises(ZeroDivisionError) as raised:
                team.share(200, **{**steps, where: fails(at)})
            assert raised.value.args == (at,)
            assert max(added) < at
            team.share(10, lambda *_: None)


def test_threads_start_when_they_are_needed_and_end_with_the_team(monkeypatch):
    before = {*threading.enumerate()}
    with Team(3) as team:
        monkeypatch.setattr(threads, "_LEAST_SECONDS", 1.0)
        team.share(10, lambda *_: None)
        assert not {*threading.enumerate()} - before
        monkeypatch.setattr(threads, "_LEAST_SECONDS", 0.0)
        team.share(10, lambda *_: None)
        started = {*threading.enumerate()} - before
        assert len(started) == 2
    for thread in started:
        thread.join(60)
        assert not thread.is_alive()


def test_a_team_works_with_the_threads_that_the_system_allows(monkeypatch):
    start, started = threading.Thread.start, []

    def limited(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with Team(4) as team:
        for _ in range(2):
            added = []
            team.share(50, lambda *_: None, lambda *part, added=added: added.append(part))
            assert [begin for begin, _ in added[1:]] == [end for _, end in added[:-1]]
            assert added[-1][1] == 50
    started[0].join(10)
    assert not started[0].is_alive()


def test_the_calls_of_a_team_find_no_team():
    found = []
    with Team(2) as team, team.working():
        assert threads.current() is team
        team.share(20, lambda *_: found.append(threads.current()))
    assert set(found) == {ALONE} == {threads.current()}


def test_a_second_signal_ends_the_work_before_its_next_part(monkeypatch):
    done = []

    def call(number, begin, end):
        done.append(begin)
        interrupts._current.count = 2

    with Team(2) as team, interrupts.deferred() as arrived:
        with pytest.raises(interrupts.EndedEarlyError):
            team.share(1000, call)
        assert len(done) <= 2
        arrived.answered = True


@pytest.mark.parametrize("least", [0.0, 1.0])
def test_threads_do_not_wait_for_the_interpreter_at_each_short_item(least, monkeypatch):
    monkeypatch.setattr(threads, "_LEAST_ITEM", least)
    with Team(2) as team:
        for by_item in (False, True):
            numbers = set()

            def call(number, begin, end, numbers=numbers):
                numbers.add(number)
                time.sleep(1e-3 * (end - begin))

            team.share(50, call, by_item=by_item)
            assert numbers == ({0} if by_item and least else {0, 1})


def test_there_are_no_more_threads_than_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads.usual() == threads.available() >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads.usual() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")
    assert threads.usual() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "few")
    assert threads.usual() == threads.available()
