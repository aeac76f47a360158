"""A call that waits for a person: Claude keeps it in its transcript, and proposes it again when it resumes the session.

It does so as soon as it starts, often before it has been told of the gate. So a run that begins with such a call has
one more hook, which is in Claude's settings from the start: a shell command that asks the worker by a file, and waits
for the answer. Without an answer the call does not run.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nightherd.files.regular import open_regular
from nightherd.files.without_links import replace_without_links
from nightherd.model.journal.event import Event, SystemEvent, ToolResultEvent, payload_of
from nightherd.model.journal.system import Reviewed, SystemSubtype
from nightherd.runtimes.claude.transcripts.claude_files import ClaudeFiles

DEFERRED = b'"hook_deferred_tool"'
SPOKEN = b'"type":"assistant"'
TAIL = 1024 * 1024
"""Bytes at the end of a transcript among which Claude looks for the call."""
HOOK_TIMEOUT_S = 6 * 3600
ASKED, ANSWER, ANSWERED = "deferred-asked", "deferred-answer", "deferred-answered"

SCRIPT = """\
cd {files} || exit 2
[ -e {answered} ] && exit 0
cat > {asked}.new && mv {asked}.new {asked} || exit 2
while [ ! -e {answer} ]; do sleep 0.02 || exit 2; done
cat {answer} && mv {answer} {answered} || exit 2
"""
"""Asks about the first call of the run; about the others it says nothing. Exit code 2 means that the call does not run."""


NOT_RUN = (
    "These calls of yours waited for a person, and the process ended before they could be kept. They have NOT run. "
    "If you still want them, make them again exactly as they were, each alone in a message: what the person says "
    "about them applies then."
)
NOT_RUN_RESULT = (
    "not run: it waited for a person, and the process ended before the call could be kept"
)
"""The result of such a call."""


class DeferredCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that Claude proposes again."""

    call: str
    tool: str
    is_last: bool = True
    """Whether the model has said nothing after it; else only some versions still propose it."""


def deferred_call(transcript: bytes) -> DeferredCall | None:
    """Return the call that Claude will propose when it resumes the session of this transcript; None for none."""
    at = transcript.rfind(DEFERRED)
    if at < 0:
        return None
    start = transcript.rfind(b"\n", 0, at) + 1
    end = transcript.find(b"\n", at)
    if end < 0 or len(transcript) - start > TAIL:
        return None
    try:
        line = json.loads(transcript[start:end])
    except ValueError:
        return None
    match line:
        case {"attachment": {"type": "hook_deferred_tool", "toolUseID": str(call)} as facts}:
            is_answered = f'"tool_use_id":"{call}"'.encode() in transcript[end:]
            tool = str(facts.get("toolName") or "")
            is_last = SPOKEN not in transcript[end:]
            return None if is_answered else DeferredCall(call=call, tool=tool, is_last=is_last)
        case _:
            return None


def deferred_in(transcript: Path, files: ClaudeFiles) -> DeferredCall | None:
    """Return the call that Claude will propose when it resumes the session of this file."""
    try:
        with files.open(transcript) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - TAIL - 1, 0))
            return deferred_call(file.read())
    except OSError:
        return None


def waiting_calls(events: Iterable[Event]) -> list[str]:
    """Return the calls that a person is asked about, that have not begun, and that have no result."""
    waiting: dict[str, None] = {}
    for event in events:
        match event:
            case ToolResultEvent(tool_use_id=str(call)):
                waiting.pop(call, None)
            case SystemEvent(subtype=SystemSubtype.REVIEW):
                match payload_of(event):
                    case Reviewed(tool_use_id=call, status="approved"):
                        waiting.pop(call, None)
                    case Reviewed(tool_use_id=call):
                        waiting[call] = None
                    case _:
                        pass
            case _:
                pass
    return list(waiting)


def not_run(call: str, turn: int) -> ToolResultEvent:
    """Return the result of a call that waited for a person and was not kept."""
    return ToolResultEvent(
        tool_use_id=call, success=False, error=NOT_RUN_RESULT, turn=turn, index=0, end=True
    )


def hook_settings(files: Path) -> dict[str, Any]:
    """Claude's settings for the hook, whose files are in `files`."""
    script = SCRIPT.format(
        files=shlex.quote(str(files)), asked=ASKED, answer=ANSWER, answered=ANSWERED
    )
    hook = {
        "type": "command",
        "command": script,
        "timeout": HOOK_TIMEOUT_S,
        "onFailure": "block",
    }
    return {
        "disableAllHooks": False,
        "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]},
    }


def question_in(files: Path) -> Mapping[str, Any] | None:
    """Return what the hook was given about the call, once it has been. `files` is a path without links."""
    try:
        with open_regular(files / ASKED, follows_links=False) as file:
            asked = json.loads(file.read())
    except (OSError, ValueError):
        return None
    return asked if isinstance(asked, Mapping) else None


def answer_in(files: Path, answer: Mapping[str, Any]) -> None:
    """Have the hook answer so. The file belongs to whom the hook runs as, also in a container.

    `files` is a path without links: `OSError` where an agent has put one there meanwhile.
    """
    data = json.dumps(answer).encode()
    replace_without_links(files / ANSWER, data, mode=0o600, is_durable=False)


def calls_of(blocks: Sequence[object]) -> list[str]:
    """Return the ids of the calls among the blocks of a message."""
    return [
        block["id"]
        for block in blocks
        if isinstance(block, Mapping)
        and block.get("type") == "tool_use"
        and isinstance(block.get("id"), str)
    ]
