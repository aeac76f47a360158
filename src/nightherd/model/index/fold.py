"""Fold: from a journal's events to its outline, as many at a time as there are.

`extend(extend(EMPTY, some), others)` is `extend(EMPTY, some + others)`: where a reader stops makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from nightherd.model.index.flat_text import first_line, flat_text
from nightherd.model.index.outline import (
    LABEL_LIMIT,
    MOST_ERRORS,
    MOST_OPEN_CALLS,
    MOST_SEGMENTS,
    MOST_TOOLS,
    OTHER_TOOLS,
    TEXT_LIMIT,
    Counts,
    Outline,
    OutlineError,
    Segment,
)
from nightherd.model.index.standstill import Standstill
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
SYSTEM_STEPS = frozenset(
    {
        SystemSubtype.EXECUTION_STARTED,
        SystemSubtype.SUSPENDED,
        SystemSubtype.SUMMARY,
        SystemSubtype.COMPACT_BOUNDARY,
        SystemSubtype.SETUP,
        SystemSubtype.WARNING,
    }
)
"""System events that are steps of their own; the others belong to the step before them."""
NO_EXTRA: dict[str, Any] = {}


def extend(outline: Outline, events: Iterable[Event]) -> Outline:
    """Return the outline with these events, which follow its last one. What it has already is left out."""
    fold = _Fold(outline)
    for event in events:
        if event.seq > fold.last_seq:
            fold.add(event)
    return fold.result()


class _Fold:
    """An outline being made."""

    def __init__(self, outline: Outline) -> None:
        self._before = outline
        self.last_seq = outline.last_seq
        self._last_at = outline.last_at
        self._first_at = outline.first_at
        self._segments = list(outline.segments)
        self._span = outline.span
        self._steps = outline.steps
        self._errors = list(outline.errors)
        self._open_calls = dict(outline.open_calls)
        self._open_message = outline.open_message
        self._tools = dict(outline.counts.tools)
        counts = outline.counts
        self._events, self._turns, self._messages = counts.events, counts.turns, counts.messages
        self._prompts, self._answers = counts.prompts, counts.answers
        self._tool_calls, self._error_count = counts.tool_calls, counts.errors
        self._denied = counts.denied
        self._standstill = Standstill(outline)

    def add(self, event: Event) -> None:
        """Take in the next event."""
        at = event.timestamp or self._last_at or LONG_AGO
        self._first_at = self._first_at or at
        self._events += 1
        if event.turn is not None and event.turn > self._turns:
            self._turns = event.turn
        if type(event) is ToolUseEvent:
            self._add_call(event, at)
        elif type(event) is ToolResultEvent:
            self._add_result(event, at)
        elif type(event) is AssistantEvent:
            self._add_answer(event, at)
        elif type(event) is ErrorEvent:
            self._new_step(event, at, "error", first_line(event.message, LABEL_LIMIT), errors=1)
            self._note_error(event, at, "error", event.message)
        elif type(event) is SystemEvent:
            self._add_system(event, at)
        if not isinstance(event, ErrorEvent) and event.message is not None:
            self._messages = max(self._messages, event.message)
        self._standstill.moved(event, at)
        self.last_seq, self._last_at = event.seq, at

    def result(self) -> Outline:
        """Return the outline as far as it is."""
        before = self._before
        standstill = self._standstill
        counts = Counts(
            events=self._events,
            turns=self._turns,
            messages=self._messages,
            prompts=self._prompts,
            answers=self._answers,
            tool_calls=self._tool_calls,
            errors=self._error_count,
            denied=self._denied,
            executions=standstill.execution_count,
            gaps=standstill.gap_count,
            checkpoints=standstill.checkpoints.count,
            tools=self._tools,
        )
        return replace(
            before,
            last_seq=self.last_seq,
            first_at=self._first_at,
            last_at=self._last_at,
            agent=standstill.agent,
            session_id=standstill.session_id,
            created_at=standstill.created_at,
            span=self._span,
            steps=self._steps,
            segments=tuple(self._segments),
            counts=counts,
            errors=tuple(self._errors),
            executions=standstill.executions(),
            gaps=tuple(standstill.gaps),
            checkpoints=tuple(standstill.checkpoints.kept),
            checkpoint_stride=standstill.checkpoints.stride,
            pause=standstill.pause,
            open_calls=self._open_calls,
            open_message=self._open_message,
        )

    def _add_call(self, event: ToolUseEvent, at: datetime) -> None:
        self._tool_calls += 1
        name = first_line(event.tool_name, LABEL_LIMIT)
        if name not in self._tools and len(self._tools) >= MOST_TOOLS:
            name = OTHER_TOOLS
        self._tools[name] = self._tools.get(name, 0) + 1
        if event.tool_use_id is not None and len(event.tool_use_id) <= TEXT_LIMIT:
            if len(self._open_calls) >= MOST_OPEN_CALLS:
                del self._open_calls[next(iter(self._open_calls))]
            self._open_calls[event.tool_use_id] = self._steps
        given = first_line(flat_text(event.input, LABEL_LIMIT), LABEL_LIMIT)
        label = first_line(f"{event.tool_name} {given}", LABEL_LIMIT)
        self._new_step(event, at, "tool", label, tools=1)

    def _add_result(self, event: ToolResultEvent, at: datetime) -> None:
        failed = event.success is False or event.error is not None
        step = self._open_calls.pop(event.tool_use_id or "", None)
        place = -1 if step is None else step // self._span
        self._extend(event, at, place, errors=int(failed))
        if place != -1 and place != len(self._segments) - 1:
            self._extend(event, at)  # every event belongs to the last segment, or is in it too
        if failed:
            self._note_error(event, at, "tool", event.error or flat_text(event.result, TEXT_LIMIT))

    def _add_answer(self, event: AssistantEvent, at: datetime) -> None:
        is_same = event.message is not None and event.message == self._open_message
        if event.partial:
            self._extend(event, at)
        elif event.content:
            label = first_line(event.content, LABEL_LIMIT)
            last = self._segments[-1] if self._segments else None
            if is_same and last is not None and last.kind == "thinking" and last.steps == 1:
                self._segments[-1] = replace(last, kind="answer", label=label)
                self._extend(event, at)
                self._answers += 1
            elif is_same and last is not None:
                self._extend(event, at)
            else:
                self._new_step(event, at, "answer", label)
                self._answers += 1
            self._open_message = event.message
        elif event.thinking and not is_same:
            self._new_step(event, at, "thinking", first_line(event.thinking, LABEL_LIMIT))
            self._open_message = event.message
        else:
            self._extend(event, at)

    def _add_system(self, event: SystemEvent, at: datetime) -> None:
        subtype, extra = event.subtype, event.extra or NO_EXTRA
        self._standstill.take(event, at, self.last_seq, self._last_at)
        if subtype is SystemSubtype.USER_INPUT:
            self._prompts += 1
            self._new_step(event, at, "prompt", first_line(event.content or "", LABEL_LIMIT))
        elif subtype is SystemSubtype.HOOK and extra.get("success") is None:
            label = first_line(f"hook {extra.get('name')}", LABEL_LIMIT)
            self._new_step(event, at, "system", label)
        elif subtype is SystemSubtype.HOOK and extra.get("success") is False:
            self._extend(event, at, errors=1)
            text = f"hook {extra.get('name')} failed: {extra.get('error')}"
            self._note_error(event, at, "hook", text)
        elif subtype in SYSTEM_STEPS:
            label = first_line(event.content or subtype.value.replace("_", " "), LABEL_LIMIT)
            self._new_step(event, at, "system", label)
        else:
            self._denied += subtype is SystemSubtype.DENIED
            self._extend(event, at)

    def _note_error(self, event: Event, at: datetime, kind: str, text: str) -> None:
        self._error_count += 1
        if len(self._errors) < MOST_ERRORS:
            said = first_line(text, TEXT_LIMIT)
            found = OutlineError(seq=event.seq, at=at, kind=kind, text=said, turn=event.turn)
            self._errors.append(found)

    def _new_step(
        self, event: Event, at: datetime, kind: str, label: str, *, tools: int = 0, errors: int = 0
    ) -> None:
        """Begin a step; once there are too many segments, each holds twice as many from then on."""
        self._open_message = None
        segment = Segment(
            first_seq=event.seq,
            last_seq=event.seq,
            start=at,
            end=at,
            kind=kind,
            label=label,
            turn=event.turn,
            last_turn=event.turn,
            tools=tools,
            errors=errors,
            is_nested=event.parent_tool_use_id is not None,
        )
        if self._steps // self._span >= MOST_SEGMENTS:
            pairs = zip(self._segments[::2], self._segments[1::2], strict=True)
            self._segments = [joined(one, other) for one, other in pairs]
            self._span *= 2
        place = self._steps // self._span
        self._steps += 1
        if place < len(self._segments):
            self._segments[place] = joined(self._segments[place], segment)
        else:
            self._segments.append(segment)

    def _extend(self, event: Event, at: datetime, place: int = -1, *, errors: int = 0) -> None:
        """Count the event to a segment: the last one, or the one that its call is in."""
        if not self._segments:
            name = event.subtype.value if isinstance(event, SystemEvent) else "event"
            self._new_step(event, at, "system", name)
            return
        segment = self._segments[place]
        self._segments[place] = replace(
            segment,
            last_seq=event.seq,
            end=max(segment.end, at),
            errors=segment.errors + errors,
        )


def joined(one: Segment, other: Segment) -> Segment:
    """Return both as one segment; `other` is the later one."""
    has_worse = other.errors and not one.errors
    last_turn = one.last_turn if other.last_turn is None else other.last_turn
    return Segment(
        first_seq=one.first_seq,
        last_seq=max(one.last_seq, other.last_seq),
        start=min(one.start, other.start),
        end=max(one.end, other.end),
        kind=one.kind if one.kind == other.kind else "mixed",
        label=other.label if has_worse or not one.label else one.label,
        turn=one.turn if one.turn is not None else other.turn,
        last_turn=last_turn,
        steps=one.steps + other.steps,
        tools=one.tools + other.tools,
        errors=one.errors + other.errors,
        is_nested=one.is_nested and other.is_nested,
    )
