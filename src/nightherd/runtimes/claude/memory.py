"""What Claude will know when it resumes a session, read from its transcript; and what our journal has and the transcript lacks, in words for the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import dropwhile
from typing import Any

import msgspec

from nightherd.model.ids import JobId
from nightherd.model.jobs.repeat import is_interrupted_call
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_by_hand,
    messages_joined,
    payload_of,
)
from nightherd.model.journal.message import result_text
from nightherd.model.journal.system import Init, SystemSubtype, ToolProgress
from nightherd.runtimes.claude.deferred import NOT_RUN, NOT_RUN_RESULT

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
    inputs: frozenset[str] = frozenset()
    """Names of what was said to Claude while it was at work, and that it has read in between."""
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
    composed again for the next request. So is the text of an API error.
    """
    lines = [line for raw in transcript if (line := _line(raw)) is not None]
    spoken = [line for line in lines if _is_spoken(line)]
    chain = [line for line in _chain(lines) if _is_spoken(line)]
    kept = _without_unanswered_notes(chain, is_note)
    resume_at = str(kept[-1]["uuid"]) if kept and len(kept) < len(chain) else None
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
        inputs=frozenset(_inputs(lines if resume_at is None else lines[: lines.index(kept[-1])])),
        resume_at=resume_at,
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


def _inputs(lines: Iterable[Line]) -> Iterator[str]:
    for line in lines:
        match line:
            case {"attachment": {"type": "queued_command", "source_uuid": str(uuid)}}:
                yield uuid
            case _:
                pass


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


SAID = "You had said this already, but it did not get into this conversation:"
DONE = (
    "These calls of yours had finished, but their results did not get into this conversation. "
    "They are done: do not make them again."
)
CUT_OFF_CALLS = (
    "You had made these calls already, and they were cut off. They are not in this conversation, and their "
    "outcome is unknown: look whether they took effect before you repeat them."
)
BACKGROUND = (
    "These were running in the background and ended with the process, unfinished. "
    "You will not be notified about them:"
)
NOT_READ = "This was said to you while you were at work, and it did not get into this conversation. Take it into account:"
SHOWN = 4_000
"""Characters of one answer, call or result."""
MOST = 100
"""Answers, and calls: the last ones. What is older than that is in the files the agent works on."""


def missing_from_transcript(
    history: Iterable[Event], memory: Memory, keeps_open_calls: Callable[[], bool]
) -> str | None:
    """Return what is in the journal and not in the transcript, in words for the model; None when nothing is missing.

    `keeps_open_calls` says whether the `claude` that resumes shows the model a call of the transcript that has no
    result; older versions drop it.
    """
    known = _Known()
    for event in history:
        known.add(event)
    parts = _sections(known, memory, keeps_open_calls)
    return "\n\n".join(parts) or None


def is_cut_off(result: ToolResultEvent) -> bool:
    """Whether the journal has this result only because the call was cut off: its worker was lost, or the run was stopped."""
    return result.uuid is None and is_interrupted_call(result.error)


class _Known:
    """What the journal knows of the agent's own conversation; helpers of it have conversations of their own."""

    def __init__(self) -> None:
        self.said: list[AssistantEvent] = []
        self.calls: dict[str, ToolUseEvent] = {}
        self.results: dict[str, ToolResultEvent] = {}
        self.inputs: dict[str, str] = {}
        """What was said to it while it was at work, by name."""
        self.not_run: dict[str, ToolUseEvent] = {}
        """Calls that waited for a person and were not kept."""
        self.tasks: dict[str, str] = {}
        """Background tasks that ended with their process, by id."""
        self._running: dict[str, str] = {}

    def add(self, event: Event) -> None:
        if isinstance(event, ErrorEvent) or event.parent_tool_use_id or is_by_hand(event):
            return
        match event:
            case ToolUseEvent(tool_use_id=str(call)):
                self.calls[call] = event
            case ToolResultEvent(tool_use_id=str(call), error=error) if error == NOT_RUN_RESULT:
                if call in self.calls:
                    self.not_run[call] = self.calls.pop(call)
            case ToolResultEvent(tool_use_id=str(call)) if not is_cut_off(event):
                self.results[call] = event
            case AssistantEvent(content=str(), uuid=str(), partial=None | False):
                self.said.append(event)
            case SystemEvent(uuid=str(uuid), content=str(text)) if messages_joined(event):
                self.inputs[uuid] = text
            case SystemEvent(subtype=SystemSubtype.INIT | SystemSubtype.TOOL_PROGRESS):
                self._see_tasks(event)
            case _:
                pass

    def lost_tasks(self) -> dict[str, str]:
        """Tasks that ended with their process; none of it is alive any more."""
        return self.tasks | self._running

    def _see_tasks(self, event: SystemEvent) -> None:
        match payload_of(event):
            case Init():
                self.tasks, self._running = self.lost_tasks(), {}
            case ToolProgress(task_id=str(task), task=str(description)):
                self._running[task] = description
            case ToolProgress(task_id=str(task)):
                self._running.pop(task, None)
            case _:
                pass


def _sections(known: _Known, memory: Memory, keeps_open_calls: Callable[[], bool]) -> Iterator[str]:
    said = [text for event in known.said if (text := _missing_text(event, memory))]
    if said:
        yield from [SAID, *said[-MOST:]]
    unmade = [call for call in known.not_run if not memory.mentions(call)]
    if unmade:
        yield NOT_RUN
        yield from (_call(known, call) for call in unmade[-MOST:])
    calls = [call for call in known.calls | known.results if not _is_known(call, memory)]
    done = [call for call in calls if call in known.results]
    if done:
        yield DONE
        yield from (_with_result(known, call) for call in done[-MOST:])
    cut_off = [
        call for call in calls if call not in known.results and call not in memory.known_cut_off
    ]
    if not memory.open_calls.isdisjoint(cut_off) and keeps_open_calls():
        cut_off = [call for call in cut_off if call not in memory.open_calls]
    if cut_off:
        yield CUT_OFF_CALLS
        yield from (_call(known, call) for call in cut_off[-MOST:])
    tasks = [
        f"{description} (task {task})"
        for task, description in known.lost_tasks().items()
        if not memory.mentions(task)
    ]
    if tasks:
        yield from [BACKGROUND, *tasks[-MOST:]]
    unread = [
        f"{text}\n(message {uuid})"
        for uuid, text in known.inputs.items()
        if uuid not in memory.uuids | memory.inputs and not memory.mentions(uuid)
    ]
    if unread:
        yield from [NOT_READ, *unread]


def _is_known(call: str, memory: Memory) -> bool:
    return call in memory.results or memory.mentions(call)


def _missing_text(event: AssistantEvent, memory: Memory) -> str | None:
    text = event.content or ""
    if not text or event.uuid in memory.uuids or text in memory.texts:
        return None
    return None if memory.mentions(text[:SHOWN]) else text[:SHOWN]


def _call(known: _Known, call: str) -> str:
    event = known.calls.get(call) or known.not_run.get(call)
    what = f"{event.tool_name} {json.dumps(event.input)}" if event is not None else "A call"
    return f"{what[:SHOWN]} (call {call})"


def _with_result(known: _Known, call: str) -> str:
    result = known.results[call]
    how = "succeeded" if result.success else "failed"
    return f"{_call(known, call)} {how}:\n{result_text(result)[:SHOWN]}"


def since(history: Iterable[Event], job_id: JobId) -> Iterator[Event]:
    """What was said from that job's beginning on."""
    return dropwhile(lambda event: not is_of(event, job_id), history)


def is_of(event: Event, job_id: JobId) -> bool:
    return event.execution is not None and event.execution.rpartition(".")[0] == job_id
