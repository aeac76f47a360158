"""Advice that can be followed as it is: a number that lets the job go on, the key that is missing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nightherd.model.ids import JobId
from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason, TriggerType
from nightherd.next_step import Action, Advice, NextStep

JOB = JobId("job-2026-11-15-aaaaaa")


def waiting(code: str, error: str) -> Job:
    return Job(
        id=JOB,
        agent="digger",
        trigger_type=TriggerType.MANUAL,
        status=JobStatus.SUSPENDED,
        suspend_reason=SuspendReason.LIMIT,
        created_at=datetime(2026, 11, 15, tzinfo=UTC),
        error_code=code,
        error=error,
    )


@pytest.mark.parametrize(
    ("code", "error", "raised"),
    [
        (
            "spend_exceeded",
            "spend: the next turn could bring it to $0.60, of the job's limit of $0.50",
            "spend=1.20",
        ),
        ("spend_exceeded", "spend: $1,250.00, of the job's limit of $1,200.00", "spend=2500.00"),
        ("turns_exceeded", "turns: 3, of the job's limit of 3", "turns=6"),
        ("tokens_exceeded", "tokens: 12,345, of the job's limit of 10,000", "tokens=24690"),
        ("duration_exceeded", "duration: 1m30s, of the job's limit of 1m", "duration=3m"),
        ("turns_exceeded", "", "turns"),
    ],
)
def test_the_maximum_is_twice_what_was_met(code: str, error: str, raised: str) -> None:
    limit, _, maximum = raised.partition("=")
    step = NextStep(Action.RAISE_JOB_LIMIT, job=JOB, limit=limit, maximum=maximum or None)
    assert advice_on(waiting(code, error)) == Advice(step=step)


def test_a_missing_key_is_advised_by_its_own_name() -> None:
    advice = advice_on(waiting("missing_api_key", "no key: OPENAI_API_KEY is not set"))

    assert advice.words == (
        "export OPENAI_API_KEY, or set it in .env beside the fleet file, then resume the job"
    )
    assert advice.step is not None
    assert (advice.step.action, advice.step.job) == (Action.RESUME_JOB, JOB)
    other = advice_on(waiting("missing_api_key", "Not logged in"))
    assert "claude /login" in (other.words or "")
