"""A cancel on record: the job makes no further tool call and ends as cancelled, whatever its run says."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest
from msgspec.structs import replace

from engine.bench import Bench
from engine.yard import Yard, several
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import ExitReason, JobStatus
from nightherd.model.jobs.outcome import CANCELLED
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    payload_of,
)
from nightherd.model.journal.recollection import recollect
from nightherd.model.journal.system import Complete, End
from nightherd.ports import Journal, RuntimeRequest
from nightherd.testing.runtime import PlayedRuntime
from nightherd.views.jobs.checkpoints import list_bookmarks


def call(number: int, *, index: int = 0, is_last: bool = True) -> ToolUseEvent:
    return ToolUseEvent(
        tool_name="Bash", tool_use_id=f"call-{number}", turn=1, index=index, end=is_last
    )


def result(number: int) -> ToolResultEvent:
    return ToolResultEvent(tool_use_id=f"call-{number}", success=True, turn=1, index=0, end=True)


ONE_BY_ONE = (call(1), result(1), call(2), result(2))
TOGETHER = (call(1, is_last=False), call(2, index=1), result(1), result(2))
ANSWER = (
    AssistantEvent(content="done", turn=2, index=0, end=True),
    describe(Complete(stop_reason="end_turn")),
)


class CancelledMeanwhile:
    """Plays `events`; just before the one at `place`, somebody cancels the job."""

    def __init__(
        self, bench: Bench, events: Sequence[Event], place: int, *, above: JobId | None = None
    ) -> None:
        self.done: list[Event] = []
        """The events after which the run went on: a call among them was made."""
        self._bench = bench
        self._events = events
        self._place = place
        self._above = above

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        for place, event in enumerate(self._events):
            if place == self._place:
                change = CancelJob(job_id=self._above or request.job_id, at=self._bench.clock.now())
                await self._bench.store.apply([change])
            yield event
            self.done.append(event)


@pytest.mark.parametrize(
    ("events", "place", "made"),
    [(ONE_BY_ONE, 0, []), (ONE_BY_ONE, 1, ["call-1"]), (TOGETHER, 2, ["call-1", "call-2"])],
    ids=["before the first call", "in the first call", "in the first of two calls"],
)
def test_no_call_begins_after_the_cancel(
    events: Sequence[Event], place: int, made: list[str]
) -> None:
    bench = Bench()
    runtime = CancelledMeanwhile(bench, (*events, *ANSWER), place)
    bench.runtime = runtime  # type: ignore[assignment]

    job = bench.run()

    assert (job.status, job.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED)
    calls = [one.tool_use_id for one in runtime.done if isinstance(one, ToolUseEvent)]
    assert calls == made
    assert not any(isinstance(one, AssistantEvent) for one in runtime.done)
    assert last_word(bench, job.id) == End(status="cancelled", exit_reason="cancelled")


def test_a_run_that_had_its_answer_ends_as_cancelled_and_keeps_it() -> None:
    bench = Bench()
    bench.runtime = CancelledMeanwhile(bench, ANSWER, 1)  # type: ignore[assignment]

    job = bench.run()

    assert (job.status, job.exit_reason) == (JobStatus.CANCELLED, ExitReason.CANCELLED)
    assert (job.summary, job.error) == ("done", None)
    assert last_word(bench, job.id) == End(status="cancelled", exit_reason="cancelled")


@pytest.mark.parametrize("events", [ANSWER, (ErrorEvent(message="no", code="broken"),)])
def test_a_cancel_between_the_last_line_and_the_row_is_in_both(events: Sequence[Event]) -> None:
    bench = Bench(PlayedRuntime(events))
    job_id = bench.submit().job.id

    async def cancel_once(journal: Journal) -> None:
        end = bench.context.journals.last(job_id, 1)[0]
        if isinstance(end, SystemEvent) and isinstance(payload_of(end), End):
            await bench.store.apply([CancelJob(job_id=job_id, at=bench.clock.now())])

    bench.context = replace(bench.context, sync=cancel_once)

    job = bench.execute(job_id)

    assert (job.status, job.error) == (JobStatus.CANCELLED, None)
    assert last_word(bench, job.id) == End(status="cancelled", exit_reason="cancelled")
    assert job.last_seq == bench.journal(job.id)[-1].seq
    assert recollect(bench.journal(job.id)).outcome == CANCELLED
    last = list_bookmarks(bench.reader, bench.context.journals, job.id)[-1]
    assert (last.trigger, last.status) == ("on_cancel", "cancelled")


def test_a_child_makes_no_call_after_its_parent_was_cancelled() -> None:
    yard = Yard(bench=Bench(agent=several(2)))
    bench = yard.bench
    parent = yard.taken(bench.context.worker)
    events = (*ONE_BY_ONE, *ANSWER)
    runtime = CancelledMeanwhile(bench, events, 1, above=parent.id)
    bench.runtime = runtime  # type: ignore[assignment]

    child = bench.run(parent_job_id=parent.id)

    assert child.status is JobStatus.CANCELLED
    assert runtime.done == [events[0]]


def last_word(bench: Bench, job_id: JobId) -> object:
    last = bench.journal(job_id)[-1]
    assert isinstance(last, SystemEvent)
    return payload_of(last)
