"""Changes with little to say: jobs by number, for tests that need some state and do not care which."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from nightherd.model.change import FireSlot, SaveCheckpoint
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.jobs.changes import LoseExecution, SettleExecution, StartExecution, SubmitJob
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, JobTexts, TriggerType
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.schedules.schedule import Slot, SlotOutcome, schedule_id, slot_id
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.model.usage import Totals
from nightherd.model.worker import Worker, WorkerStatus

BEGINNING = datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=UTC)
SUCCESS = Outcome(exit_reason=ExitReason.SUCCESS, stop_reason="end_turn")
GRAZED = Totals(turns=1, messages=2)


def job_id(number: int) -> JobId:
    """The id of job `number`."""
    return JobId(f"job-{BEGINNING:%Y-%m-%d}-{number:06d}")


def submit(
    number: int,
    *,
    agent: str = "grazer",
    mode: SessionMode = SessionMode.FRESH_PER_JOB,
    channel: str | None = None,
    prompt: str = "Graze.",
) -> SubmitJob:
    """Submit job `number`, with a session of its own unless `mode` shares one."""
    at = BEGINNING + timedelta(seconds=number)
    return SubmitJob(
        job=Job(
            id=job_id(number),
            agent=agent,
            trigger_type=TriggerType.MANUAL,
            status=JobStatus.PENDING,
            created_at=at,
        ),
        texts=JobTexts(job_id=job_id(number), prompt=prompt),
        session=Session(
            id=SessionId(f"sess-{number:08d}"),
            agent=agent,
            mode=mode,
            status=SessionStatus.CREATED,
            runtime_type="scripted",
            working_directory="/pasture",
            created_at=at,
            last_active_at=at,
            channel_id=channel,
        ),
    )


def start(number: int, *, minute: int = 1, repo: str | None = None) -> StartExecution:
    """Start job `number`."""
    at = BEGINNING + timedelta(minutes=minute)
    return StartExecution(
        job_id=job_id(number), worker=WorkerId("worker-00000001"), at=at, repo=repo
    )


def settle(
    number: int,
    *,
    epoch: int = 1,
    minute: int = 2,
    outcome: Outcome = SUCCESS,
    totals: Totals = GRAZED,
    answer: str | None = "Grazed.",
) -> SettleExecution:
    """Settle job `number`, successfully unless `outcome` says otherwise."""
    return SettleExecution(
        job_id=job_id(number),
        epoch=epoch,
        at=BEGINNING + timedelta(minutes=minute),
        outcome=outcome,
        last_seq=7,
        total=totals,
        own=totals,
        answer=answer,
    )


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
