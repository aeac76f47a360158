"""Exported sessions, read back (docs/formats/session-export.md). What does not fit is refused as a whole."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.decoding import convert, decode_json
from nightherd.engine.imports.session import SessionFile
from nightherd.errors import InvalidValueError, NotFoundError, StateFileError
from nightherd.imports.lines import shown
from nightherd.model.ids import parse_job_id, parse_session_id
from nightherd.model.journal.event import Event
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.model.units import MicroUsd, parse_usd
from nightherd.next_step import Action, NextStep

SCHEMA = "nightherd/v1/session_export"
VERSION = 1
LARGEST = 1024 * 1024 * 1024
"""Bytes; a file beyond this is no session that anybody had."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session as an export says it."""

    id: str
    agent: str
    mode: SessionMode
    status: SessionStatus
    runtime_type: str
    working_directory: str
    created_at: datetime
    last_active_at: datetime
    name: str | None = None
    channel_id: str | None = None
    schedule: str | None = None
    runtime_session_id: str | None = None
    docker_enabled: bool = False
    message_count: int = 0
    token_estimate: int = 0
    turn_count: int = 0
    job_count: int = 0
    cost_usd: float = 0.0
    parent_session_id: str | None = None
    base_job_id: str | None = None
    base_seq: int | None = None
    base_messages: int = 0
    base_turns: int = 0


class JobPart(msgspec.Struct, frozen=True, kw_only=True):
    """One job's part of the conversation."""

    job: dict[str, Any]
    events: list[Event]


class Data(msgspec.Struct, frozen=True, kw_only=True):
    """What the document holds."""

    version: int
    session: SessionRow
    ancestors: list[SessionRow] = []
    jobs: list[JobPart] = []


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file."""

    schema: str
    data: Data


def read_session_file(path: Path) -> SessionFile:
    """The exported session in a file. `StateFileError` says what does not fit, and where."""
    return parse_session_file(_read(path), path)


def parse_session_file(content: bytes, path: Path) -> SessionFile:
    """The exported session that `content` is; `path` is what errors name. `StateFileError` says what does not fit."""
    try:
        document = decode_json(content, Document)
        if document.schema != SCHEMA:
            raise InvalidValueError(f"its schema is {document.schema!r}, not {SCHEMA!r}")
        if document.data.version != VERSION:
            raise InvalidValueError(
                f"it has version {document.data.version}; this nightherd reads version {VERSION}"
            )
        return _session_file(document.data, shown(path))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidValueError) as error:
        raise StateFileError(
            f"{shown(path)} is not an exported session: {error}",
            path=str(path),
            next_step=NextStep(Action.EXPORT_SESSION),
        ) from error


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST:
            raise StateFileError(f"{shown(path)} is too large for a session", path=str(path))
        return path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {shown(path)}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise StateFileError(f"cannot read {shown(path)}: {reason}", path=str(path)) from error


def _session_file(data: Data, source: str) -> SessionFile:
    events = {}
    for part in data.jobs:
        job_id = parse_job_id(str(part.job.get("id")))
        numbers = [event.seq for event in part.events]
        if not numbers or numbers != sorted(set(numbers)) or numbers[0] < 1:
            raise InvalidValueError(f"the events of {job_id} are not in order")
        events[job_id] = part.events
    return SessionFile(
        source=source,
        session=_session(data.session),
        ancestors=[_session(ancestor) for ancestor in data.ancestors],
        events=events,
    )


def _session(row: SessionRow) -> Session:
    if row.created_at.tzinfo is None or row.last_active_at.tzinfo is None:
        raise InvalidValueError(f"the times of session {row.id} have no time zone")
    session = convert(row, Session, from_attributes=True)
    return replace(
        session, id=parse_session_id(row.id), cost_microusd=MicroUsd(parse_usd(row.cost_usd))
    )
