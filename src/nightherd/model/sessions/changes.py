"""Changes of sessions that make no job: forking, choosing, naming, expiring and cleaning up."""

from __future__ import annotations

from datetime import datetime

import msgspec

from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import Execution, Job, JobTexts
from nightherd.model.sessions.session import Session


class ForkSession(msgspec.Struct, frozen=True, kw_only=True):
    """A new session that begins with what another had said up to a place. Nothing is copied.

    `session` names its parent and the place; it is numbered by the store and never joined unasked.
    """

    session: Session


class UseSession(msgspec.Struct, frozen=True, kw_only=True):
    """Make a session the current one of its key."""

    session_id: SessionId


class RenameSession(msgspec.Struct, frozen=True, kw_only=True):
    """Give a session a name; None takes it away."""

    session_id: SessionId
    name: str | None


class ExpireSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that waits is over, because it is too old or has gone unused for too long."""

    session_id: SessionId
    at: datetime


class RemoveSession(msgspec.Struct, frozen=True, kw_only=True):
    """Clean up a session in which nothing is going on. Its row and its journals stay."""

    session_id: SessionId
    at: datetime


class RefreshAdopted(msgspec.Struct, frozen=True, kw_only=True):
    """What an adopted session was made from has grown: its row follows, as long as no job of ours was in it."""

    session: Session
    known_jobs: int = 0
    """How many jobs it has that only retell what its source says."""


class AdoptTurns(msgspec.Struct, frozen=True, kw_only=True):
    """What was said in a session outside the fleet is a job of it that is over.

    `rows` are the job's. The session becomes `session` if it still is `expected`, and no job is at work in it;
    without `expected` it is a new branch of one that is over.
    """

    expected: Session | None
    session: Session
    rows: tuple[Job | JobTexts | Execution, ...]
