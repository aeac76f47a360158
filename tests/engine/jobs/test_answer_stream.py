"""Streaming: the text of an answer is shown while it comes in, and one line keeps it when it is cut off."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from engine.bench import Bench
from engine.yard import Yard
from nightherd.engine.operations.jobs import cancel_job
from nightherd.engine.operations.requests import Cancel
from nightherd.engine.workers.rescue import rescue
from nightherd.errors import FencedError
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.job import ExitReason, Job, JobStatus
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, SystemEvent, describe
from nightherd.model.journal.live_text import TextDelta, is_cut_off
from nightherd.model.journal.system import Init, SystemSubtype
from nightherd.testing.runtime import ANSWER, PlayedRuntime

INIT = describe(Init(runtime="scripted", runtime_session_id="abc"))
CUT_OFF_EXTRA = {"cut_off": True}
NEVER_ENDS = AssistantEvent(content="whole", turn=1, index=0, end=True)


def call_now(delay: float, callback: Callable[[], None], /) -> None:
    """Memory needs no timer."""


def streaming(*texts: str, before: Event = INIT, **more: object) -> PlayedRuntime:
    """A runtime that streams these as blocks before it gives the event `before`."""

    def stream(event: Event) -> None:
        if event is before:
            request = runtime.requests[-1]
            request.stream.begin()
            for block, text in enumerate(texts):
                for letter in text:
                    request.stream.add(block, letter)

    runtime = PlayedRuntime(**{"before_each": stream, **more})  # type: ignore[arg-type]
    return runtime


def cut_off(bench: Bench, job_id: JobId) -> list[str | None]:
    """The texts of cut-off answers on record."""
    found = [event for event in bench.journal(job_id) if is_cut_off(event)]
    return [event.content for event in found if isinstance(event, AssistantEvent)]


def begin(bench: Bench, job: Job, event: Event = INIT) -> Event:
    """Write what a worker recorded before it was killed."""
    execution = generate_execution_id(job.id, job.epoch)
    return bench.context.journals.open(job.id, epoch=job.epoch, execution=execution).append(event)


def leave(bench: Bench, job: Job, *texts: str, after: int = 0) -> None:
    """What a worker leaves that is killed while it streams."""
    live = bench.context.journals.live_text(job.id, call_now)  # type: ignore[arg-type]
    for part, text in enumerate(texts, 1):
        live.append(TextDelta(epoch=job.epoch, after=after, part=part, at=0, text=text))


def leftover(bench: Bench, job_id: JobId) -> list[TextDelta]:
    return list(bench.context.journals.leftover_text(job_id))


def test_an_answer_that_comes_whole_leaves_no_trace_of_its_stream() -> None:
    bench = Bench()
    bench.runtime = streaming("All done", before=ANSWER[0], events=ANSWER)
    job_id = bench.submit().job.id
    seen: list[str] = []

    def look(event: Event) -> None:
        seen.append("".join(delta.text for delta in leftover(bench, job_id)))

    job = bench.execute(job_id, on_event=look)

    assert job.status is JobStatus.COMPLETED
    assert "All done" in seen
    assert cut_off(bench, job.id) == []
    assert leftover(bench, job.id) == []


def test_a_cancelled_answer_is_kept_in_one_line_before_the_end() -> None:
    bench = Bench()
    bench.runtime = streaming("The answer", "is forty", events=[INIT], is_endless=True)
    job_id = bench.submit().job.id

    job = bench.execute(job_id, stop_when=lambda event: event is not None and _is_init(event))

    assert job.exit_reason is ExitReason.CANCELLED
    assert cut_off(bench, job_id) == ["The answer\n\nis forty"]
    assert job.messages == 1
    assert job.turns == 0
    assert leftover(bench, job_id) == []
    last = bench.journal(job_id)[-1]
    assert isinstance(last, SystemEvent)
    assert last.subtype is SystemSubtype.END


def test_an_answer_that_fails_is_kept_before_the_error() -> None:
    bench = Bench()
    bench.runtime = streaming("The answer", events=[INIT], error=ValueError("broken"))

    job = bench.run()

    events = bench.journal(job.id)
    (place,) = [place for place, event in enumerate(events) if is_cut_off(event)]
    assert isinstance(events[place + 1], ErrorEvent)


def test_text_that_could_not_be_recorded_is_left_for_the_next_execution() -> None:
    bench = Bench()
    bench.runtime = streaming("The answer", events=[INIT], is_endless=True)
    job_id = bench.submit().job.id

    def lose_lease(event: Event | None) -> bool:
        if event is None or not _is_init(event):
            return False
        bench.lease.deadline = -1.0
        return True

    with pytest.raises(FencedError):
        bench.execute(job_id, stop_when=lose_lease)

    assert cut_off(bench, job_id) == []
    assert "".join(delta.text for delta in leftover(bench, job_id)) == "The answer"


def test_what_is_recorded_block_by_block_is_not_kept_twice() -> None:
    first = AssistantEvent(content="One", turn=1, index=0)
    bench = Bench()
    bench.runtime = streaming("One", "Tw", before=first, events=[INIT, first], is_endless=True)
    job_id = bench.submit().job.id

    bench.execute(job_id, stop_when=lambda event: isinstance(event, AssistantEvent))

    assert cut_off(bench, job_id) == ["Tw"]


def test_an_answer_that_is_asked_for_anew_takes_the_place_of_what_was_streamed() -> None:
    bench = Bench()
    bench.runtime = streaming("Second try", events=[INIT], is_endless=True)
    stream = bench.runtime._before_each
    assert stream is not None

    def twice(event: Event) -> None:
        bench.runtime.requests[-1].stream.add(0, "First try")
        stream(event)

    bench.runtime._before_each = twice
    job_id = bench.submit().job.id

    bench.execute(job_id, stop_when=lambda event: event is not None and _is_init(event))

    assert cut_off(bench, job_id) == ["Second try"]


def test_secrets_are_masked_in_what_is_streamed_and_kept() -> None:
    bench = Bench(environment={"API_TOKEN": "tok-123456789"})
    bench.runtime = streaming("key tok-123456789 and tok-12", events=[INIT], is_endless=True)
    job_id = bench.submit().job.id

    bench.execute(job_id, stop_when=lambda event: event is not None and _is_init(event))

    assert cut_off(bench, job_id) == ["key [secret:API_TOKEN] and "]


def test_what_a_killed_worker_was_streaming_is_recorded_once_by_the_next_execution() -> None:
    yard = Yard()
    job = yard.taken(yard.register("worker-dead"))
    begin(yard.bench, job)
    leave(yard.bench, job, "The answer", "is fo", after=1)
    yard.bench.lose(job.id)

    done = yard.bench.execute(job.id)

    assert done.status is JobStatus.COMPLETED
    assert cut_off(yard.bench, job.id) == ["The answer\n\nis fo"]
    assert leftover(yard.bench, job.id) == []
    assert (done.turns, done.messages) == (1, 2)


def test_text_whose_answer_was_recorded_before_the_kill_is_not_recorded_again() -> None:
    yard = Yard()
    job = yard.taken(yard.register("worker-dead"))
    written = begin(yard.bench, job, NEVER_ENDS)
    leave(yard.bench, job, "who", after=written.seq - 1)
    yard.bench.lose(job.id)

    yard.bench.execute(job.id)

    assert cut_off(yard.bench, job.id) == []
    assert leftover(yard.bench, job.id) == []


def test_a_line_whose_writer_was_killed_before_it_removed_the_text_is_not_repeated() -> None:
    yard = Yard()
    job = yard.taken(yard.register("worker-dead"))
    begin(yard.bench, job)
    leave(yard.bench, job, "The answer", after=1)
    begin(yard.bench, job, AssistantEvent(content="The answer", partial=True, extra=CUT_OFF_EXTRA))
    yard.bench.lose(job.id)

    yard.bench.execute(job.id)

    assert cut_off(yard.bench, job.id) == ["The answer"]


def test_a_job_that_ends_with_its_rescue_keeps_what_it_was_answering() -> None:
    yard = Yard(max_restarts=0)
    job = yard.taken(yard.register("worker-dead", pid=7, deadline=0.0))
    yard.dead.add(7)
    leave(yard.bench, job, "The answer")

    anyio.run(rescue, yard.record, yard.terms)
    anyio.run(rescue, yard.record, yard.terms)

    assert yard.bench.job(job.id).is_terminal
    assert cut_off(yard.bench, job.id) == ["The answer"]
    assert leftover(yard.bench, job.id) == []


def test_a_rescued_job_that_is_cancelled_before_it_continues_keeps_it_too() -> None:
    yard = Yard()
    job = yard.taken(yard.register("worker-dead"))
    leave(yard.bench, job, "The answer")
    yard.bench.lose(job.id)

    async def nothing() -> None:
        """Nobody is lost."""

    async def cancel() -> Job:
        return await cancel_job(Cancel(job_id=job.id), yard.bench.context, rescue=nothing)

    assert anyio.run(cancel).status is JobStatus.CANCELLED
    assert cut_off(yard.bench, job.id) == ["The answer"]


def _is_init(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.INIT
