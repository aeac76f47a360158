"""Claude's directories of sessions in containers: those that go because no job continues their session."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from nightherd.model.ids import JobId, SessionId
from nightherd.model.sessions.session import is_over
from nightherd.ports import StateReader

KEPT_FOR = timedelta(days=1)
"""How long after the last job: by then no container that is kept for the session has the directory mounted."""


class SessionDirectories(Protocol):
    """Where the directories are."""

    def names(self) -> Sequence[str]:
        """Return the sessions that have one, by id; a job without a session stands for its own."""

    def remove(self, name: str, transcripts: Collection[str]) -> bool:
        """Remove one, once these transcripts, as far as it has them, have a whole copy elsewhere; whether it is gone."""


def removable_directories(
    reader: StateReader, directories: SessionDirectories, now: datetime
) -> Iterator[str]:
    """Yield the sessions whose directory no job needs any more. What the rows do not know is left alone."""
    for name in directories.names():
        session = reader.find_session(SessionId(name))
        if session is not None:
            is_old = session.removed_at is not None or session.last_active_at <= now - KEPT_FOR
            if is_old and is_over(session):
                yield name
            continue
        job = reader.find_job(JobId(name))
        ended = None if job is None else job.finished_at
        if ended is not None and ended <= now - KEPT_FOR:
            yield name


def transcripts_of(reader: StateReader, name: str) -> set[str]:
    """Return what Claude calls the transcripts of a session. Other files may be the agent's own."""
    jobs = reader.session_job_ids(SessionId(name)) or (JobId(name),)
    session = reader.find_session(SessionId(name))
    named = [session, *(reader.find_job(job) for job in jobs)]
    return {one.runtime_session_id for one in named if one and one.runtime_session_id}
