"""Row images as the change feed brings them: as much of each as the mirror shows.

Columns it does not know are ignored, so a newer writer's rows still have a mirror; instants stay the text
they are (fixed width, so that the order of the text is the order of time).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nightherd.errors import StateFileError
from nightherd.model.agents.state import AgentStatus
from nightherd.model.ids import parse_job_id, parse_session_id
from nightherd.model.jobs.job import JOB_LIFECYCLE
from nightherd.model.sessions.session import SESSION_LIFECYCLE

JOBS = "jobs"
TEXTS = "job_texts"
EXECUTIONS = "executions"
SESSIONS = "sessions"
AGENTS = "agents"
SCHEDULES = "schedules"

ENDED_JOB = frozenset(status.value for status in JOB_LIFECYCLE.terminal)
ENDED_SESSION = frozenset(status.value for status in SESSION_LIFECYCLE.terminal)


class JobImage(msgspec.Struct, frozen=True, kw_only=True):
    """A job's row."""

    id: str
    agent: str
    trigger_type: str
    status: str
    created_at: str
    session_id: str | None = None
    runtime_session_id: str | None = None
    schedule: str | None = None
    exit_reason: str | None = None
    suspend_reason: str | None = None
    not_before: str | None = None
    forked_from: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cost_microusd: int = 0
    summary: str | None = None
    error: str | None = None
    error_code: str | None = None
    last_seq: int = 0
    number: int = 0

    @property
    def is_ended(self) -> bool:
        """Whether nothing can happen to the job any more."""
        return self.status in ENDED_JOB


class TextsImage(msgspec.Struct, frozen=True, kw_only=True):
    """A job's long texts."""

    job_id: str
    prompt: str | None = None
    summary: str | None = None


class ExecutionImage(msgspec.Struct, frozen=True, kw_only=True):
    """An execution's row."""

    job_id: str
    epoch: int = 0
    duration_ms: int | None = None
    stop_reason: str | None = None


class SessionImage(msgspec.Struct, frozen=True, kw_only=True):
    """A session's row."""

    id: str
    agent: str
    mode: str
    status: str
    runtime_type: str
    working_directory: str
    created_at: str
    last_active_at: str
    runtime_session_id: str | None = None
    docker_enabled: int | bool = False
    operation: str = "autonomous"
    job_count: int = 0
    message_count: int = 0
    token_estimate: int = 0
    base_messages: int = 0
    channel_id: str | None = None
    rank: int = 0
    number: int = 0

    @property
    def place(self) -> int:
        """The highest place is the current session's; -1 for a fork, which no job joins unasked."""
        return self.rank or self.number

    @property
    def is_ended(self) -> bool:
        """Whether nothing can happen to the session any more."""
        return self.status in ENDED_SESSION


class AgentImage(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's row."""

    name: str
    status: str = AgentStatus.IDLE.value
    current_job: str | None = None
    last_job: str | None = None
    next_schedule: str | None = None
    next_trigger_at: str | None = None
    container_id: str | None = None
    error_message: str | None = None


class ScheduleImage(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule's row."""

    agent: str
    name: str
    status: str
    last_run_at: str | None = None
    next_run_at: str | None = None
    last_error: str | None = None


Image = JobImage | TextsImage | ExecutionImage | SessionImage | AgentImage | ScheduleImage

IMAGES: Mapping[str, type[Image]] = {
    SESSIONS: SessionImage,
    JOBS: JobImage,
    TEXTS: TextsImage,
    EXECUTIONS: ExecutionImage,
    AGENTS: AgentImage,
    SCHEDULES: ScheduleImage,
}
"""The tables the mirror shows. Rows of one change are taken in this order: each belongs to one before it."""

PLACES: Mapping[type[Image], int] = {kind: place for place, kind in enumerate(IMAGES.values())}


_DECODERS: Mapping[str, msgspec.json.Decoder[Image]] = {
    table: msgspec.json.Decoder(kind) for table, kind in IMAGES.items()
}


def read_image(table: str, row: msgspec.Raw) -> Image | None:
    """The image of `row`, None for a table the mirror does not show, `StateFileError` for one it cannot."""
    decoder = _DECODERS.get(table)
    if decoder is None:
        return None
    try:
        image = decoder.decode(row)
        _check_ids(image)
    except ValueError as error:  # a ValidationError, or an id that could not be a file name
        raise StateFileError(
            f"a row of {table} in the ledger: {error}", operation="read"
        ) from error
    return image


def _check_ids(image: Image) -> None:
    match image:
        case JobImage(id=found) | TextsImage(job_id=found) | ExecutionImage(job_id=found):
            parse_job_id(found)
        case SessionImage(id=found):
            parse_session_id(found)
        case AgentImage() | ScheduleImage():
            return
