"""What was said in a Claude transcript since a place that is on record here, as events.

Somebody may go on with a session by hand. Their turns stand in Claude's transcript, each line naming the one
before it: the last line leads back to what is known, past whatever was tried and given up on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

import msgspec

from nightherd.imports.claude_lines import SYNTHETIC
from nightherd.model.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.system import SystemSubtype
from nightherd.model.usage import Usage


class Said(msgspec.Struct, frozen=True):
    """The message of a line."""

    id: str | None = None
    model: str | None = None
    content: Any = None
    usage: dict[str, Any] | None = None


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """A line of a transcript, as far as it counts here."""

    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool = False
    timestamp: datetime | None = None
    message: Said | None = None


def turns_since(lines: Iterable[bytes], known: Collection[str]) -> list[Event]:
    """What was said after the last line whose uuid is `known`; nothing when that cannot be told.

    The first event is what somebody asked. Turns are numbered from 1.
    """
    entries = {entry.uuid: entry for line in lines if (entry := _entry(line)) and entry.uuid}
    spoken = [entry for entry in _chain(entries, known) if _is_spoken(entry)]
    events = list(_events(spoken))
    first = next((place for place, event in enumerate(events) if _is_question(event)), None)
    return events[first:] if first is not None else []


def _entry(line: bytes) -> Entry | None:
    try:
        return msgspec.json.decode(line, type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # an unfinished line, or one of another kind: nothing that was said


def _chain(entries: dict[str, Entry], known: Collection[str]) -> list[Entry]:
    """From after the last known line to the end, along the line that counts."""
    leaf = next((one for one in reversed(entries.values()) if _is_spoken(one)), None)
    found: list[Entry] = []
    at = leaf
    while at is not None and at.uuid not in known and len(found) <= len(entries):
        found.append(at)
        at = entries.get(at.parent_uuid) if at.parent_uuid is not None else None
    has_base = at is not None or not any(uuid in known for uuid in entries)
    return found[::-1] if has_base and known else []


def _is_spoken(entry: Entry) -> bool:
    if entry.is_sidechain or entry.is_meta or entry.message is None or entry.is_compact_summary:
        return False
    return entry.type in ("user", "assistant") and entry.message.model != SYNTHETIC


def _events(entries: Iterable[Entry]) -> Iterator[Event]:
    turn = 0
    for (kind, _), group in groupby(entries, key=_message_of):
        lines = list(group)
        if kind == "assistant":
            turn += 1
            yield from _answer(lines, turn)
        else:
            for entry in lines:
                yield from _user(entry, turn)


def _message_of(entry: Entry) -> tuple[str, str | None]:
    """Lines of one answer share its id; what a user says stands alone."""
    said = entry.message
    own = said.id if said is not None and said.id is not None else entry.uuid
    return entry.type, own if entry.type == "assistant" else entry.uuid


def _answer(lines: list[Entry], turn: int) -> Iterator[Event]:
    parts: list[tuple[Entry, dict[str, Any]]] = []
    for entry in lines:
        content = entry.message.content if entry.message is not None else None
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        parts += [(entry, block) for block in blocks if isinstance(block, dict) and _counts(block)]
    for index, (entry, block) in enumerate(parts):
        end = index == len(parts) - 1
        usage = _usage(entry.message) if end else None
        event: AssistantEvent | ToolUseEvent
        if block["type"] == "tool_use":
            event = ToolUseEvent(
                tool_name=str(block.get("name")),
                tool_use_id=str(block.get("id")),
                input=block.get("input"),
            )
        else:
            event = AssistantEvent(content=str(block.get("text") or ""), usage=usage)
        yield msgspec.structs.replace(
            event,
            turn=turn,
            index=index,
            end=end,
            timestamp=entry.timestamp,
            uuid=entry.uuid,
        )


def _counts(block: dict[str, Any]) -> bool:
    return block.get("type") in ("text", "tool_use")


def _user(entry: Entry, turn: int) -> Iterator[Event]:
    content = entry.message.content if entry.message is not None else None
    if isinstance(content, str):
        yield _question(entry, content)
        return
    blocks = [block for block in content or () if isinstance(block, dict)]
    for block in blocks:
        if block.get("type") == "tool_result":
            is_error = bool(block.get("is_error"))
            yield ToolResultEvent(
                tool_use_id=str(block.get("tool_use_id")),
                result=block.get("content"),
                success=not is_error,
                turn=turn,
                index=0,
                end=True,
                timestamp=entry.timestamp,
                uuid=entry.uuid,
            )
    texts = [str(block.get("text")) for block in blocks if block.get("type") == "text"]
    if texts:
        yield _question(entry, "\n\n".join(texts))


def _question(entry: Entry, text: str) -> SystemEvent:
    return SystemEvent(
        subtype=SystemSubtype.USER_INPUT,
        content=text,
        end=True,
        timestamp=entry.timestamp,
        uuid=entry.uuid,
    )


def _is_question(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.USER_INPUT


def _usage(said: Said | None) -> Usage | None:
    found = said.usage if said is not None else None
    if not found:
        return None
    names = (
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    )
    counts = {name: found.get(name) for name in names}
    given = {name: n for name, n in counts.items() if isinstance(n, int) and n > 0}
    return msgspec.convert(given, Usage)
