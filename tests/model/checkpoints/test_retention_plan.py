"""Which checkpoints go: too many, too old, of a job that is over; never what is needed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nightherd.model.checkpoints.checkpoint import Checkpoint, checkpoint_id
from nightherd.model.checkpoints.persistence import Cleanup, OnCompletion, Retention
from nightherd.model.checkpoints.retention import JobPlan, Needed, Reason, plan
from nightherd.model.jobs.job import ExitReason, Job, JobStatus
from nightherd.testing.state_values import BEGINNING, submit

NOW = BEGINNING + timedelta(days=30)
KEEP = Retention(action=OnCompletion.KEEP)
LIVE = replace(submit(1).job, status=JobStatus.SUSPENDED)
OVER = replace(LIVE, status=JobStatus.COMPLETED, exit_reason=ExitReason.SUCCESS)


def checkpoints(*ages: int) -> list[Checkpoint]:
    """One for each age in days, ten lines apart."""
    return [
        Checkpoint(
            id=checkpoint_id(LIVE.id, number),
            job_id=LIVE.id,
            number=number,
            epoch=1,
            seq=10 * number,
            trigger="post_llm",
            status="running",
            created_at=NOW - timedelta(days=age),
        )
        for number, age in enumerate(ages, start=1)
    ]


def planned(job: Job, ages: list[int], retention: Retention, *forks: int) -> JobPlan:
    return plan(job, checkpoints(*ages), retention, now=NOW, forked_at=forks)


def test_the_oldest_beyond_the_number_go() -> None:
    found = planned(LIVE, [0] * 13, KEEP)

    assert found.going == ((1, Reason.TOO_MANY), (2, Reason.TOO_MANY), (3, Reason.TOO_MANY))


def test_the_old_go_but_for_the_last_few() -> None:
    found = planned(LIVE, [20, 8, 7, 9, 9, 9], KEEP)

    assert found.going == ((1, Reason.TOO_OLD), (2, Reason.TOO_OLD))


def test_age_counts_only_where_cleaning_up_is_on() -> None:
    off = replace(KEEP, cleanup=Cleanup(enabled=False))

    assert planned(LIVE, [20] * 6, off).is_empty


@pytest.mark.parametrize(
    ("action", "archived", "deleted"),
    [(OnCompletion.ARCHIVE, True, False), (OnCompletion.DELETE, False, True)],
)
def test_all_of_a_job_that_is_over_go(action: OnCompletion, archived: bool, deleted: bool) -> None:
    found = planned(OVER, [0, 0, 0], Retention(action=action))

    assert found.numbers == (1, 2, 3)
    assert {why for _, why in found.going} == {Reason.COMPLETED}
    assert (found.is_archived, found.is_deleted) == (archived, deleted)


def test_a_job_that_is_over_may_keep_its_own() -> None:
    assert planned(OVER, [0, 0, 0], KEEP).is_empty


def test_the_last_one_of_a_live_job_stays_whatever_is_said() -> None:
    none = Retention(max_checkpoints=1, cleanup=Cleanup(keep_last_n=0, delete_older_than_days=0))

    found = planned(LIVE, [9, 9, 9], none)

    assert found.numbers == (1, 2)
    assert found.needed == ((3, Needed.LIVE),)


def test_the_place_of_a_branch_stays() -> None:
    found = planned(OVER, [0, 0, 0, 0], Retention(), 15, 40)

    assert found.numbers == (1, 3)
    assert found.needed == ((2, Needed.FORK), (4, Needed.FORK))


@given(
    ages=st.lists(st.integers(0, 30), max_size=30),
    most=st.integers(1, 12),
    last=st.integers(0, 6),
    days=st.integers(0, 20),
    is_live=st.booleans(),
    forks=st.lists(st.integers(0, 320), max_size=3),
    action=st.sampled_from(OnCompletion),
)
def test_no_plan_touches_what_is_needed_or_leaves_too_many(
    ages: list[int],
    most: int,
    last: int,
    days: int,
    is_live: bool,
    forks: list[int],
    action: OnCompletion,
) -> None:
    cleanup = Cleanup(keep_last_n=last, delete_older_than_days=days)
    retention = Retention(max_checkpoints=most, cleanup=cleanup, action=action)
    job = LIVE if is_live else OVER

    found = planned(job, ages, retention, *forks)

    assert set(found.numbers).isdisjoint(number for number, _ in found.needed)
    assert set(found.numbers) <= set(range(1, len(ages) + 1))
    left = len(ages) - len(found.going)
    assert left <= most + len(found.needed)
    if is_live and ages:
        assert len(ages) not in found.numbers
        assert not found.is_archived
        assert not found.is_deleted
