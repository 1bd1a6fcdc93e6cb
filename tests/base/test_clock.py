"""The clock's three kinds, against a time that the test moves by hand."""

from types import SimpleNamespace

import pytest

from ssvm_bench.base.clock import Clock


@pytest.fixture
def hands(monkeypatch):
    """Return both of a machine's times; CPU time runs at half the speed of wall time."""
    hands = SimpleNamespace(seconds=100.0)
    times = SimpleNamespace(
        perf_counter=lambda: hands.seconds, process_time=lambda: 0.5 * hands.seconds
    )
    monkeypatch.setattr("ssvm_bench.base.clock.time", times)
    return hands


# All seconds below are multiples of 1/8, which floating point represents exactly.


@pytest.mark.parametrize(("kind", "speed"), [("wall", 1.0), ("cpu", 0.5)])
def test_time_starts_at_zero_and_runs(hands, kind, speed):
    clock = Clock(kind)
    assert clock.now() == 0
    hands.seconds += 2
    assert clock.now() == 2 * speed
    hands.seconds += 3
    assert clock.now() == 5 * speed


@pytest.mark.parametrize("kind", ["wall", "cpu", "work"])
def test_paused_time_does_not_count_and_both_times_are_kept_whatever_the_kind(hands, kind):
    clock = Clock(kind, cost_call=1, cost_plane=1)
    for seconds in (2, 1):
        hands.seconds += seconds
        with clock.paused():
            before = clock.now()
            hands.seconds += 40
            assert clock.now() == before
    assert (clock.wall(), clock.cpu()) == (3, 1.5)


def test_the_clock_goes_on_after_an_error_in_a_pause(hands):
    clock = Clock("wall")

    def fail():
        hands.seconds += 1
        raise KeyError

    with pytest.raises(KeyError), clock.paused():
        fail()
    hands.seconds += 2
    assert clock.now() == 2


@pytest.mark.parametrize(("kind", "speed"), [("wall", 1.0), ("cpu", 0.5)])
def test_oracle_time_is_the_oracles_share_of_the_exact_calls(hands, kind, speed):
    clock = Clock(kind)
    with clock.exact(10):  # all of it, unless the block says otherwise
        hands.seconds += 2
    hands.seconds += 5
    with clock.exact(10) as made:
        hands.seconds += 4
        made.calls, made.share = 8, 0.25
    clock.approximate(3, 3)
    assert clock.oracle_time == (2 + 0.25 * 4) * speed
    assert clock.oracle_calls == 18
    assert clock.now() == 11 * speed


def test_work_counts_calls_plane_evaluations_and_visits_only(hands):
    clock = Clock("work", cost_call=0.5, cost_plane=0.125, cost_visit=2.0)
    without = Clock("work", cost_call=0.5, cost_plane=0.125)
    for counted in (clock, without):
        with counted.exact(5) as made:
            hands.seconds += 1000
            made.calls, made.share = 3, 0.01
        counted.approximate(4, 7)
        with counted.paused():
            hands.seconds += 1000
    tallies = (clock.oracle_calls, clock.approx_calls, clock.plane_evaluations)
    assert tallies == (3, 4, 7)
    assert without.now() == 3 * 0.5 + 7 * 0.125
    assert clock.now() == without.now() + (3 + 4) * 2.0
    assert clock.oracle_time == without.oracle_time == 3 * 0.5
