"""A session as a transcript that `claude --resume` loads: the shape of Claude Code's own lines.

Whatever runtime it was made by, what was said and which tools were called is there. Ids follow from the
session and the place, so the same session always gives the same file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec

from nightherd.model.journal.event import AssistantEvent, ToolResultEvent, ToolUseEvent
from nightherd.model.journal.message import Message, Speaker, result_text
from nightherd.views.export.document import Exported

CLAUDE_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CLAUDE_VERSION = "2.0.0"
UNKNOWN = "outcome unknown: the conversation was cut before this call was answered"
NO_TEXT = "(nothing was said)"

Line = dict[str, Any]


def claude_session_id(exported: Exported) -> str:
    """The id under which `claude` finds the transcript: the session's own there, else one that follows from ours."""
    own = exported.session.runtime_session_id or ""
    return own if CLAUDE_UUID.fullmatch(own) else str(_name(exported.session.id))


def as_transcript(exported: Exported) -> Iterator[str]:
    """One JSON object a line."""
    writer = _Writer(exported)
    for spoken in exported.messages():
        for line in writer.take(spoken.message):
            yield _json(line)
    for line in writer.close():
        yield _json(line)


class _Writer:
    """Puts messages into lines, each naming the one before it."""

    def __init__(self, exported: Exported) -> None:
        self._session_id = claude_session_id(exported)
        self._directory = exported.session.working_directory
        self._seed = _name(exported.session.id)
        self._parent: str | None = None
        self._count = 0
        self._at = exported.session.created_at
        self._open: dict[str, None] = {}
        self._names: set[str] = set()

    def take(self, message: Message) -> Iterator[Line]:
        """The lines of a message; a call that was left open is answered before anything else is said."""
        self._at = message.last.timestamp or self._at
        if message.speaker is not Speaker.TOOL:
            yield from self.close()
        match message.speaker:
            case Speaker.USER:
                content = message.text or NO_TEXT
                yield self._line("user", {"role": "user", "content": content}, message.last.uuid)
            case Speaker.TOOL:
                blocks = [self._result(result) for result in message.results]
                yield self._line("user", {"role": "user", "content": blocks}, message.last.uuid)
            case Speaker.ASSISTANT:
                yield self._line("assistant", self._answer(message), message.last.uuid)

    def close(self) -> Iterator[Line]:
        """Say of every open call that its outcome is unknown."""
        if self._open:
            blocks = [_result_block(call, UNKNOWN, is_error=True) for call in self._open]
            self._open = {}
            yield self._line("user", {"role": "user", "content": blocks})

    def _answer(self, message: Message) -> Line:
        blocks: list[Line] = []
        for line in message.lines:
            if isinstance(line, AssistantEvent) and line.content:
                blocks.append({"type": "text", "text": line.content})
            elif isinstance(line, ToolUseEvent):
                call = _call_id(line.tool_use_id)
                self._open[call] = None
                given = line.input if isinstance(line.input, dict) else {"input": line.input}
                blocks.append(
                    {"type": "tool_use", "id": call, "name": line.tool_name, "input": given}
                )
        return {
            "id": f"msg_{self._uuid()}",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": blocks or [{"type": "text", "text": NO_TEXT}],
            "stop_reason": "tool_use" if message.calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }

    def _result(self, result: ToolResultEvent) -> Line:
        call = _call_id(result.tool_use_id)
        self._open.pop(call, None)
        text = result_text(result) or "(no output)"
        return _result_block(call, text, is_error=result.success is False)

    def _uuid(self) -> str:
        return uuid5(self._seed, str(self._count)).hex

    def _line(self, kind: str, message: Line, name: str | None = None) -> Line:
        """`name` is what Claude called it, if it did: forks at a message go by it. A line has its own."""
        is_free = name is not None and name not in self._names
        uuid = str(name) if is_free else str(uuid5(self._seed, f"line {self._count}"))
        self._names.add(uuid)
        self._count += 1
        line = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._directory,
            "sessionId": self._session_id,
            "version": CLAUDE_VERSION,
            "gitBranch": "",
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": _milliseconds(self._at),
        }
        self._parent = uuid
        return line


def _result_block(call: str, text: str, *, is_error: bool) -> Line:
    block: Line = {"type": "tool_result", "tool_use_id": call, "content": text}
    return {**block, "is_error": True} if is_error else block


def _call_id(given: str | None) -> str:
    """The call's id as the provider accepts it: letters, digits, `_` and `-`."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", given or "") or "toolu_unnamed"


def _name(session_id: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"nightherd:{session_id}")


def _milliseconds(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _json(line: Line) -> str:
    return msgspec.json.encode(line).decode() + "\n"
