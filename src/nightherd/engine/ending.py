"""Ending: a job whose worker was lost among its hooks has ended already, but for the rest of them.

The runtime has had its last word by then: whoever takes the job over goes on with the ending, and does
not ask the runtime again.
"""

from __future__ import annotations

from collections.abc import Iterable

from anyio import to_thread

from nightherd.engine.recorder import Recorder
from nightherd.engine.workshop import Workshop
from nightherd.model.agent import Agent
from nightherd.model.event import ErrorEvent, Event, SystemEvent, is_message, payload_of
from nightherd.model.hook import HookEvent
from nightherd.model.job import Job
from nightherd.model.outcome import CANCELLED, SILENT_END, Outcome, Tally
from nightherd.model.replace import replace
from nightherd.model.system import HookRan, SystemSubtype

GOES_ON = frozenset({SystemSubtype.SUSPENDED, SystemSubtype.RESUMED})


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
    """How the events say the job has ended, when hooks of that end had begun and nothing came after.

    The time that the lost execution spent on requests is not in it: the next execution made none.
    """
    tally, begun, ended = Tally(), None, None
    for event in events:
        tally = tally.add(event)
        if is_message(event):
            begun = None
        if isinstance(event, ErrorEvent):
            ended = tally.outcome
        if not isinstance(event, SystemEvent):
            continue
        if event.subtype in GOES_ON:
            begun = None
        elif event.subtype is SystemSubtype.HOOK:
            ran = payload_of(event)
            if isinstance(ran, HookRan) and ran.id:
                begun, ended = ran.event, tally.outcome or ended
    if begun is None or begun == HookEvent.SUSPENDED:
        return None
    if begun == HookEvent.CANCELLED:
        return CANCELLED
    return replace(ended, api_duration_ms=None) if ended is not None else SILENT_END


def _read_ending(job: Job, workshop: Workshop) -> Outcome | None:
    return ending_of(workshop.journals.read(job.id, load_blobs=False))
