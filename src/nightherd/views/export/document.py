"""Exports of sessions: what every export is made from, our own document (docs/formats/session-export.md), and Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.journal.message import Speaker
from nightherd.model.sessions.session import Session
from nightherd.model.units import format_usd
from nightherd.model.worker import Worker
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs.events import event_document, whole_event
from nightherd.views.jobs.jobs import job_row, observe_jobs, timestamp
from nightherd.views.sessions.conversation import (
    DEEPEST,
    Segment,
    Spoken,
    all_messages,
    segments_of,
)
from nightherd.views.sessions.sessions import session_row, up_to_now


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


SCHEMA = "nightherd/v1/session_export"
VERSION = 1


def as_document(exported: Exported) -> Iterator[str]:
    """One JSON object; an event a line, so that it can be read and compared."""
    head = {
        "schema": SCHEMA,
        "as_of": timestamp(exported.at),
    }
    yield _json(head)[:-1] + ',"data":{'
    yield f'"version":{VERSION},"nightherd_version":{_json(exported.version)},\n'
    yield f'"session":{_json(session_row(exported.session))},\n'
    yield f'"ancestors":{_json([session_row(ancestor) for ancestor in exported.ancestors])},\n"jobs":['
    for place, part in enumerate(exported.parts):
        yield "," if place else ""
        yield from _job(exported, part)
    yield "]}}\n"


def _job(exported: Exported, part: Segment) -> Iterator[str]:
    row = job_row(exported.jobs[part.job.id])
    yield "\n" + _json({"job": row, "upto": part.upto})[:-1] + ',"events":['
    lead = "\n"
    for event in exported.journals.read(part.job.id):
        if part.upto is not None and event.seq > part.upto:
            break
        yield lead + _json(event_document(whole_event(exported.journals, event)))
        lead = ",\n"
    yield "]}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


FENCE = re.compile(r"`{3,}")
TITLE = {Speaker.USER: "User", Speaker.ASSISTANT: "Assistant", Speaker.TOOL: "Tool result"}


def as_markdown(exported: Exported) -> Iterator[str]:
    """The session's facts in a table, then every message under its number."""
    yield f"# Session {exported.session.id}\n\n"
    yield "| | |\n|---|---|\n"
    yield "".join(f"| {name} | {_cell(value)} |\n" for name, value in facts_of(exported))
    for spoken in exported.messages():
        yield from _message(spoken)


def _message(spoken: Spoken) -> Iterator[str]:
    message = spoken.message
    yield f"\n## {spoken.number}. {TITLE[message.speaker]}\n"
    if message.speaker is Speaker.TOOL:
        failed = any(result.success is False for result in message.results)
        yield f"\n{'The tool failed.' + chr(10) * 2 if failed else ''}{fenced(message.text)}\n"
        return
    if message.text:
        yield f"\n{message.text}\n"
    for call in message.calls:
        yield f"\n**{call.tool_name}**\n\n{fenced(_pretty(call.input), 'json')}\n"


def fenced(text: str, language: str = "") -> str:
    """A block that `text` cannot end by itself."""
    longest = max((len(run) for run in FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", " ")
