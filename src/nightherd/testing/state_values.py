"""Changes with little to say: jobs by number, for tests that need some state and do not care which."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from nightherd.model.change import SettleExecution, StartExecution, SubmitJob
from nightherd.model.ids import JobId, SessionId, WorkerId
from nightherd.model.job import ExitReason, Job, JobStatus, JobTexts
from nightherd.model.outcome import Outcome
from nightherd.model.session import Session, SessionMode, SessionStatus
from nightherd.model.trigger import TriggerType
from nightherd.model.usage import Totals

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
    """Settle job `number`, successfully unless told otherwise."""
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
