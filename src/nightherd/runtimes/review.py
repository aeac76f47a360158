"""Calls that a person decides about, for runtimes that make the calls themselves."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anyio import to_thread
from msgspec.structs import replace

from nightherd.model.inbox.review import (
    ASK_PERSON,
    Proceed,
    ProposedCall,
    Question,
    Refuse,
    Verdict,
)
from nightherd.model.permissions.permission import (
    Decision,
    Denied,
    NeedsApproval,
    Permissions,
    decide,
)
from nightherd.model.permissions.tool_rule import BASH
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.tools.tool import ToolOutcome

SHORT = 2_000
"""Characters of a command that is read at once."""
LARGEST_DIFF = 1024 * 1024
"""Bytes of a file of which a diff is shown."""
LONGEST_DIFF = 64 * 1024
"""Characters of a diff that is shown; its hash is of all of it."""


async def decision_on(permissions: Permissions, tool: str, input: Mapping[str, Any]) -> Decision:
    """Return what the permissions say about a call."""
    if tool == BASH and len(str(input.get("command", ""))) > SHORT:
        # A long command is read in a thread: nothing else waits for that.
        return await to_thread.run_sync(decide, permissions, tool, input)
    return decide(permissions, tool, input)


async def review_call(
    request: RuntimeRequest,
    permissions: Permissions,
    tool: str,
    input: Mapping[str, Any],
    tool_use_id: str,
) -> Verdict:
    """Return whether the call is made: the agent's permissions decide, or a person where they say so."""
    if tool == ASK_PERSON:
        return await _ask(request, input, tool_use_id)
    match await decision_on(permissions, tool, input):
        case Denied(reason):
            return Refuse(reason=reason)
        case NeedsApproval(terms=terms):
            directory = request.agent.working_directory
            preview = await to_thread.run_sync(preview_of, tool, input, directory)
            return await request.review(
                ProposedCall(
                    tool_use_id=tool_use_id, tool=tool, input=input, preview=preview, terms=terms
                )
            )
        case _:
            return Proceed()


async def _ask(request: RuntimeRequest, input: Mapping[str, Any], tool_use_id: str) -> Verdict:
    question = question_of(input)
    if question is None:
        return Refuse(reason="'question' is missing: what to ask the person")
    return await request.review(
        ProposedCall(tool_use_id=tool_use_id, tool=ASK_PERSON, input=input, question=question)
    )


def question_of(input: Mapping[str, Any]) -> Question | None:
    """Return what a call of `ask_person` asks; None when it asks nothing."""
    text, options = input.get("question"), input.get("options")
    if not isinstance(text, str) or not text.strip():
        return None
    named = options if isinstance(options, list | tuple) else ()
    return Question(text=text, options=tuple(str(option) for option in named))


def preview_of(tool: str, input: Mapping[str, Any], directory: str) -> str | None:
    """Return the diff that a call would make to a file; None for a call that changes none, or none that can be shown."""
    if tool not in {"Write", "Edit", "MultiEdit"}:
        return None
    path = Path(directory, str(input.get("file_path", "")))
    before = _text_of(path)
    if before is None:
        return None
    after = _after(tool, input, before)
    if after is None:
        return None
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        fromfile=str(path),
        tofile=str(path),
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)[:LONGEST_DIFF]


def _text_of(path: Path) -> str | None:
    try:
        if path.stat().st_size > LARGEST_DIFF:
            return None
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        return None


def _after(tool: str, input: Mapping[str, Any], before: str) -> str | None:
    """The file's text after the call; None when the call would not succeed."""
    if tool == "Write":
        content = input.get("content")
        return content if isinstance(content, str) else None
    edits = input.get("edits") if tool == "MultiEdit" else [input]
    text = before
    for edit in edits if isinstance(edits, list) else ():
        if not isinstance(edit, Mapping):
            return None
        old, new = edit.get("old_string"), edit.get("new_string")
        if not isinstance(old, str) or not isinstance(new, str) or (old and old not in text):
            return None
        text = text.replace(old, new) if edit.get("replace_all") else text.replace(old, new, 1)
    return text


def changed_by_person(outcome: ToolOutcome, input: Mapping[str, Any]) -> ToolOutcome:
    """Return the outcome with a note for the agent: its call ran with other arguments."""
    note = f"(a person changed the arguments to {json.dumps(dict(input), ensure_ascii=False)})"
    if outcome.error is not None:
        return replace(outcome, error=f"{outcome.error}\n{note}")
    if isinstance(outcome.result, str):
        return replace(outcome, result=f"{outcome.result}\n{note}")
    return outcome
