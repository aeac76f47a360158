"""A job's events as lines for people: what was said, what was called, what came back; answers as they stream in."""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec.structs import replace

from nightherd.cli.screen.render import Screen, Style, neutralise, one_line
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.live_text import TextDelta, is_about_answer, is_cut_off
from nightherd.model.journal.message import plain_result
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.text import shorten

RESULT_LINES = 6
LINE_LIMIT = 200
PROMPT_LIMIT = 400

SPEAKING_FIELDS = ("command", "file_path", "path", "pattern", "url", "query", "description")
"""The field of a tool's input that says most about the call, first found."""

QUIET = frozenset(
    {
        SystemSubtype.HEADER,
        SystemSubtype.CONTEXT,
        SystemSubtype.CHECKPOINT,
        SystemSubtype.INIT,
        SystemSubtype.TOOL_PROGRESS,
        SystemSubtype.SNAPSHOT,
        SystemSubtype.COMPLETE,
        SystemSubtype.SESSION_END,
    }
)
"""Subtypes that matter to programs; `--json` gives them."""

GOES_ON = frozenset({SystemSubtype.RESUMED, SystemSubtype.RECOVERED})
"""Of these a person wants to know why."""


def event_text(event: Event, style: Style, *, is_full: bool = False) -> str | None:
    """The event for a person, one line or several, safe for a terminal; None when there is nothing to see.

    With `is_full` the result of a tool is not shortened.
    """
    match event:
        case AssistantEvent(partial=True) if not is_cut_off(event):
            return None
        case AssistantEvent():
            return _answer(event, style)
        case ToolUseEvent(tool_name=name, input=given):
            call = _call(given) or (f": {beside}" if (beside := _beside(event, "input")) else "")
            return style.call(f"> {one_line(name)}") + call
        case ToolResultEvent():
            return _result(event, style, is_full=is_full)
        case ErrorEvent(message=message, code=code):
            label = f"✗ error ({one_line(code)})" if code else "✗ error"
            return f"{style.bad(label)}: {_block(message)}"
        case SystemEvent():
            return _system(event, style)


def _answer(event: AssistantEvent, style: Style) -> str | None:
    parts = []
    if event.thinking:
        parts.append(style.dim("~ " + neutralise(event.thinking).replace("\n", "\n~ ")))
    content = event.content or _beside(event, "content")
    if content:
        parts.append(neutralise(content))
    if event.partial:
        parts.append(style.dim("- the answer was cut off here"))
    return "\n".join(parts) or None


def _call(given: object) -> str:
    if given is None or given == {}:
        return ""
    if isinstance(given, Mapping):
        for field in SPEAKING_FIELDS:
            if isinstance(given.get(field), str):
                return f": {one_line(given[field], LINE_LIMIT)}"
    return f": {one_line(json.dumps(given, ensure_ascii=False, default=str), LINE_LIMIT)}"


def _result(event: ToolResultEvent, style: Style, *, is_full: bool) -> str | None:
    failed = event.success is False
    output = event.full_output
    whole = output.text if output is not None else None
    text = whole or plain_result(event.result) or _beside(event, "result")
    if failed and event.error and event.error not in text:
        text = f"{event.error}\n{text}" if text else event.error
    lines = neutralise(text).rstrip("\n").split("\n") if text.strip() else []
    hidden = len(lines) - RESULT_LINES
    if hidden > 1 and not is_full:
        # The end of an output says how it came out; the beginning only how it set out.
        lines = [*lines[:2], f"… {hidden} more lines", *lines[2 - RESULT_LINES :]]
    shown = [style.dim(f"  | {line if is_full else _cut(line)}") for line in lines]
    if output is not None and not is_full:
        shown.append(
            style.dim(f"  | all {output.size:,} bytes: jobs tail --full, or blobs/{output.sha256}")
        )
    if failed:
        shown.append(style.bad("  ✗ the tool failed"))
    return "\n".join(shown) or None


def _system(event: SystemEvent, style: Style) -> str | None:
    extra = event.extra or {}
    if event.subtype in QUIET:
        return None
    if event.subtype is SystemSubtype.USER_INPUT:
        return style.bold("» ") + one_line(event.content or _beside(event, "content"), PROMPT_LIMIT)
    if event.subtype is SystemSubtype.EXECUTION_STARTED:
        after = extra.get("continues_after")
        return style.dim(f"- continues after event {after}") if after else None
    if event.subtype is SystemSubtype.END:
        return f"{style.status(str(extra.get('status')))} ({extra.get('exit_reason')})"
    if event.subtype in GOES_ON and extra.get("reason"):
        return style.dim(f"- {event.subtype.value}") + f": {one_line(str(extra['reason']))}"
    said = event.content or ", ".join(f"{name}: {value}" for name, value in extra.items())
    return style.dim(f"- {event.subtype.value}") + (
        f": {one_line(said, LINE_LIMIT)}" if said else ""
    )


def _beside(event: Event, field: str) -> str:
    """Where a body is that was too large for its line (docs/formats/journal.md); empty when it is not."""
    note = (event.extra or {}).get("$journal")
    blobs = note.get("blobs") if isinstance(note, Mapping) else None
    blob = blobs.get(field) if isinstance(blobs, Mapping) else None
    return f"[{blob['size']:,} bytes in blobs/{blob['sha256']}]" if blob else ""


def _block(text: str) -> str:
    return neutralise(text).replace("\n", "\n  ")


def _cut(line: str) -> str:
    return shorten(line, LINE_LIMIT)


class StreamedText:
    """Writes pieces and events to one screen, in the order in which they are given."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown: dict[tuple[int, int], str] = {}
        """What is on the screen of each part whose event has not come, first to last."""
        self.is_in_line = False
        """Whether the last line on the screen is not ended: more of it may come."""

    def piece(self, delta: TextDelta) -> None:
        """Write a piece where the last one ended."""
        part = (delta.epoch, delta.part)
        if part not in self._shown:
            self.end_line()
        self._shown[part] = self._shown.get(part, "") + delta.text
        self._screen.write(neutralise(delta.text))
        self.is_in_line = True

    def event(self, event: Event, *, is_full: bool = False) -> None:
        """Write an event, without the text that is on the screen already."""
        if self._shown and is_about_answer(event):
            event = self._rest_of(event)
            if not self._shown:
                self.end_line()
        text = event_text(event, self._screen.out, is_full=is_full)
        if text is None:
            return
        self.end_line()
        self._screen.show(text)
        self._screen.flush()

    def end_line(self) -> None:
        """Begin a new line, unless the last one is ended."""
        if self.is_in_line:
            self.is_in_line = False
            self._screen.write("\n")

    def _rest_of(self, event: Event) -> Event:
        """Return the event without the text that was streamed; what is missing of that text is written."""
        shown = list(self._shown.items())
        if isinstance(event, ToolUseEvent) or not isinstance(event, AssistantEvent):
            self._shown.clear()
            return event
        content = event.content or ""
        if is_cut_off(event):
            streamed = "\n\n".join(text for _, text in shown)
            self._shown.clear()
            return self._without(event, content, streamed)
        part = next((part for part, text in shown if content.startswith(text)), None)
        streamed = self._shown.pop(part) if part is not None else ""
        is_last = part is not None and part == shown[-1][0]
        if event.end:
            self._shown.clear()
        if part is None or (not is_last and streamed != content):
            return event
        return self._without(event, content, streamed)

    def _without(self, event: AssistantEvent, content: str, streamed: str) -> AssistantEvent:
        if not content.startswith(streamed):
            return event
        if self.is_in_line:
            self._screen.write(neutralise(content[len(streamed) :]))
        replaced: AssistantEvent = replace(event, content=None)
        return replaced
