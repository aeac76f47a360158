"""What Claude will know when it resumes a session, read from the session's transcript.

Each line of a transcript names the one before it. Claude resumes from the last line and follows these names back to
the first; lines off that chain are attempts that were given up, or results of calls that ran side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

SYNTHETIC = "<synthetic>"
"""The model of lines that Claude writes itself, such as the text of an API error."""
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
CUT_OFF = "[Tool call interrupted"
"""How a result begins that newer versions of Claude write for an open call when they resume."""

Line = dict[str, Any]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation that a resumed session begins with."""

    uuids: frozenset[str] = frozenset()
    """Names of all lines in which something was said."""
    texts: frozenset[str] = frozenset()
    """Everything the model said."""
    calls: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    """Calls whose results stand in it."""
    known_cut_off: frozenset[str] = frozenset()
    """Calls that Claude itself reports to the model as cut off."""
    open_calls: frozenset[str] = frozenset()
    """Calls on the chain without any result: newer versions keep them, older ones drop them."""
    asked: tuple[str, ...] = ()
    """What the user said, as far as the model will see it."""
    unanswered: tuple[str, ...] = ()
    """Of these, what follows the last answer."""
    resume_at: str | None = None
    """The last line to keep, when what follows it is to be left out; None to keep everything."""

    def mentions(self, text: str) -> bool:
        """Whether the user's side of the conversation contains `text`."""
        return any(text in asked for asked in self.asked)


def read_memory(transcript: Iterable[bytes], is_note: Callable[[str], bool]) -> Memory:
    """Read the memory from the lines of a transcript.

    A text of ours (`is_note`) that was never answered is left out, together with the errors after it: it is
    composed anew for the next request. So is the text of an API error.
    """
    lines = [line for raw in transcript if (line := _line(raw)) is not None]
    spoken = [line for line in lines if _is_spoken(line)]
    chain = [line for line in _chain(lines) if _is_spoken(line)]
    kept = _without_unanswered_notes(chain, is_note)
    results = {
        str(block.get("tool_use_id")): block
        for line in spoken
        for block in _blocks(line)
        if block.get("type") == "tool_result"
    }
    cut_off = {call for call, result in results.items() if _text(result).startswith(CUT_OFF)}
    return Memory(
        uuids=frozenset(str(line["uuid"]) for line in spoken if line.get("uuid")),
        texts=frozenset(text for line in spoken if _is_answer(line) for text in _texts(line)),
        calls=frozenset(_calls(spoken)),
        results=frozenset(results.keys() - cut_off),
        known_cut_off=frozenset(cut_off),
        open_calls=frozenset(_calls(kept)) - results.keys(),
        asked=tuple(text for line in kept if (text := _asked(line))),
        unanswered=tuple(text for line in _after_last_answer(kept) if (text := _asked(line))),
        resume_at=str(kept[-1]["uuid"]) if kept and len(kept) < len(chain) else None,
    )


def _line(raw: bytes) -> Line | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _chain(lines: Sequence[Line]) -> list[Line]:
    """The lines from the first to the last one in which something was said, by the names of their parents."""
    places = {line["uuid"]: place for place, line in enumerate(lines) if line.get("uuid")}
    spoken = (place for place in reversed(range(len(lines))) if _is_spoken(lines[place]))
    at = next(spoken, None)
    chain: list[Line] = []
    seen: set[int] = set()
    while at is not None and at not in seen:
        seen.add(at)
        chain.append(lines[at])
        at = _parent(at, lines, places)
    return chain[::-1]


def _parent(at: int, lines: Sequence[Line], places: dict[str, int]) -> int | None:
    line, above = lines[at], at - 1 if at else None
    if "parentUuid" not in line:
        return above
    named = line["parentUuid"] or line.get("logicalParentUuid")
    return places.get(named, above) if named is not None else None


def _is_spoken(line: Line) -> bool:
    is_own = not (line.get("isSidechain") or line.get("isMeta"))
    return is_own and line.get("type") in ("user", "assistant") and "message" in line


def _without_unanswered_notes(
    chain: Sequence[Line], is_note: Callable[[str], bool]
) -> Sequence[Line]:
    end = len(chain)
    while end and (_is_synthetic(chain[end - 1]) or is_note(_asked(chain[end - 1]))):
        end -= 1
    return chain[:end] if end and chain[end - 1].get("uuid") else chain


def _after_last_answer(chain: Sequence[Line]) -> Sequence[Line]:
    start = len(chain)
    while start and not _is_answer(chain[start - 1]) and not _has_result(chain[start - 1]):
        start -= 1
    return chain[start:]


def _is_synthetic(line: Line) -> bool:
    message = line["message"]
    return isinstance(message, dict) and message.get("model") == SYNTHETIC


def _is_answer(line: Line) -> bool:
    return line["type"] == "assistant" and not _is_synthetic(line)


def _has_result(line: Line) -> bool:
    return any(block.get("type") == "tool_result" for block in _blocks(line))


def _calls(lines: Iterable[Line]) -> Iterator[str]:
    for line in lines:
        for block in _blocks(line):
            if block.get("type") in CALLS:
                yield str(block.get("id"))


def _asked(line: Line) -> str:
    """What the user said in this line; nothing for an answer or a result."""
    return "\n\n".join(_texts(line)) if line["type"] == "user" else ""


def _texts(line: Line) -> Iterator[str]:
    for block in _blocks(line):
        match block:
            case {"type": "text", "text": str(text)}:
                yield text
            case _:
                pass


def _blocks(line: Line) -> list[dict[str, Any]]:
    message = line["message"]
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def _text(result: dict[str, Any]) -> str:
    content = result.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
