"""What every export is made from, and the names of its formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.sessions.session import Session
from nightherd.model.units import format_usd
from nightherd.model.worker import Worker
from nightherd.ports import Journals, StateReader
from nightherd.views.conversation import DEEPEST, Segment, Spoken, all_messages, segments_of
from nightherd.views.jobs import timestamp
from nightherd.views.observed import observe_jobs
from nightherd.views.sessions import up_to_now


class ExportFormat(StrEnum):
    """What a session can be exported as."""

    JSON = "json"
    CLAUDE = "claude"
    MARKDOWN = "markdown"
    HTML = "html"


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A session to be exported, as it stands."""

    session: Session
    ancestors: Sequence[Session]
    """What it was forked from, the first of them first."""
    parts: Sequence[Segment]
    jobs: Mapping[JobId, ObservedJob]
    """The jobs of the parts."""
    journals: Journals
    at: datetime
    version: str

    def messages(self) -> Iterator[Spoken]:
        """What was said, first to last."""
        return all_messages(self.journals, self.parts)


def facts_of(exported: Exported) -> list[tuple[str, str]]:
    """What is known about the session, for people: each fact by its name."""
    session = exported.session
    parent = session.parent_session_id
    facts = {
        "session": session.id,
        "agent": session.agent,
        "name": session.name,
        "mode": session.mode.value,
        "status": session.status.value,
        "created": timestamp(session.created_at),
        "last active": timestamp(session.last_active_at),
        "messages": str(session.message_count),
        "tokens (estimate)": str(session.token_estimate),
        "cost": format_usd(session.cost_microusd),
        "working directory": session.working_directory,
        "forked from": parent and f"{parent} after message {session.base_messages}",
        "jobs": ", ".join(part.job.id for part in exported.parts),
        "exported": timestamp(exported.at),
    }
    return [(name, value) for name, value in facts.items() if value]


Export = Callable[[Exported], Iterator[str]]
"""Gives the file, a piece at a time."""


def to_export(
    reader: StateReader,
    journals: Journals,
    session: Session,
    *,
    at: datetime,
    version: str,
    is_at_work: Callable[[Worker], bool],
) -> Exported:
    """The session with all that an export says of it."""
    parts = segments_of(reader, journals, session)
    jobs = observe_jobs(reader, [part.job for part in parts], is_at_work, at)
    return Exported(
        session=up_to_now(reader, journals, session, is_at_work, at, parts),
        ancestors=ancestors_of(reader, session),
        parts=parts,
        jobs={job.id: job for job in jobs},
        journals=journals,
        at=at,
        version=version,
    )


def ancestors_of(reader: StateReader, session: Session) -> list[Session]:
    """What a session was forked from, and that before it, the first of them first."""
    found: list[Session] = []
    while session.parent_session_id is not None and len(found) < DEEPEST:
        parent = reader.find_session(session.parent_session_id)
        if parent is None:
            break
        found.insert(0, parent)
        session = parent
    return found
