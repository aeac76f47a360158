"""Standstill: the executions of a job, the gaps between them with their reasons, and its checkpoints."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from nightherd.model.index.flat_text import first_line
from nightherd.model.index.outline import (
    LABEL_LIMIT,
    MOST_CHECKPOINTS,
    MOST_EXECUTIONS,
    MOST_GAPS,
    TEXT_LIMIT,
    Gap,
    Outline,
    OutlineCheckpoint,
    OutlineExecution,
)
from nightherd.model.jobs.job import CHILD_WAITS
from nightherd.model.jobs.lost import WORKER_GONE
from nightherd.model.journal.event import Event, SystemEvent
from nightherd.model.journal.system import SystemSubtype

QUEUED, CRASH, RESTART, RETRY, CHILD = "queued", "crash", "restart", "retry", "child"
LOST, RESTARTED, SUSPENDED = "lost", "restarted", "suspended"

ItemT = TypeVar("ItemT")


class Standstill:
    """What a fold knows of executions, gaps and checkpoints."""

    def __init__(self, outline: Outline) -> None:
        self.agent = outline.agent
        self.session_id = outline.session_id
        self.created_at = outline.created_at
        self.gaps = list(outline.gaps)
        self.pause = outline.pause
        self.gap_count = outline.counts.gaps
        self.execution_count = outline.counts.executions
        self.checkpoints = Checkpoints(outline)
        self._executions = list(outline.executions)
        last = self._executions[-1] if self._executions else None
        self._reached = None if last is None else (last.last_seq, last.end)

    def executions(self) -> tuple[OutlineExecution, ...]:
        """Return the executions, the last one as far as it has come."""
        self._close_reach()
        return tuple(self._executions)

    def moved(self, event: Event, at: datetime) -> None:
        """Note that the last execution has come as far as this event."""
        if self._executions and event.epoch == self._executions[-1].epoch:
            self._reached = event.seq, at

    def take(
        self, event: SystemEvent, at: datetime, last_seq: int, last_at: datetime | None
    ) -> None:
        """Take in a system event; `last_seq` and `last_at` are those of the event before it."""
        extra = event.extra or {}
        match event.subtype:
            case SystemSubtype.HEADER:
                self.agent = first_line(str(extra.get("agent") or self.agent), TEXT_LIMIT)
                session = extra.get("session_id")
                if isinstance(session, str):
                    self.session_id = first_line(session, TEXT_LIMIT)
                self.created_at = instant(extra.get("created_at")) or self.created_at
            case SystemSubtype.EXECUTION_STARTED:
                self._begin(event, extra, at, last_seq, last_at)
            case SystemSubtype.RECOVERED:
                self._recover(event, extra)
            case SystemSubtype.SUSPENDED:
                self._end(SUSPENDED)
                self.pause = _pause(event, extra, at)
            case SystemSubtype.WARNING if extra.get("code") == "retrying":
                text = first_line(event.content or "", TEXT_LIMIT)
                self.pause = Gap(after_seq=event.seq, start=at, reason=RETRY, text=text)
            case SystemSubtype.RESUMED if self.pause is not None and self.pause.reason == RETRY:
                self._push(replace(self.pause, end=at, before_seq=event.seq, epoch=event.epoch))
                self.pause = None
            case SystemSubtype.END:
                self._end(str(extra.get("status") or "completed"))
                if self.pause is not None:
                    self._push(replace(self.pause, end=at, before_seq=event.seq))
                    self.pause = None
            case SystemSubtype.CHECKPOINT:
                self.checkpoints.add(event, extra, at)
            case _:
                pass

    def _begin(
        self,
        event: SystemEvent,
        extra: dict[str, Any],
        at: datetime,
        last_seq: int,
        last_at: datetime | None,
    ) -> None:
        """An execution begins, and with it a gap ends."""
        pause, self.pause = self.pause, None
        self._close_reach()
        if not self._executions:
            start = self.created_at
            gap = Gap(after_seq=0, start=start, reason=QUEUED) if start is not None else None
        elif pause is not None and pause.reason != RETRY:
            gap = pause
        else:
            self._end(LOST)
            start = last_at or at
            gap = Gap(after_seq=last_seq, start=start, reason=CRASH, text=WORKER_GONE)
        if gap is not None:
            end = max(at, gap.start)
            self._push(replace(gap, end=end, before_seq=event.seq, epoch=event.epoch))
        self.execution_count += 1
        begun = OutlineExecution(
            epoch=event.epoch,
            worker=first_line(str(extra.get("worker") or ""), LABEL_LIMIT),
            first_seq=event.seq,
            last_seq=event.seq,
            start=at,
            end=at,
        )
        _push(self._executions, begun, MOST_EXECUTIONS)
        self._reached = event.seq, at

    def _recover(self, event: SystemEvent, extra: dict[str, Any]) -> None:
        """The execution says what became of the one before it."""
        reason = first_line(str(extra.get("reason") or ""), TEXT_LIMIT)
        if not self.gaps or self.gaps[-1].epoch != event.epoch or len(self._executions) < 2:
            return
        if self.gaps[-1].reason == CRASH and reason and reason != WORKER_GONE:
            self.gaps[-1] = replace(self.gaps[-1], reason=RESTART, text=reason)
            self._executions[-2] = replace(self._executions[-2], outcome=RESTARTED)

    def _end(self, outcome: str) -> None:
        if self._executions:
            last = self._executions[-1]
            self._executions[-1] = replace(last, outcome=first_line(outcome, LABEL_LIMIT))

    def _close_reach(self) -> None:
        if self._executions and self._reached is not None:
            seq, at = self._reached
            last = self._executions[-1]
            self._executions[-1] = replace(last, last_seq=seq, end=max(last.start, at))

    def _push(self, gap: Gap) -> None:
        self.gap_count += 1
        _push(self.gaps, gap, MOST_GAPS)


class Checkpoints:
    """At most so many of a job's checkpoints, evenly spread, the last one always among them."""

    def __init__(self, outline: Outline) -> None:
        self.kept = list(outline.checkpoints)
        self.stride = outline.checkpoint_stride
        self.count = outline.counts.checkpoints

    def add(self, event: SystemEvent, extra: dict[str, Any], at: datetime) -> None:
        """Take in the next one."""
        place, self.count = self.count, self.count + 1
        if place > 0 and (place - 1) % self.stride:
            self.kept.pop()  # it was there only as the last one
        self.kept.append(
            OutlineCheckpoint(
                number=_number(extra.get("number")),
                seq=_number(extra.get("seq")) or event.seq,
                at=at,
                epoch=event.epoch,
                trigger=first_line(str(extra.get("trigger") or ""), LABEL_LIMIT),
                turn=_number(extra.get("turn")),
                cost_microusd=_number(extra.get("cost_microusd")),
            )
        )
        if len(self.kept) > MOST_CHECKPOINTS:
            whole = self.kept[:-1] if place % self.stride else self.kept
            last = self.kept[-1]
            self.stride *= 2
            self.kept = whole[::2]
            if place % self.stride:
                self.kept.append(last)


def instant(value: object) -> datetime | None:
    """The instant that a text or a value names; None for anything else."""
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else None
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _pause(event: SystemEvent, extra: dict[str, Any], at: datetime) -> Gap:
    code = extra.get("code")
    is_child = code == CHILD_WAITS or extra.get("is_below") is True
    text = event.content or str(extra.get("message") or "")
    return Gap(
        after_seq=event.seq,
        start=at,
        reason=CHILD if is_child else first_line(str(extra.get("reason") or "error"), LABEL_LIMIT),
        text=first_line(text, TEXT_LIMIT),
        code=first_line(code, LABEL_LIMIT) if isinstance(code, str) else None,
        until=instant(extra.get("until")),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _push(items: list[ItemT], item: ItemT, most: int) -> None:
    """Append, and leave out the one in the middle once there are more than `most`."""
    items.append(item)
    if len(items) > most:
        del items[most // 2]
