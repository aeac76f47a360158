"""What `jobs show` says of a job's limits: what it may use now, and what it has used by now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus, TriggerType
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.limits.limits import BOUNDLESS, LimitName, Used
from nightherd.model.units import MicroUsd
from nightherd.views.costs.limits import LimitView, limits_of_job
from nightherd.views.jobs.checkpoints import with_checkpoint_totals

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
ID = JobId("job-2026-03-04-aaaaaa")
JOB = ObservedJob(
    id=ID,
    agent="coder",
    trigger_type=TriggerType.MANUAL,
    status=JobStatus.RUNNING,
    created_at=NOW,
    started_at=NOW,
    worked=timedelta(milliseconds=1_500),
)
LAST = Checkpoint(
    id=f"{ID}/3",
    job_id=ID,
    number=3,
    epoch=1,
    seq=9,
    trigger="post_llm",
    status="running",
    created_at=NOW,
    turn=2,
    cost_microusd=MicroUsd(400_000),
    duration_ms=1_500,
    header={"limits": {"spend": 500_000, "turns": 9, "duration": 60_000}},
)


def amounts(found: list[LimitView]) -> dict[LimitName, tuple[int, int | None]]:
    return {one.name: (one.maximum, one.used) for one in found}


def test_a_running_job_has_used_what_its_last_checkpoint_says() -> None:
    found = limits_of_job(JOB, LAST, Used(spend=50_000))

    assert amounts(found) == {
        LimitName.SPEND: (500_000, 450_000),
        LimitName.TURNS: (9, 2),
        LimitName.DURATION: (60_000, 1_500),
    }


def test_a_running_job_has_come_to_what_its_last_checkpoint_says() -> None:
    last = replace(LAST, input_tokens=70, output_tokens=30)
    behind = replace(JOB, turns=1, input_tokens=99, cost_microusd=MicroUsd(1))

    found = with_checkpoint_totals(behind, last)

    assert (found.turns, found.cost_microusd) == (2, MicroUsd(400_000))
    assert (found.input_tokens, found.output_tokens) == (99, 30)


@pytest.mark.parametrize("status", [JobStatus.SUSPENDED, JobStatus.COMPLETED, JobStatus.FAILED])
def test_the_row_of_a_job_that_nobody_runs_is_right(status: JobStatus) -> None:
    job = replace(JOB, status=status)

    assert with_checkpoint_totals(job, LAST) == job
    assert with_checkpoint_totals(JOB, None) == JOB


def test_what_is_on_its_row_counts_where_that_is_more() -> None:
    job = replace(JOB, cost_microusd=MicroUsd(480_000), turns=3)

    found = limits_of_job(job, LAST, Used())

    assert amounts(found)[LimitName.SPEND] == (500_000, 480_000)
    assert amounts(found)[LimitName.TURNS] == (9, 3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"spend": 2_000_000}, (2_000_000, 400_000)),
        ({"spend": BOUNDLESS}, None),
        ({"tokens": 7}, (500_000, 400_000)),
    ],
)
def test_what_was_raised_counts_before_the_next_checkpoint_says_so(
    given: dict[str, int], expected: tuple[int, int] | None
) -> None:
    found = amounts(limits_of_job(JOB, LAST, Used(), given=given))

    assert found.get(LimitName.SPEND) == expected
    assert (LimitName.TOKENS in found) is ("tokens" in given)


def test_a_job_that_waits_for_its_first_worker_says_what_it_was_given() -> None:
    job = replace(JOB, status=JobStatus.PENDING, started_at=None)

    assert amounts(limits_of_job(job, None, Used(), given={"turns": 3})) == {
        LimitName.TURNS: (3, 0)
    }
    assert limits_of_job(job, None, Used()) == []
