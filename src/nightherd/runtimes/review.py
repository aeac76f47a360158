"""Calls that a person decides about, for runtimes that make the calls themselves."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread
from msgspec.structs import replace

from nightherd.files.regular import open_regular
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
from nightherd.runtimes.keeper.place import HOST, FilesThere
from nightherd.runtimes.real_path import shared_file
from nightherd.runtimes.tools.tool import ToolOutcome

SHORT = 2_000
"""Characters of a command that is read at once."""
LARGEST_DIFF = 1024 * 1024
"""Bytes of a file of which a diff is shown."""
COMPARED = 4_000_000
"""Pairs of lines that are compared for the smallest diff."""


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
    place: FilesThere = HOST,
) -> Verdict:
    """Return whether the call is made at `place`: the agent's permissions decide, or a person where they say so."""
    if tool == ASK_PERSON:
        return await _ask(request, input, tool_use_id)
    match await decision_on(permissions, tool, input):
        case Denied(reason):
            return Refuse(reason=reason)
        case NeedsApproval(terms=terms):
            preview = await _preview(request, tool, input, place)
            verdict = await request.review(
                ProposedCall(
                    tool_use_id=tool_use_id, tool=tool, input=input, preview=preview, terms=terms
                )
            )
            return await _checked(verdict, permissions, tool)
        case _ if tool_use_id in request.repeat:
            # A person may have been asked about it before the rules were changed.
            preview = await _preview(request, tool, input, place)
            return await request.review(
                ProposedCall(
                    tool_use_id=tool_use_id,
                    tool=tool,
                    input=input,
                    preview=preview,
                    is_allowed=True,
                )
            )
        case _:
            return Proceed()


async def _checked(verdict: Verdict, permissions: Permissions, tool: str) -> Verdict:
    """What denies a call beats a person's approval, also where the person changed its arguments."""
    if isinstance(verdict, Proceed) and verdict.input is not None:
        decision = await decision_on(permissions, tool, verdict.input)
        if isinstance(decision, Denied):
            return Refuse(reason=f"with the arguments that a person changed: {decision.reason}")
    return verdict


async def _preview(
    request: RuntimeRequest, tool: str, input: Mapping[str, Any], place: FilesThere
) -> str | None:
    directory = request.agent.working_directory
    return await to_thread.run_sync(preview_of, tool, input, directory, place)


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


def preview_of(
    tool: str, input: Mapping[str, Any], directory: str, place: FilesThere = HOST
) -> str | None:
    """Return the diff that a call would make to a file; None for a call that changes none, or none that can be shown.

    It names the real file, links followed: inside `directory` by its place there, which survives a move.
    Of a container's files, only those are shown that it shares with this machine.
    """
    if tool not in {"Write", "Edit", "MultiEdit"}:
        return None
    try:
        path = _real_file(os.path.join(directory, str(input.get("file_path", ""))), place)  # noqa: PTH118 - follows any links
        before = None if path is None else _text_of(path, place)
    except (OSError, ValueError):
        return None
    after = None if before is None else _after(tool, input, before)
    if path is None or before is None or after is None:
        return None
    name = _shown_name(path, directory)
    lines = unified(before.splitlines(keepends=True), after.splitlines(keepends=True), name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _real_file(path: str, place: FilesThere) -> str | None:
    return shared_file(path, place) if place.is_container else os.path.realpath(path)


def _shown_name(path: str, directory: str) -> str:
    """The file's name on one line, whatever is in it."""
    base = os.path.realpath(directory)
    inside = path.startswith(f"{base}{os.sep}")
    name = path[len(base) + 1 :] if inside else path
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "backslashreplace").decode()
        for one in name
    )


def unified(before: Sequence[str], after: Sequence[str], name: str) -> Iterator[str]:
    """Yield a unified diff. Where comparing would take too long, all that lies between the first and the last change is one."""
    start = _common(before, after)
    most = min(len(before), len(after)) - start
    end = min(most, _common(before[::-1], after[::-1]))
    changed = (len(before) - start - end) * (len(after) - start - end)
    if changed <= COMPARED:
        yield from difflib.unified_diff(before, after, fromfile=name, tofile=name)
        return
    gone, new = before[start : len(before) - end], after[start : len(after) - end]
    yield f"--- {name}\n"
    yield f"+++ {name}\n"
    yield f"@@ -{start + 1},{len(gone)} +{start + 1},{len(new)} @@\n"
    yield from (f"-{line}" for line in gone)
    yield from (f"+{line}" for line in new)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the beginning."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _text_of(path: str, place: FilesThere) -> str | None:
    """The file's text; None for what is too large, `OSError` for what is no file: a pipe would never end."""
    try:
        # A link that is put there now would lead from a container to a file of this machine.
        with open_regular(Path(path), follows_links=not place.is_container) as file:
            content = file.read(LARGEST_DIFF + 1)
    except FileNotFoundError:
        return ""
    return None if len(content) > LARGEST_DIFF else content.decode()


def _after(tool: str, input: Mapping[str, Any], before: str) -> str | None:
    """The file's text after the call; None when the call would not succeed."""
    if tool == "Write":
        content = input.get("content")
        return content if isinstance(content, str) else None
    edits = input.get("edits") if tool == "MultiEdit" else [input]
    text = before
    for edit in edits if isinstance(edits, list) else ():
        changed = _edited(edit, text) if isinstance(edit, Mapping) else None
        if changed is None:
            return None
        text = changed
    return text


def _edited(edit: Mapping[str, Any], text: str) -> str | None:
    old, new = edit.get("old_string"), edit.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    if not old:
        return None if text else new  # with nothing to replace, Claude makes a file
    count = text.count(old)
    if count == 0 or (count > 1 and not edit.get("replace_all")):
        return None
    return text.replace(old, new)


def changed_by_person(outcome: ToolOutcome, input: Mapping[str, Any]) -> ToolOutcome:
    """Return the outcome with a note for the agent: its call ran with other arguments."""
    note = f"(a person changed the arguments to {json.dumps(dict(input), ensure_ascii=False)})"
    if outcome.error is not None:
        return replace(outcome, error=f"{outcome.error}\n{note}")
    if isinstance(outcome.result, str):
        return replace(outcome, result=f"{outcome.result}\n{note}")
    return outcome
