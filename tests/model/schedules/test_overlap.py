"""Slots that would overlap: what a person reads when a schedule stands still because of a job that waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from nightherd.model.change import Applied, FireSlot
from nightherd.model.decide import decide
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.changes import SubmitJob
from nightherd.model.jobs.job import Job, JobStatus, JobTexts, SuspendReason, TriggerType
from nightherd.model.schedules.schedule import Slot, SlotOutcome
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.testing.memory_state import MemoryRows

NOW = datetime(2026, 11, 15, tzinfo=UTC)
RUNNING = Job(
    id=JobId("job-2026-11-15-aaaaaa"),
    agent="shepherd",
    trigger_type=TriggerType.SCHEDULE,
    status=JobStatus.RUNNING,
    created_at=NOW,
    schedule="nightly",
)
WAITING = replace(
    RUNNING,
    status=JobStatus.SUSPENDED,
    suspend_reason=SuspendReason.LIMIT,
    error_code="turns_exceeded",
)
BY_ITSELF = replace(
    RUNNING,
    status=JobStatus.SUSPENDED,
    suspend_reason=SuspendReason.RATE_LIMIT,
    not_before=NOW + timedelta(hours=1),
)

SESSION = Session(
    id=SessionId("sess-aaaaaaaa"),
    agent="shepherd",
    mode=SessionMode.FRESH_PER_JOB,
    status=SessionStatus.CREATED,
    runtime_type="scripted",
    working_directory="/here",
    created_at=NOW,
    last_active_at=NOW,
)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (RUNNING, "job-2026-11-15-aaaaaa"),
        (
            WAITING,
            "job-2026-11-15-aaaaaa is suspended (limit):"
            " resume job-2026-11-15-aaaaaa and raise turns to a higher value",
        ),
        (
            replace(WAITING, suspend_reason=SuspendReason.ERROR, error_code=None),
            "job-2026-11-15-aaaaaa is suspended (error): resume job-2026-11-15-aaaaaa",
        ),
        (
            BY_ITSELF,
            "job-2026-11-15-aaaaaa is suspended (rate_limit) and resumes by itself at 2026-11-15T01:00:00Z",
        ),
    ],
)
def test_a_slot_that_is_skipped_names_the_job_it_would_overlap_and_what_to_do(
    job: Job, said: str
) -> None:
    rows = MemoryRows()
    rows.write((job,))
    new = replace(RUNNING, id=JobId("job-2026-11-15-bbbbbb"), status=JobStatus.PENDING)
    slot = Slot(
        id="shepherd/nightly@1",
        schedule_id="shepherd/nightly",
        due_at=NOW,
        outcome=SlotOutcome.SKIPPED,
        decided_at=NOW,
    )
    change = FireSlot(
        slot=slot,
        agent="shepherd",
        schedule="nightly",
        next_run_at=None,
        job=SubmitJob(job=new, texts=JobTexts(job_id=new.id, prompt="do"), session=SESSION),
        max_overlap=1,
    )

    answer = decide(change, rows)

    assert isinstance(answer, Applied)
    (skipped,) = [row for row in answer.rows if isinstance(row, Slot)]
    assert skipped.reason == f"overlap: a job has not ended yet: {said}"
