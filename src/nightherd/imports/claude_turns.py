"""What was said in a Claude transcript, as events: all of it, or since a place that is on record here.

Each line of a transcript names the one before it: the last thing said leads back to the first, past whatever was
tried and given up on the way. Calls that ran side by side branch off that way, and their results belong to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Annotated, Any, Protocol

import msgspec

from nightherd.decoding import convert, json_decoder
from nightherd.imports.claude_lines import SYNTHETIC, lenient
from nightherd.imports.lines import read_object
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage

Price = Callable[[str, Usage], MicroUsd | None]
"""What so much of a model costs; None when it is unknown."""

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
ESTIMATED = {"cost_source": "estimate"}
"""In `extra` of an answer whose cost is taken from a table of prices."""
NO_TEXT = "(something without text)"
"""What is shown of a question that is a picture or a document alone."""


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
    parent_uuid: str | msgspec.UnsetType | None = msgspec.UNSET
    logical_parent_uuid: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool = False
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    message: Said | None = None


_decoder = json_decoder(Entry)


def no_price(model: str, usage: Usage) -> MicroUsd | None:
    """No price is known."""
    return None


def said_since(
    lines: Iterable[bytes], known: Collection[str], price: Price = no_price
) -> list[Event]:
    """What was said after the last line whose uuid is `known`; everything when nothing is.

    Nothing when something is known and the end does not lead back to it. Turns are numbered from 1. `price` says
    what an answer is estimated to have cost.
    """
    entries = [entry for line in lines if (entry := _entry(line)) is not None]
    return list(_events(_conversation(entries, known), price))


def last_said(lines: Sequence[bytes]) -> str | None:
    """The uuid of the last thing said in these lines; None when nothing is, or it has none."""
    for line in reversed(lines):
        entry = _entry(line)
        if entry is not None and _is_on_the_way(entry):
            return entry.uuid
    return None


def _entry(line: bytes) -> Entry | None:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return lenient(read_object(line), Entry)
    except ValueError:
        return None  # an unfinished line, or one of another kind: nothing that was said


def _conversation(entries: Sequence[Entry], known: Collection[str]) -> list[Entry]:
    """The lines in which something was said, from after the last known one to the end, in their order."""
    places = {entry.uuid: place for place, entry in enumerate(entries) if entry.uuid is not None}
    ends = (place for place in reversed(range(len(entries))) if _is_on_the_way(entries[place]))
    at = next(ends, None)
    way: set[int] = set()
    while at is not None and at not in way and entries[at].uuid not in known:
        way.add(at)
        at = _before(at, entries, places)
    if known and at is None:
        return []
    way |= _beside(way, entries, known)
    return [entries[place] for place in sorted(way) if _is_spoken(entries[place])]


def _before(place: int, entries: Sequence[Entry], places: dict[str, int]) -> int | None:
    """The line that a line continues from; the one above it where that is not said, or is not there."""
    entry = entries[place]
    above = place - 1 if place else None
    if entry.parent_uuid is msgspec.UNSET:
        return above
    named = entry.parent_uuid or entry.logical_parent_uuid
    return places.get(named, above) if named is not None else None


def _beside(way: set[int], entries: Sequence[Entry], known: Collection[str]) -> set[int]:
    """Lines off the way that belong to it: the rest of an answer, and results of calls that ran side by side."""
    answers = {_message_of(entries[place]) for place in way if entries[place].type == "assistant"}
    found: set[int] = set()
    calls: set[str] = set()
    for place, entry in enumerate(entries):
        if entry.type == "assistant" and _is_spoken(entry) and _message_of(entry) in answers:
            calls.update(_ids(entry, CALLS, "id"))
            found.add(place)
    for place, entry in enumerate(entries):
        if entry.type == "user" and not entry.is_sidechain:
            results = _ids(entry, ("tool_result",), "tool_use_id")
            if results and results <= calls:
                found.add(place)
    return {place for place in found - way if entries[place].uuid not in known}


def _ids(entry: Entry, kinds: Collection[str], key: str) -> set[str]:
    return {str(block.get(key)) for block in _blocks(entry) if block.get("type") in kinds}


def _blocks(entry: Entry) -> list[dict[str, Any]]:
    content = entry.message.content if entry.message is not None else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    given = content if isinstance(content, list) else ()
    return [block for block in given if isinstance(block, dict) and "type" in block]


def _is_on_the_way(entry: Entry) -> bool:
    """Whether the conversation continues from it: what was said, and what Claude put in itself, as that it failed."""
    is_own = not (entry.is_sidechain or entry.is_meta or entry.is_compact_summary)
    return is_own and entry.type in ("user", "assistant") and entry.message is not None


def _is_spoken(entry: Entry) -> bool:
    said = entry.message
    return _is_on_the_way(entry) and said is not None and said.model != SYNTHETIC


def _events(entries: Iterable[Entry], price: Price) -> Iterator[Event]:
    turn, last = 0, None
    for name, group in groupby(entries, key=_message_of):
        lines = list(group)
        if lines[0].type == "assistant":
            # The same answer continues after a result that came before its last call.
            turn += name != last
            last = name
            yield from answer_events(lines, turn, price)
        else:
            for entry in lines:
                yield from user_events(entry, turn)


def _message_of(entry: Entry) -> tuple[str, object]:
    """Lines of one answer share its id; anything else stands alone."""
    said = entry.message
    if entry.type == "assistant" and said is not None and said.id is not None:
        return entry.type, said.id
    return entry.type, entry.uuid or id(entry)


def answer_events(lines: list[Entry], turn: int, price: Price = no_price) -> Iterator[Event]:
    """Yield the events of one answer, whose lines these are; the last one ends it and has what it used."""
    parts = [(entry, _part(block)) for entry in lines for block in _blocks(entry)]
    if parts and isinstance(parts[-1][1], ToolUseEvent):
        parts.append((lines[-1], AssistantEvent()))  # a call has no place for what was used
    usage = next((one for entry in reversed(lines) if (one := _usage(entry.message))), None)
    for index, (entry, part) in enumerate(parts):
        event: AssistantEvent | ToolUseEvent = msgspec.structs.replace(
            part, turn=turn, index=index, timestamp=entry.timestamp, uuid=entry.uuid
        )
        if index < len(parts) - 1:
            yield event
        else:
            model = lines[-1].message.model if lines[-1].message is not None else None
            yield _ended(event, usage, price(model or "", usage) if usage is not None else None)


def _ended(
    event: AssistantEvent | ToolUseEvent, usage: Usage | None, cost: MicroUsd | None
) -> Event:
    """The last line of an answer, with what the answer used."""
    if usage is not None and cost is not None:
        usage = msgspec.structs.replace(usage, cost_microusd=cost)
        event = msgspec.structs.replace(event, extra={**(event.extra or {}), **ESTIMATED})
    return msgspec.structs.replace(event, usage=usage, end=True)


def _part(block: dict[str, Any]) -> AssistantEvent | ToolUseEvent:
    match block:
        case {"type": kind} if kind in CALLS:
            return ToolUseEvent(
                tool_name=str(block.get("name")),
                tool_use_id=str(block.get("id")),
                input=block.get("input"),
                extra=None if kind == "tool_use" else {"kind": kind},
            )
        case {"type": "text"}:
            return AssistantEvent(content=str(block.get("text") or ""))
        case {"type": "thinking"}:
            signature = block.get("signature")
            return AssistantEvent(
                thinking=str(block.get("thinking") or ""),
                extra={"signature": signature} if signature else None,
            )
        case _:
            return AssistantEvent(extra={"block": block})


def user_events(entry: Entry, turn: int) -> Iterator[Event]:
    """Yield the events of a line that is no answer: results of calls, then what was asked."""
    blocks = _blocks(entry)
    others = [block for block in blocks if block["type"] != "tool_result"]
    for block in blocks:
        if block["type"] == "tool_result":
            yield ToolResultEvent(
                tool_use_id=str(block.get("tool_use_id")),
                result=block.get("content"),
                success=not block.get("is_error"),
                turn=turn or None,
                index=0,
                end=True,
                timestamp=entry.timestamp,
                uuid=entry.uuid,
            )
    if others:
        texts = [str(block["text"]) for block in others if block.get("text")]
        yield SystemEvent(
            subtype=SystemSubtype.USER_INPUT,
            content="\n\n".join(texts) or NO_TEXT,
            end=True,
            timestamp=entry.timestamp,
            uuid=entry.uuid,
        )


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
    return convert(given, Usage)


TAIL = 64 * 1024
"""Bytes that are looked at for the last thing said; it is rarely longer."""


class TranscriptFile(Protocol):
    """The transcript of one session: Claude's own file, and our copy of it."""

    def lines(self) -> Iterable[bytes]:
        """Every line of our copy."""

    def newest_lines(self) -> Iterable[bytes]:
        """Every line of whichever has more."""

    def tail(self, size: int) -> Sequence[bytes]:
        """The whole lines among the last `size` bytes of Claude's file."""


class ClaudeTranscripts:
    """Implements the `Transcripts` port; `find` gives the transcript of a session by its id and directory.

    `is_claude` names the runtimes that keep them; `price` estimates what an answer cost.
    """

    def __init__(
        self,
        find: Callable[[str, str], TranscriptFile],
        is_claude: Callable[[str], bool],
        price: Price = no_price,
    ) -> None:
        self._find = find
        self._is_claude = is_claude
        self._price = price

    def covers(self, runtime_type: str) -> bool:
        """Return whether the runtime of that name keeps Claude's transcripts."""
        return self._is_claude(runtime_type)

    def last_said(self, runtime_session_id: str, directory: str) -> str | None:
        """The uuid of the last thing said in Claude's own file."""
        file = self._find(runtime_session_id, directory)
        return last_said(file.tail(TAIL)) or last_said(list(file.newest_lines()))

    def said_since(
        self,
        runtime_session_id: str,
        directory: str,
        known: Collection[str],
        *,
        is_kept: bool = False,
        with_cost: bool = False,
    ) -> Sequence[Event]:
        """Everything said after the last `known` line, along the line that counts."""
        file = self._find(runtime_session_id, directory)
        lines = file.lines() if is_kept else file.newest_lines()
        return said_since(lines, known, self._price if with_cost else no_price)
