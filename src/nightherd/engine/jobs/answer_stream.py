"""Answer stream: the text of an answer while it comes in, shown to followers and kept when it is cut off.

Nothing of it is an event until the answer is recorded whole, or until `take_cut_off` gives the one line that keeps
what had come of it. What a killed worker leaves is recorded by the next execution (beginning.py), or by the
rescuer of a job that has none (rescue.py).
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from nightherd.engine.jobs.recorder import Recorder
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import AssistantEvent, Event
from nightherd.model.journal.live_text import (
    LivePart,
    TextDelta,
    cut_off_event,
    is_about_answer,
    unrecorded_texts,
)
from nightherd.model.secrets import Secrets
from nightherd.ports import Journals, LiveText


class Memories(Protocol):
    """Where leftover text is found and recorded."""

    @property
    def journals(self) -> Journals: ...
    @property
    def secrets(self) -> Secrets: ...


class AnswerStream:
    """The `TextStream` of one execution. `close` it when the execution has ended."""

    def __init__(
        self,
        live: LiveText,
        secrets: Secrets,
        recorder: Recorder,
        *,
        epoch: int,
    ) -> None:
        self._live = live
        self._secrets = secrets
        self._recorder = recorder
        self._epoch = epoch
        self._parts: list[LivePart] = []
        self._count = 0

    def begin(self) -> None:
        """Drop what was streamed and will not come: the runtime asks for the answer again."""
        if self._parts:
            self._drop()

    def add(self, block: int, text: str) -> None:
        """Show more of a text block."""
        last = self._parts[-1] if self._parts else None
        if last is None or last.block != block:
            if last is not None:
                self._show(last, last.finish())
            self._count += 1
            last = LivePart(self._count, block, self._secrets)
            self._parts.append(last)
        self._show(last, last.add(text))

    def recorded(self, event: Event) -> None:
        """Take note of an event on record: what it holds is not live any more."""
        if not self._parts or not is_about_answer(event):
            return
        if not isinstance(event, AssistantEvent) or event.end or event.partial:
            self._drop()
            return
        del self._parts[0]
        self._live.clear()
        for part in self._parts:
            self._live.append(self._delta(part, 0, part.text))

    def take_cut_off(self) -> AssistantEvent | None:
        """Return the line for what had come of an answer that will not come whole; None when nothing had."""
        return cut_off_event([part.text for part in self._parts])

    def close(self) -> None:
        """Show nothing any more. What could not be recorded is left for the next execution, maybe another worker's."""
        if self._parts:
            self._live.leave()
        else:
            self._live.close()

    def _drop(self) -> None:
        self._parts.clear()
        self._live.clear()

    def _show(self, part: LivePart, text: str) -> None:
        if text and self._recorder.is_ours():
            self._live.append(self._delta(part, part.length - len(text), text))

    def _delta(self, part: LivePart, at: int, text: str) -> TextDelta:
        after = self._recorder.last_seq
        return TextDelta(epoch=self._epoch, after=after, part=part.number, at=at, text=text)


def open_stream(job: Job, recorder: Recorder, memories: Memories) -> AnswerStream:
    """Return the stream of an execution that records with `recorder`."""
    live = memories.journals.live_text(job.id, asyncio.get_running_loop().call_later)
    return AnswerStream(live, memories.secrets, recorder, epoch=job.epoch)


def record_leftover(job_id: JobId, recorder: Recorder, journals: Journals) -> None:
    """Record what a killed execution was streaming, unless it is on record, and remove it."""
    deltas = journals.leftover_text(job_id)
    if deltas:
        after = min(delta.after for delta in deltas)
        events = journals.read(job_id, after=after)
        event = cut_off_event(unrecorded_texts(deltas, events))
        if event is not None:
            recorder.record(event)
        journals.remove_text(job_id)


def write_leftover(job: Job, record: Memories) -> None:
    """Record it in the journal of a job that has ended and has no next execution."""
    if not record.journals.leftover_text(job.id):
        return
    recorder = Recorder(record.secrets, _no_listener)
    execution = generate_execution_id(job.id, job.epoch)
    with recorder.into(record.journals.open(job.id, epoch=job.epoch, execution=execution)):
        record_leftover(job.id, recorder, record.journals)


def _no_listener(event: Event) -> None:
    """Ignore the text of a job that has ended."""
