"""What people are told about a turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from nightherd.engine.chat.turn_texts import call_text, summary_text, wait_text
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.journal.event import ToolUseEvent
from nightherd.model.units import MicroUsd
from nightherd.testing.state_values import submit

JOB: Job = replace(submit(1).job, status=JobStatus.SUSPENDED)
SIX = datetime(2026, 11, 19, 18, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "until", "message", "text"),
    [
        (
            SuspendReason.RATE_LIMIT,
            SIX,
            "5-hour limit",
            "The provider limits how much may be asked: 5-hour limit. "
            "I go on by myself at 2026-11-19 18:00 UTC.",
        ),
        (SuspendReason.APPROVAL, None, "Bash: git push", "I wait for a person: Bash: git push."),
        (
            SuspendReason.LIMIT,
            None,
            "2 of 2 turns.",
            "A limit was reached; I wait for a person to raise it: 2 of 2 turns.",
        ),
        (SuspendReason.ERROR, None, None, "Something went wrong; I wait for a person."),
    ],
)
def test_a_wait_names_its_reason_and_its_end(
    reason: SuspendReason, until: datetime | None, message: str | None, text: str
) -> None:
    job = replace(JOB, suspend_reason=reason, not_before=until)
    assert wait_text(job, message) == text


@pytest.mark.parametrize("reason", SuspendReason)
def test_every_reason_has_words(reason: SuspendReason) -> None:
    assert wait_text(replace(JOB, suspend_reason=reason), None)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"command": "ls `pwd`\nrm x"}, "**Bash** `ls 'pwd' rm x`"),
        ({"x": 1}, '**Bash** `{"x": 1}`'),
        ({}, "**Bash**"),
        (None, "**Bash**"),
        ({"command": "y" * 100}, f"**Bash** `{'y' * 59}…`"),
    ],
)
def test_a_call_is_one_line_that_obeys_no_markdown(given: object, text: str) -> None:
    assert call_text(ToolUseEvent(tool_name="Bash", input=given)) == text


def test_a_summary_has_turns_tokens_money_and_time() -> None:
    job = replace(
        JOB,
        turns=3,
        input_tokens=1_200,
        cost_microusd=MicroUsd(42_000),
        started_at=SIX,
        finished_at=SIX + timedelta(seconds=75),
    )
    assert summary_text(job) == "*3 turns · 1,200 tokens · $0.042 · 1m15s*"
