"""What a worker learns from the runtime while a job runs: its own name of the session, and where it runs."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Row
from nightherd.model.decisions.around import agent_after, execution_of, owned, session_of
from nightherd.model.decisions.rows import Rows
from nightherd.model.jobs.changes import RecordContainer, RecordRuntimeSession
from nightherd.model.jobs.job import JobTexts


def record_runtime_session(change: RecordRuntimeSession, rows: Rows) -> Answer:
    """The runtime's own id of the session, in every row that has a place for it."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    known = replace(job, runtime_session_id=change.runtime_session_id)
    written: list[Row] = [known]
    execution = execution_of(job, rows)
    if execution is not None:
        written.append(replace(execution, runtime_session_id=change.runtime_session_id))
    session = session_of(job, rows)
    if session is not None:
        written.append(
            replace(
                session,
                runtime_session_id=change.runtime_session_id,
                last_active_at=change.at,
            )
        )
    texts = rows.get(JobTexts, job.id) if change.session_note is not None else None
    if texts is not None:
        written.append(replace(texts, session_note=change.session_note))
    return Applied(rows=tuple(written), job=known)


def record_container(change: RecordContainer, rows: Rows) -> Answer:
    """The container of the agent's current job, in the agent's row; the session is where its last job ran."""
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    state = agent_after(job, rows)
    if state.current_job == job.id:
        state = replace(state, container_id=change.container_id)
    written: list[Row] = [state]
    session, is_inside = session_of(job, rows), change.container_id is not None
    if session is not None and session.docker_enabled != is_inside:
        written.append(replace(session, docker_enabled=is_inside))
    return Applied(rows=tuple(written), job=job)
