"""Observed sessions: `active` by its row, while no live worker has the job that runs in it."""

from __future__ import annotations

import msgspec

from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.sessions.session import Session


class ObservedSession(Session, frozen=True, kw_only=True):
    """A session's row with what was observed when it was read. Only rows are written, never this."""

    lost_job: ObservedJob | None = None
    """Set when the session is `active` and no live worker has its running job."""


def with_lost_job(session: Session, lost_job: ObservedJob | None) -> ObservedSession:
    """The session's row with the lost job that is in it."""
    return ObservedSession(**msgspec.structs.asdict(session), lost_job=lost_job)


def lost_job_of(session: Session) -> ObservedJob | None:
    """Return the lost job in the session; None for a session that was not observed."""
    return session.lost_job if isinstance(session, ObservedSession) else None


def status_text(session: Session) -> str:
    """The status as people read it: `lost` while its job is."""
    return session.status.value if lost_job_of(session) is None else "lost"
