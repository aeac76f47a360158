"""Conclude: what is done between the last word of a runtime and the end of its job, which is hooks.

A worker may be lost while they run. The runtime has had its last word by then: whoever takes the job over
goes on with the ending, and does not ask the runtime again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from anyio import to_thread

from nightherd.engine.recorder import Recorder
from nightherd.engine.workshop import Workshop
from nightherd.model.agent import Agent
from nightherd.model.event import ErrorEvent, Event, SystemEvent, is_message, payload_of
from nightherd.model.hook import HookEvent
from nightherd.model.job import ExitReason, Job, shorten
from nightherd.model.outcome import SILENT_END, Outcome, Tally
from nightherd.model.system import HookRan, SystemSubtype

GOES_ON = frozenset({SystemSubtype.SUSPENDED, SystemSubtype.RESUMED})


async def conclude(
    job: Job, agent: Agent, outcome: Outcome, recorder: Recorder, workshop: Workshop
) -> Outcome:
    """Run the job's hooks; how it ends then."""
    if not agent.hooks:
        return outcome
    tally = recorder.tally
    ended = as_settled(job, outcome, tally, workshop.clock.now())
    other = await workshop.hooks.after(
        ended, agent, workshop, record=recorder.record, answer=tally.answer
    )
    return other or outcome


async def go_on_ending(
    job: Job, agent: Agent, recorder: Recorder, workshop: Workshop
) -> Outcome | None:
    """How the job had ended when its worker was lost among its hooks; None when it had not.

    An error is put on record once more, so that the job's end explains itself.
    """
    if job.epoch <= 1 or not agent.hooks:
        return None
    outcome = await to_thread.run_sync(_read_ending, job, workshop)
    if outcome is not None and outcome.error is not None:
        recorder.record(ErrorEvent(message=outcome.error, code=outcome.error_code))
    return outcome


def ending_of(events: Iterable[Event]) -> Outcome | None:
    """How the events say the job has ended, when hooks of that end had begun and nothing came after."""
    tally, begun = Tally(), None
    for event in events:
        tally = tally.add(event)
        if is_message(event):
            begun = None
        if not isinstance(event, SystemEvent):
            continue
        if event.subtype in GOES_ON:
            begun = None
        elif event.subtype is SystemSubtype.HOOK:
            ran = payload_of(event)
            if isinstance(ran, HookRan) and ran.id:
                begun = ran.event
    if begun is None or begun == HookEvent.SUSPENDED:
        return None
    if begun == HookEvent.CANCELLED:
        return Outcome(exit_reason=ExitReason.CANCELLED)
    return tally.outcome or SILENT_END


def _read_ending(job: Job, workshop: Workshop) -> Outcome | None:
    return ending_of(workshop.journals.read(job.id, load_blobs=False))


def as_settled(job: Job, outcome: Outcome, tally: Tally, at: datetime) -> Job:
    """The running `job` as it will stand once it is settled so; its other rows do not matter to hooks."""
    usage = tally.usage
    return replace(
        job,
        status=outcome.status,
        exit_reason=outcome.exit_reason,
        finished_at=at,
        summary=shorten(tally.answer) if tally.answer is not None else job.summary,
        error=shorten(outcome.error) if outcome.error is not None else None,
        error_code=outcome.error_code,
        turns=tally.turns,
        messages=tally.messages,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        cost_microusd=usage.cost_microusd,
    )
