"""Row images as the change feed brings them, as much of each as the mirror shows; and looking up in the feed what the mirror has forgotten. Unknown columns are ignored, so a newer writer's rows still have a mirror. Instants stay text of fixed width, so text order is time order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from nightherd.errors import StateFileError
from nightherd.model.agents.state import AgentStatus
from nightherd.model.ids import parse_job_id, parse_session_id
from nightherd.model.jobs.job import JOB_LIFECYCLE
from nightherd.model.sessions.session import SESSION_LIFECYCLE
from nightherd.ports import ChangeFeed, LedgerEntry

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


NEAR = 1_000
"""Changes that are read over rather than looked up again."""


class Recalled(msgspec.Struct):
    """What was found."""

    jobs: dict[str, JobImage] = msgspec.field(default_factory=dict)
    texts: dict[str, TextsImage] = msgspec.field(default_factory=dict)
    session_jobs: dict[str, list[str]] = msgspec.field(default_factory=dict)
    worked_ms: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """How long each execution of a job took, by job and epoch."""


def recall_at(feed: ChangeFeed, changes: Collection[int]) -> Recalled:
    """The jobs and texts that these changes wrote."""
    found = Recalled()
    for entry in _entries(feed, sorted(set(changes))):
        for image in _images(entry):
            match image:
                case JobImage():
                    found.jobs[image.id] = image
                case TextsImage():
                    found.texts[image.job_id] = image
                case _:
                    continue
    return found


def recall_all(
    feed: ChangeFeed, *, job_ids: Collection[str], session_ids: Collection[str], until: int
) -> Recalled:
    """Rows and texts of these jobs and the jobs of these sessions, as of `until`; reads the whole feed."""
    found = Recalled(session_jobs={session_id: [] for session_id in session_ids})
    for entry in feed.read():
        if entry.change > until:
            break
        for image in _images(entry):
            match image:
                case TextsImage(job_id=job_id) if job_id in job_ids:
                    found.texts[job_id] = image
                case JobImage(id=job_id, session_id=session_id):
                    if job_id in job_ids:
                        found.jobs[job_id] = image
                    jobs = found.session_jobs.get(session_id or "")
                    if jobs is not None and job_id not in jobs:
                        jobs.append(job_id)
                case ExecutionImage(job_id=job_id, duration_ms=int() as took) if job_id in job_ids:
                    found.worked_ms.setdefault(job_id, {})[str(image.epoch)] = took
                case _:
                    continue
    return found


def _images(entry: LedgerEntry) -> Iterator[Image]:
    for table, row in entry.rows:
        if table not in (JOBS, TEXTS, EXECUTIONS):
            continue
        try:
            image = read_image(table, row)
        except StateFileError:
            continue  # said once, when its change was mirrored
        if image is not None:
            yield image


def _entries(feed: ChangeFeed, changes: list[int]) -> Iterator[LedgerEntry]:
    reading: Iterator[LedgerEntry] | None = None
    at = 0
    for change in changes:
        if reading is None or change - at > NEAR:
            reading = feed.read(after=change - 1)
        for entry in reading:
            at = entry.change
            if at >= change:
                if at == change:
                    yield entry
                break
