"""Beats: looks that are so and so far apart fall together, and none waits for longer than it said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.engine.jobs.oversight import IDLE_LOOK_S
from nightherd.engine.schedules.scheduler import LOOK_S
from nightherd.engine.workers.lease import Beats
from nightherd.engine.workers.worker import EXPIRE_S, IDLE_S, WAKE_S

BEGUN = 1_000.25


def beats_at(*later_s: float) -> Beats:
    """Beats that are asked once at their beginning, and then so much later each."""
    times = iter([BEGUN, *(BEGUN + later for later in later_s)])
    beats = Beats(lambda: next(times))
    assert beats.left_s(IDLE_S) == IDLE_S
    return beats


def test_those_who_begin_to_wait_at_different_times_are_woken_together() -> None:
    beats = beats_at(0.5625, 0.75, 0.875)

    ends = [later + beats.left_s(1.0) for later in (0.5625, 0.75, 0.875)]

    assert ends == [1.0, 1.0, 1.0]


def test_one_who_is_woken_a_little_late_waits_for_the_next_moment() -> None:
    assert beats_at(2.001).left_s(0.25) == pytest.approx(0.249)


@given(later_s=st.floats(0, 1e7), every_s=st.sampled_from([0.1, 0.2, 0.25, 1.0, 10.0 / 3, 30.0]))
def test_nobody_waits_for_longer_than_was_said_nor_not_at_all(
    later_s: float, every_s: float
) -> None:
    assert 0 < beats_at(later_s).left_s(every_s) <= every_s


@pytest.mark.parametrize("every_s", [IDLE_LOOK_S, WAKE_S, EXPIRE_S, LOOK_S])
def test_every_look_of_an_idle_worker_falls_on_one_for_jobs(every_s: float) -> None:
    """Else it is woken for each of them apart."""
    assert every_s % IDLE_S == 0
