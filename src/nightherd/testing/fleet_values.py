"""Changes of the fleet with little to say: workers, slots, checkpoints, losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from nightherd.model.change import FireSlot, LoseExecution, SaveCheckpoint, SubmitJob
from nightherd.model.checkpoint import Checkpoint
from nightherd.model.ids import WorkerId
from nightherd.model.schedule import Slot, SlotOutcome, schedule_id, slot_id
from nightherd.model.usage import Totals
from nightherd.model.worker import Worker, WorkerStatus
from nightherd.testing.state_values import BEGINNING, job_id, submit

AGENT = "grazer"
NIGHTLY = schedule_id(AGENT, "nightly")


def worker(name: str) -> Worker:
    """A live worker."""
    return Worker(
        id=WorkerId(name),
        status=WorkerStatus.ALIVE,
        host="barn",
        pid=7,
        process_started="12345",
        boot_id="boot-1",
        deadline=30.5,
        started_at=BEGINNING,
        heartbeat_at=BEGINNING,
    )


def lose(number: int, *, epoch: int) -> LoseExecution:
    """The execution of that epoch was lost; once is forgiven, twice is not."""
    return LoseExecution(
        job_id=job_id(number),
        epoch=epoch,
        at=BEGINNING + timedelta(minutes=9),
        reason="its worker is gone",
        max_restarts=1,
        last_seq=3,
        total=Totals(turns=epoch),
        own=Totals(turns=1),
    )


def fire(number: int | None, *, minute: int, reason: str | None = None) -> FireSlot:
    """The schedule's slot at that minute: job `number`, or skipped for `reason`."""
    due = BEGINNING + timedelta(minutes=minute)
    job: SubmitJob | None = None
    if number is not None:
        job = submit(number, agent=AGENT)
        job = replace(job, job=replace(job.job, schedule="nightly"))
    return FireSlot(
        slot=Slot(
            id=slot_id(NIGHTLY, due),
            schedule_id=NIGHTLY,
            due_at=due,
            outcome=SlotOutcome.SKIPPED if job is None else SlotOutcome.JOB,
            decided_at=due,
            reason=reason,
        ),
        agent=AGENT,
        schedule="nightly",
        next_run_at=BEGINNING + timedelta(days=1),
        job=job,
    )


def checkpoint(
    number: int, *, seq: int = 4, header: Mapping[str, object] | None = None
) -> SaveCheckpoint:
    """A bookmark of job `number`, in its first execution."""
    return SaveCheckpoint(
        epoch=1,
        checkpoint=Checkpoint(
            id="",
            job_id=job_id(number),
            number=0,
            epoch=1,
            seq=seq,
            trigger="post_llm",
            status="running",
            created_at=BEGINNING,
            header=header or {},
        ),
    )
