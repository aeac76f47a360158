"""The loop over a runtime's events: run until the job is done, out of time, stopped, or has to wait.

A run that fails in a way that can pass is followed by another in the same session: what is done stays
done, and a call that was cut off is answered, never repeated.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import timedelta

import anyio
import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.answer_stream import AnswerStream
from nightherd.engine.jobs.begin import close_open_calls
from nightherd.engine.jobs.oversight import Stopper, is_cancel_requested
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.jobs.settle import job_of
from nightherd.engine.jobs.watch import Watch
from nightherd.engine.limits.guard import Stop, earlier_ms
from nightherd.engine.sessions.context_limit import keep_within_context
from nightherd.errors import FencedError, StateError, WorkspaceError
from nightherd.model.jobs.changes import RecordContainer, RecordRuntimeSession
from nightherd.model.jobs.job import ExitReason, Job
from nightherd.model.jobs.outcome import CANCELLED, SILENT_END, Outcome, Tally
from nightherd.model.jobs.repeat import interrupted_call
from nightherd.model.jobs.retry import TryAgain, can_pass, failure_of, next_step
from nightherd.model.journal.event import (
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
    is_terminal,
    payload_of,
)
from nightherd.model.journal.system import ContainerStarted, Resumed, Suspension, Warned
from nightherd.model.sessions.session import TIMEOUT_KEY
from nightherd.model.units import format_duration, rough_duration
from nightherd.ports import RuntimeRequest

MakeRequest = Callable[[], RuntimeRequest]


async def nothing_to_prepare() -> None:
    """Have everything already."""


async def nothing_after(event: Event, tally: Tally) -> None:
    """Do nothing after an event."""


class RunLoop(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime's events, from the first run to the last: recorded, limited in time, retried."""

    job: Job
    recorder: Recorder
    context: WorkerContext
    stopper: Stopper
    watch: Watch
    make_request: MakeRequest
    """What to do, as the record stands when it is asked for."""
    stream: AnswerStream
    """Takes the text of answers while they come in."""
    prepare: Callable[[], Awaitable[None]] = nothing_to_prepare
    """Called before each run: the directory to work in is there when it returns. May raise `WorkspaceError`."""
    after: Callable[[Event, Tally], Awaitable[None]] = nothing_after
    """Called after every recorded event; nothing more is heard of the runtime until it returns."""

    async def run(self) -> Stop:
        """Run until the job is done, fails or waits; return how it ended or why it waits."""
        request, asked_at = self.make_request(), self.recorder.last_seq
        limit = request.agent.job_timeout
        scope, stopper = self.stopper.scope, self.stopper
        timeout = math.inf if limit is None else self._left_of(limit)
        left = self.watch.time_left()
        scope.deadline = anyio.current_time() + min(timeout, math.inf if left is None else left)
        stop: Stop | None = None
        with scope:
            refused = await self.watch.before_start()
            if refused is not None:
                stop = self._recorded_stop(refused)
            else:
                stop = await self._attempts(request, asked_at)
        if stopper.is_abandoned or (stopper.is_handed_over and scope.cancelled_caught):
            return SILENT_END  # nothing more is said about a job that is not ours
        if scope.cancelled_caught and stopper.reason is not None:
            return Outcome(exit_reason=stopper.reason)
        if scope.cancelled_caught and left is not None and left <= timeout:
            return self._recorded_stop(self.watch.out_of_time())
        if scope.cancelled_caught and limit is not None:
            key = TIMEOUT_KEY if limit == request.agent.session.job_timeout else "job_timeout"
            message = f"the job ran longer than its {key} of {format_duration(limit)}"
            return self._fail(ErrorEvent(message=message, code="timeout"))
        return stop or SILENT_END

    def _left_of(self, limit: timedelta) -> float:
        """Seconds that are left of a limit on the job's whole time: earlier executions have used some."""
        earlier = timedelta(milliseconds=earlier_ms(self.job, self.context))
        return max(limit - earlier, timedelta()).total_seconds()

    async def _attempts(self, request: RuntimeRequest, asked_at: int) -> Stop:
        """Run, and run again as long as failures may pass; `request` is good until the record continues."""
        is_again, is_kept_within = False, False
        while True:
            self.recorder.last_error = None
            if await self._is_prepared():
                if self.recorder.last_seq != asked_at:
                    request = self.make_request()
                if not is_kept_within:
                    is_kept_within, seq = True, self.recorder.last_seq
                    wary = replace(request, may_spend=self.watch.may_spend, late=self._take_late)
                    await keep_within_context(wary, self.job, self.recorder, self.context)
                    if self.watch.stopped is not None:
                        return self._recorded_stop(self.watch.stopped)
                    request = request if seq == self.recorder.last_seq else self.make_request()
                if is_again:
                    request = replace(request, is_continued=True)
                stop = await self._attempt(request)
                if stop is not None:
                    return self._recorded_stop(stop)
            outcome = self.recorder.tally.outcome or SILENT_END
            if outcome.exit_reason is ExitReason.SUCCESS:
                return outcome
            step, is_again = self._next_step(), True
            match step:
                case None:
                    return outcome
                case Suspension():
                    return step
                case TryAgain():
                    await self._wait_and_begin_anew(step)

    async def _is_prepared(self) -> bool:
        """Whether there is a directory to work in; why not is on record."""
        try:
            await self.prepare()
        except WorkspaceError as error:
            advice = f" ({error.hint})" if error.hint is not None else ""
            extra = {"recoverable": True} if error.can_pass else None
            self._fail(
                ErrorEvent(message=f"{error.message}{advice}", code="workspace", extra=extra)
            )
            return False
        return True

    def _next_step(self) -> TryAgain | Suspension | None:
        error, tally = self.recorder.last_error, self.recorder.tally
        if error is None or self.stopper.reason is not None:
            return None
        return next_step(
            self.context.retry,
            failure_of(error.code, error.message, error.extra),
            failures=tally.failures,
            failing_since=tally.failing_since,
            at=self.context.clock.now(),
            spread=self._random(),
        )

    def _random(self) -> float:
        """A number from 0 to 1."""
        return int(self.context.random_text(4), 36) / 36**4

    async def _wait_and_begin_anew(self, step: TryAgain) -> None:
        delay = step.delay.total_seconds()
        text = f"tried again in {rough_duration(step.delay)}, {step.attempt} of {step.attempts}"
        self.recorder.record(describe(Warned(code="retrying"), text))
        # A wait counts neither against the job's timeout nor against its limit of time.
        self.stopper.scope.deadline += delay
        self.watch.waited(delay)
        await anyio.sleep(delay)
        resumed = Resumed(reason="retry", after_seq=self.recorder.last_seq)
        self.recorder.record(describe(resumed))
        # Calls that a person is asked about have not begun.
        waiting = self.watch.waiting_calls()
        close_open_calls(self.recorder, interrupted_call("the run failed"), besides=waiting)

    async def _attempt(self, request: RuntimeRequest) -> Stop | None:
        """One run; why it was stopped from outside, or None when it came to its own end."""
        request = replace(
            request,
            at=self.watch.at,
            may_spend=self.watch.may_spend,
            spawn=self.watch.spawn,
            review=self.watch.review,
            late=self._take_late,
            spend_left=self.watch.spend_left(),
            turns_left=self.watch.turns_left(),
            stream=self.stream,
        )
        try:
            # Here too: a package that cannot be imported is the job's misfortune, not the worker's.
            runtime = await self.context.runtime(request.agent.runtime.name)
            async with aclosing(runtime.execute(request)) as events:
                async for event in events:
                    stop = await self._take(event)
                    if stop is not None or is_terminal(event):
                        return stop
            return self.watch.stopped
        except (FencedError, StateError):
            raise
        except Exception as error:  # noqa: BLE001 (an edge: whatever a runtime raises ends its job, never the worker)
            if self.watch.stopped is not None:
                return self.watch.stopped
            if not self.stopper.is_abandoned:
                self._keep_cut_off()
                self._fail(
                    ErrorEvent(
                        message=f"{type(error).__name__}: {error}",
                        code="runtime_error",
                        stack=traceback.format_exc(),
                        extra={"recoverable": True} if can_pass(error) else None,
                    )
                )
        finally:
            self._keep_cut_off()
        return None

    def _keep_cut_off(self) -> None:
        """Record what had come of an answer that was cut off with the run."""
        event = self.stream.take_cut_off()
        if event is not None and not self.stopper.is_abandoned:
            with suppress(FencedError, StateError):  # what ends the run is not replaced by this
                self.stream.recorded(self.recorder.record(event))

    async def _take(self, event: Event) -> Stop | None:
        """Record the event; whether the run has to stop after it."""
        recorder = self.recorder
        known = recorder.tally.runtime_session_id
        if is_terminal(event):
            self._keep_cut_off()
        written = recorder.record(event)
        self.stream.recorded(written)
        found = recorder.tally.runtime_session_id
        if found is not None and found != known:
            await self._note_runtime_session(found)
        started = payload_of(event) if isinstance(event, SystemEvent) else None
        if isinstance(started, ContainerStarted):
            await self._note_container(started.container_id)
        await self.after(written, recorder.tally)
        stop = await self.watch.after(written, recorder.tally)
        # Looking now and then is too late for this: a quick tool is over before the next look.
        is_at_call = isinstance(event, ToolUseEvent | ToolResultEvent)
        if is_at_call and is_cancel_requested(self.job, self.context):
            return CANCELLED
        return stop

    async def _note_runtime_session(self, runtime_session_id: str) -> None:
        """Record the runtime's own session as soon as it is known."""
        note = RecordRuntimeSession(
            job_id=self.job.id,
            epoch=self.job.epoch,
            runtime_session_id=runtime_session_id,
            at=self.context.clock.now(),
            session_note=self.recorder.tally.session_note,
        )
        (answer,) = await self.context.state.apply([note])
        job_of(answer)

    async def _note_container(self, container_id: str) -> None:
        """Record where the job runs."""
        note = RecordContainer(job_id=self.job.id, epoch=self.job.epoch, container_id=container_id)
        (answer,) = await self.context.state.apply([note])
        job_of(answer)

    def _take_late(self, event: Event) -> None:
        """Record what a run that was stopped says at its end."""
        if not self.stopper.is_abandoned:
            self.stream.recorded(self.recorder.record(event))

    def _recorded_stop(self, stop: Stop) -> Stop:
        """Record the error of a job that a limit ends; return how it stops."""
        if isinstance(stop, Outcome) and stop.error is not None:
            return self._fail(ErrorEvent(message=stop.error, code=stop.error_code))
        return stop

    def _fail(self, error: ErrorEvent) -> Outcome:
        self.recorder.record(error)
        return self.recorder.tally.outcome or SILENT_END
