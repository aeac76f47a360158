"""Order within a session: who goes first, who holds it, and which jobs must not queue for it."""

from __future__ import annotations

from collections.abc import Iterator

from nightherd.model.change import Refused, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.hooks import asked_about
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.order import ANY_NUMBER, held_text, needs_person
from nightherd.model.sessions.session import Session

MOST_LOOKED_AT = 1_000
"""Jobs that are looked at for a circle of jobs that wait for each other."""


def job_ahead(job: Job, rows: Rows) -> Job | None:
    """Return the first job of the session that was submitted before `job` and has not ended."""
    if job.session_id is None:
        return None
    ahead = rows.jobs_ahead(job.session_id, job.number, 1)
    return ahead[0] if ahead else None


def holder_of(session: Session, rows: Rows) -> Job | None:
    """Return the job for which everything in the session waits, if it waits for a person."""
    first = rows.jobs_ahead(session.id, ANY_NUMBER, 1)
    return first[0] if first and needs_person(first[0]) else None


def refused_if_held(session: Session, rows: Rows) -> Refused | None:
    """Return the refusal of a job that would wait for a person."""
    holder = holder_of(session, rows)
    if holder is None:
        return None
    return Refused(why=Why.SESSION_HELD, message=held_text(holder), job=holder)


def waits_in_a_circle(job: Job, session: Session, rows: Rows) -> Job | None:
    """Return the job that would be waited for by `job` in the session, and waits for `job` itself.

    A parent waits for its children, and a job that asks about a limit for the job that answers. So those
    never queue behind it, nor behind a job that waits for it.
    """
    waiting = set(_waiting_for(job, rows))
    if not waiting:
        return None
    seen: set[JobId] = set()
    to_look_at = list(rows.jobs_ahead(session.id, ANY_NUMBER, MOST_LOOKED_AT))
    while to_look_at and len(seen) < MOST_LOOKED_AT:
        other = to_look_at.pop()
        if other.id in waiting:
            return other
        if other.id in seen:
            continue
        seen.add(other.id)
        to_look_at += rows.open_children(other.id)
        if other.session_id is not None:
            to_look_at += rows.jobs_ahead(other.session_id, other.number, MOST_LOOKED_AT)
    return None


def _waiting_for(job: Job, rows: Rows) -> Iterator[JobId]:
    """The jobs that wait for `job`: those above it, and who asked it, with those above."""
    to_look_at: list[Job | None] = [job]
    seen: set[JobId] = {job.id}
    while to_look_at:
        found = to_look_at.pop()
        if found is None:
            continue
        for above in (found.parent_job_id, asked_about(found)):
            if above is not None and above not in seen:
                seen.add(above)
                yield above
                to_look_at.append(rows.get(Job, above))
