"""Adopted sessions: changes to sessions that go on outside the fleet, or came from there."""

from __future__ import annotations

from dataclasses import dataclass

from nightherd.model.execution import Execution
from nightherd.model.job import Job, JobTexts
from nightherd.model.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshAdopted:
    """What an adopted session was made from has grown: its row follows, as long as no job of ours was in it."""

    session: Session
    known_jobs: int = 0
    """How many jobs it has that only retell what its source says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptTurns:
    """What was said in a session outside the fleet is a job of it that is over.

    `rows` are the job's. The session becomes `session` if it still is `expected`, and no job is at work in it;
    without `expected` it is a new branch of one that is over.
    """

    expected: Session | None
    session: Session
    rows: tuple[Job | JobTexts | Execution, ...]
