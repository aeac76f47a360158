"""One `state.json` of every kind that is ever written: what a project's schema is tried with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from nightherd.model.checkpoint import Checkpoint, checkpoint_id
from nightherd.model.event import AssistantEvent, Event, SystemEvent
from nightherd.model.ids import JobId
from nightherd.model.job import Job, JobStatus, JobTexts, SuspendReason
from nightherd.model.limits import LimitName
from nightherd.model.system import SystemSubtype
from nightherd.model.thread_state import state_document
from nightherd.model.trigger import TriggerType

JOB = JobId("job-2026-01-01-sample")
AT = datetime(2026, 1, 1, tzinfo=UTC)
SAID: tuple[Event, ...] = (
    SystemEvent(subtype=SystemSubtype.USER_INPUT, content="asked", end=True),
    AssistantEvent(content="answered", end=True),
    AssistantEvent(content="cut o", partial=True),
)


def sample_states() -> Iterator[dict[str, Any]]:
    """A job at each status, one that waits for each reason, and at each limit."""
    for status in (JobStatus.RUNNING, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED):
        yield _state(status)
    for reason in SuspendReason:
        yield _state(JobStatus.SUSPENDED, reason)
    for name in LimitName:
        limit = {"code": name.code, "current_value": 2.5, "current_max": 2.0}
        limits = {one.value: 2_000 for one in LimitName}
        header = {"limits": limits, "suspension": limit, "required_caps": ["nightherd.tool.*"]}
        yield _state(JobStatus.SUSPENDED, SuspendReason.LIMIT, header)


def _state(
    status: JobStatus, reason: SuspendReason | None = None, header: dict[str, Any] | None = None
) -> dict[str, Any]:
    job = Job(id=JOB, agent="a", trigger_type=TriggerType.MANUAL, status=status, created_at=AT)
    hook = {"event": "limit", "directive": "a", "inputs": {}}
    place = Checkpoint(
        id=checkpoint_id(JOB, 1),
        job_id=JOB,
        number=1,
        epoch=1,
        seq=3,
        trigger="",
        status=status.value,
        created_at=AT,
        duration_ms=1_500,
        suspend_reason=reason.value if reason is not None else None,
        header={"system_prompt": "", "hooks": [hook], **(header or {})},
    )
    texts = JobTexts(job_id=JOB, prompt="", inputs={"name": "value"})
    return state_document(place, job, texts, SAID, saved_at=AT)
