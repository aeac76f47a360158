"""Jobs of a state directory, for programs: create, get, list and update them; their output, and their `state.json`."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from nightherd import __version__
from nightherd.decoding import convert
from nightherd.engine.operations import jobs as operations
from nightherd.engine.operations.jobs import append_output
from nightherd.engine.operations.requests import UpdateJob
from nightherd.engine.workers.rescue import rescue
from nightherd.errors import InvalidValueError
from nightherd.library.fleet import Order, RunnerResult, open_fleet
from nightherd.library.state import open_changes, reading
from nightherd.model.checkpoints.state_document import check_state, migrated
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import Event, SystemEvent, is_terminal, payload_of
from nightherd.model.journal.system import SystemSubtype
from nightherd.views.jobs import jobs as views
from nightherd.views.jobs.checkpoints import thread_state
from nightherd.views.jobs.jobs import find_job_id, observe_job, observe_jobs
from nightherd.wiring.executions import ending_of_executions
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.running import rescue_terms
from nightherd.wiring.stores import load_persistence, open_journals, open_threads, system_clock


async def create_job(
    order: Order,
    *,
    config: str | Path | None = None,
    state_dir: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Job:
    """Record a job, as `OpenFleet.submit` does, and return it; a worker of the fleet runs it.

    A job needs its agent, so this reads the fleet file: `config`, else the one found upward from here.
    """
    async with open_fleet(config, state_dir=state_dir, environ=environ) as fleet:
        return await fleet.submit(order)


def get_job(state_dir: str | Path, job: str) -> ObservedJob:
    """Return a job, by its id, a unique prefix, `@last` or `@last-failed`; `JobNotFoundError` without one."""
    with reading(state_dir) as reader:
        row = views.get_job(reader, views.find_job_id(reader, job))
        return observe_job(reader, row, is_at_work, system_clock().now())


def list_jobs(state_dir: str | Path, query: JobQuery | None = None) -> Sequence[ObservedJob]:
    """Return jobs, newest first; none when the directory does not exist."""
    with reading(state_dir) as reader:
        rows = reader.list_jobs(query or JobQuery())
        return observe_jobs(reader, rows, is_at_work, system_clock().now())


async def update_job(
    state_dir: str | Path, job: str, *, status: str, error: str | None = None
) -> ObservedJob:
    """Change the status of a job as its lifecycle allows, and return the job as it is then.

    `cancelled` ends it, and its worker stops it if it runs. `failed`, with `error` as the reason, ends a pending or
    suspended job. `pending` resumes a suspended job. Everything else belongs to the worker: `RefusedError`.
    """
    root = Path(state_dir)
    job_id = get_job(root, job).id
    try:
        target = JobStatus(status)
    except ValueError:
        names = ", ".join(JobStatus)
        raise InvalidValueError(f"{status!r} is not a job status: {names}") from None
    terms = rescue_terms(ending_of_executions(root), 0)
    threads = open_threads(root, load_persistence(root)) if (root / "threads").is_dir() else None
    async with open_changes(root) as record:
        await operations.update_job(
            UpdateJob(job_id=job_id, status=target, error=error),
            replace(record, threads=threads),
            rescue=lambda: rescue(record, terms, is_wanted=lambda one: one.id == job_id),
        )
    return get_job(root, job_id)


def is_terminal_message(event: Event) -> bool:
    """Whether the runtime has nothing more to say after this event: an error, or its end."""
    return is_terminal(event)


APPENDABLE = (SystemSubtype.WARNING, SystemSubtype.TOOL_PROGRESS)
"""What a program may append of type `system`; every other subtype says what a worker did."""
FIELDS = {
    "system": {"subtype", "content", "extra"},
    "assistant": {"content", "thinking", "partial", "usage", "extra"},
    "tool_use": {"tool_name", "tool_use_id", "input", "extra"},
    "tool_result": {"tool_use_id", "result", "success", "error", "extra"},
    "error": {"message", "code", "stack", "extra"},
}
"""The fields of a message that a program may set; the journal adds number, epoch and time."""


async def read_job_output(
    state_dir: str | Path, job_id: str, *, after: int = 0, follow: bool = False
) -> AsyncIterator[Event]:
    """Every event of the job after number `after`, in order; with `follow`, also those to come, to its end.

    The job need not have begun. Leaving the iteration stops following.
    """
    journals, stopped = open_journals(Path(state_dir)), threading.Event()
    if follow:
        events = journals.follow(JobId(job_id), after=after, wait=stopped.wait, load_blobs=True)
    else:
        events = journals.read(JobId(job_id), after=after)
    try:
        while (
            event := await to_thread.run_sync(_next, events, abandon_on_cancel=True)
        ) is not None:
            yield event
            if follow and isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END:
                return
    finally:
        stopped.set()


def _next(events: Iterator[Event]) -> Event | None:
    return next(events, None)


def is_valid_job_output_input(value: object) -> bool:
    """Whether `append_job_output` accepts `value`: a mapping with one of the five types and fields that fit it."""
    try:
        _event(value)
    except InvalidValueError:
        return False
    return True


async def append_job_output(state_dir: str | Path, job: str, message: Mapping[str, Any]) -> Event:
    """Append a message to the output of a job that has not started, or has ended; return it as written.

    `message` has a `type` (system, assistant, tool_use, tool_result, error) and its fields, without a timestamp: the
    journal adds it. Without a subtype, a `system` message is a warning with the code `note`. `RefusedError` while
    a worker has the job, and while the job waits to be resumed. The agent never sees what is appended.
    """
    event, root = _event(message), Path(state_dir)
    async with open_changes(root) as record:
        job_id = find_job_id(record.reader, job)
        return await to_thread.run_sync(append_output, record, job_id, event, __version__)


def _event(value: object) -> Event:
    if not isinstance(value, Mapping):
        raise InvalidValueError(f"a message is a mapping, not {type(value).__name__}")
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise InvalidValueError(f"{kind!r} is not a message type: {', '.join(FIELDS)}")
    unknown = sorted(str(name) for name in value.keys() - FIELDS[kind] - {"type"})
    if unknown:
        names = ", ".join(sorted(FIELDS[kind]))
        raise InvalidValueError(f"a {kind} message has no field {unknown[0]!r}: {names}")
    given = {name: item for name, item in value.items() if item is not None}
    if kind == "system" and "subtype" not in given:
        note = {"code": "note", **(given.get("extra") or {})}
        given |= {"subtype": SystemSubtype.WARNING.value, "extra": note}
    try:
        event: Event = convert(given, Event)
    except msgspec.ValidationError as error:
        raise InvalidValueError(f"a {kind} message that does not fit: {error}") from error
    if isinstance(event, SystemEvent):
        if event.subtype not in APPENDABLE:
            allowed = ", ".join(APPENDABLE)
            raise InvalidValueError(f"a program cannot append system/{event.subtype}: {allowed}")
        payload_of(event)
    return event


def load_state(state_dir: str | Path, job: str) -> dict[str, Any]:
    """Return the job's `state.json` (or `state.json.gz`), brought to the current version and validated.

    `StateFileError` for a file that is missing, damaged, of another job or not what the schema says.
    """
    root = Path(state_dir)
    job_id = _find(root, job)
    return open_threads(root, load_persistence(root)).read(job_id)


def validate_state(state_dir: str | Path, state: Mapping[str, Any]) -> None:
    """Check a document against the schema of the project; `InvalidValueError` names every mistake."""
    check_state(migrated(state), load_persistence(Path(state_dir)))


def save_state(state_dir: str | Path, job: str) -> Path:
    """Write the job's `state.json` from its record, and return its path.

    The record is the only source: a document that a program made or changed cannot be saved as the job's state.
    """
    root = Path(state_dir)
    job_id = _find(root, job)
    with reading(root) as reader:
        document = thread_state(reader, open_journals(root), job_id, now=system_clock().now())
    return open_threads(root, load_persistence(root)).write(job_id, document)


async def resume_from_state(
    state_dir: str | Path,
    job: str,
    *,
    prompt: str | None = None,
    config: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> RunnerResult:
    """Validate the job's `state.json`, then resume the job from its journal, and return how it ended.

    The fleet file is `config`, else the one found upward from the state directory. `StateFileError` for a file that
    cannot be used; the job is not resumed then.
    """
    root = _root(state_dir)
    document = await to_thread.run_sync(load_state, root, job)
    async with open_fleet(config, state_dir=root, environ=environ, cwd=root.parent) as fleet:
        return await fleet.resume(document["thread_id"], prompt=prompt)


def _root(state_dir: str | Path) -> Path:
    return Path(state_dir).absolute()


def _find(root: Path, job: str) -> JobId:
    with reading(root) as reader:
        return find_job_id(reader, job)
