"""Turns made by hand: what somebody said in a session outside the fleet becomes a job of it.

Recorded as any job is, in its own execution, so that history, counts, forks and exports know it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from nightherd.engine.execution import execute
from nightherd.engine.resuming import branch
from nightherd.engine.submit import SubmitRequest, submit
from nightherd.engine.workshop import Workshop
from nightherd.model.agent import Agent
from nightherd.model.event import Event, SystemEvent, describe
from nightherd.model.job import Job
from nightherd.model.session import SESSION_LIFECYCLE, Session
from nightherd.model.system import Complete, Init
from nightherd.model.trigger import TriggerType
from nightherd.ports import RuntimeRequest
from nightherd.views.conversation import events_of, segments_of

BY_HAND = "takeover"
"""What such a job was triggered by."""


class _Retold:
    """A runtime that says what was said already."""

    def __init__(self, session: Session, events: Sequence[Event]) -> None:
        self._session = session
        self._events = events

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """Everything after the question, which stands on record before the run begins."""
        session = self._session
        yield describe(
            Init(
                runtime=session.runtime_type,
                runtime_session_id=session.runtime_session_id,
                working_directory=session.working_directory,
            )
        )
        for event in self._events[1:]:
            yield event
        yield describe(Complete(stop_reason=BY_HAND))


def known_uuids(session: Session, workshop: Workshop) -> set[str]:
    """What of the conversation is on record, by the runtime's own names, in whichever of our sessions."""
    known: set[str] = set()
    same = workshop.reader.sessions_of_runtime(session.runtime_session_id or "")
    for one in {row.id: row for row in (session, *same)}.values():
        parts = segments_of(workshop.reader, workshop.journals, one)
        events = events_of(workshop.journals, parts, load_blobs=False)
        known |= {event.uuid for event in events if event.uuid is not None}
    return known


async def record_hand_turns(
    session: Session, events: Sequence[Event], agent: Agent, workshop: Workshop
) -> Job | None:
    """One job for what was said by hand, over when it is recorded; None when nothing was.

    `events` begin with a question. Nothing is run, and no hook is. What is over already is gone on with in a
    branch, as by any job.
    """
    first = events[0] if events else None
    if not isinstance(first, SystemEvent):
        return None
    if session.status in SESSION_LIFECYCLE.terminal or session.removed_at is not None:
        made, _ = await branch(session, None, workshop)
        session = replace(made, runtime_session_id=session.runtime_session_id)
    retold = _Retold(session, events)
    plain = replace(agent, hooks=(), max_turns=None, max_budget_microusd=None, job_timeout=None)
    quiet = replace(workshop, runtimes=lambda name: retold)
    request = SubmitRequest(
        agent=plain,
        prompt=first.content or "(nothing)",
        trigger_type=TriggerType.MANUAL,
        trigger_id=BY_HAND,
        into=session.id,
        channel_id=session.channel_id,
    )
    submitted = await submit(request, workshop)
    return await execute(submitted.job.id, plain, quiet, on_event=lambda event: None)
