"""Jobs of a state directory, for programs: create, get, list and update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from nightherd.engine.operations import jobs as operations
from nightherd.engine.operations.requests import UpdateJob
from nightherd.engine.workers.rescue import rescue
from nightherd.errors import InvalidValueError
from nightherd.files.paths import directory_identity
from nightherd.library.fleet import Order, open_fleet
from nightherd.library.state import open_changes, reading
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.event import Event, is_terminal
from nightherd.views import jobs as views
from nightherd.views.observed import observe_job, observe_jobs
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.running import rescue_terms
from nightherd.wiring.stores import load_persistence, open_threads, system_clock


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
    terms = rescue_terms(directory_identity(root), 0)
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
