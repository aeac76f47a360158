"""Beginning an execution: the lines before the runtime's own, and what the runtime is asked to do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from nightherd.engine.children import children_of_calls
from nightherd.engine.contexts import FleetContext, Stores, WorkerContext
from nightherd.engine.jobs.answer_stream import record_leftover
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.operations.fork import with_notice
from nightherd.engine.operations.new_job import values_of
from nightherd.engine.sessions.external_turns import (
    NOTHING_UNRECORDED,
    Unrecorded,
    find_unrecorded,
    placed,
)
from nightherd.model.agents.agent import Agent
from nightherd.model.chat.credentials import without_credentials
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.job import Job, JobTexts
from nightherd.model.jobs.lost import WORKER_GONE
from nightherd.model.jobs.options import FollowUp
from nightherd.model.jobs.outcome import JOURNAL_LOST, Tally, is_afterthought, usage_of
from nightherd.model.jobs.repeat import INTERRUPTED_CALL, Repeatable, interrupted_call
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    FullOutput,
    SystemEvent,
    ToolResultEvent,
    describe,
    is_by_hand,
    is_message,
)
from nightherd.model.journal.settings_ref import SettingsRef
from nightherd.model.journal.system import (
    ExecutionStarted,
    Header,
    Recovered,
    Resumed,
    SystemSubtype,
    Warned,
)
from nightherd.model.sessions.context_window import contextual
from nightherd.model.sessions.session import Session
from nightherd.model.sessions.shared import session_header
from nightherd.model.units import format_usd
from nightherd.model.usage import NOTHING_USED, Usage, tokens_in
from nightherd.ports import RuntimeFork, RuntimeRequest
from nightherd.views.sessions.conversation import events_of, messages_in, segments_of


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What was on record before this execution."""

    before: Tally
    follow_up: str | None = None
    """The prompt that the job was resumed with, and has not answered yet."""


def begin(
    recorder: Recorder,
    job: Job,
    texts: JobTexts,
    session: Session | None,
    context: WorkerContext,
    *,
    repeats: bool = False,
    settings: SettingsRef | None = None,
) -> Begun:
    """Record the lines before the runtime's own: the job itself once, this execution, what somebody said by
    hand in the session meanwhile, the prompt once.

    Calls that were cut off are answered as interrupted; where the runtime `repeats`, those that may be made
    again are left to it. `settings` is what this execution is set to work with.

    The tally of what earlier executions left on record; how they ended does not matter any more. It is
    read after this execution's first line, which shuts out every earlier writer.
    """
    last = recorder.last_seq
    earliest = _earliest(job, context) if last > 0 else None
    # Lines of epoch 0 are a program's output (engine/operations/jobs.py): no execution has begun.
    is_first = earliest is None or context.journals.last(job.id, 1)[0].epoch == 0
    if earliest is not SystemSubtype.HEADER:
        recorder.record(describe(header_of(job, texts, session, context.version)))
        if is_first and job.epoch > 1 and usage_of(job) != NOTHING_USED:
            recorder.record(_record_lost(job))
    started = ExecutionStarted(worker=context.worker, continues_after=last, settings=settings)
    recorder.record(describe(started))
    follow_up = texts.overrides.follow_up
    past = _Past(follow_up)
    if not is_first:
        for event in context.journals.read(job.id):
            past.add(event)
        recorder.tally = past.tally
    before = recorder.tally = replace(recorder.tally, outcome=None)
    known = recorder.tally.runtime_session_id or job.runtime_session_id
    unrecorded = _unrecorded(known, session, context)
    if not is_first:
        for answer in placed(unrecorded.answers, past.last_turn, is_paid=past.has_late_cost):
            recorder.record(answer)
        record_leftover(job.id, recorder, context.journals)
        found = children_of_calls(job, recorder.tally.open_calls, context)
        left = {call for _, call in found} | past.waiting
        left |= past.repeatable.calls if repeats else set()
        _record_return(recorder, job, context, was_suspended=past.was_suspended)
        if past.cut_off != NOTHING_USED:
            recorder.record(_answer_lost(past.cut_off))
        close_open_calls(recorder, past.interruption, besides=frozenset(left))
    if is_first and texts.session_note is not None:
        recorder.record(describe(Warned(code="session_not_resumed"), texts.session_note))
    for event in unrecorded.by_hand:
        recorder.record(event)
    if not past.is_asked:
        _ask(recorder, texts.prompt)
    if follow_up is not None and not past.is_told:
        recorder.record(describe(Resumed(reason="asked", after_seq=recorder.last_seq)))
        _ask(recorder, follow_up.text)
    is_open = follow_up is not None and not past.is_answered
    return Begun(before=before, follow_up=follow_up.text if follow_up and is_open else None)


def _earliest(job: Job, context: Stores) -> str | None:
    """What the record begins with, by its subtype or type; None when a writer was killed before it had begun.

    Fragments of unfinished lines do not count, and a damaged header is written again.
    """
    for event in context.journals.read(job.id, load_blobs=False):
        if not isinstance(event, SystemEvent):
            return type(event).__name__
        if event.subtype is not SystemSubtype.TORN_TAIL:
            return event.subtype
    return None


class _Past:
    """What earlier executions left, read once."""

    def __init__(self, follow_up: FollowUp | None) -> None:
        self.tally = Tally()
        self.repeatable = Repeatable()
        self.was_suspended = False
        self.is_asked = False
        self.is_told = False
        self.is_answered = False
        self.cut_off = NOTHING_USED
        """What the last execution's answer had used that never came."""
        self.last_turn = 0
        """The highest turn on record, finished or not."""
        self.has_late_cost = False
        """Whether the last run said what it had cost when it was stopped, unheard answers included."""
        self.waiting: set[str] = set()
        """Calls that a person is asked about and that have not begun."""
        self._epoch = 0
        self._why = ""
        self._after_epoch = follow_up.after_epoch if follow_up is not None else 0

    @property
    def interruption(self) -> str:
        """Return the result of a call that the last execution left open: a suspension or a lost worker cut it off."""
        if not self.was_suspended:
            return INTERRUPTED_CALL
        return interrupted_call(f"the job was suspended ({self._why})")

    def add(self, event: Event) -> None:
        """One more event."""
        if event.epoch > self._epoch:
            self.cut_off, self._epoch = self.tally.under_way, event.epoch
        self.tally = self.tally.add(event)
        self.repeatable.add(event)
        if is_by_hand(event):
            return
        self.last_turn = max(self.last_turn, event.turn or 0)
        self.is_asked = self.is_asked or self.tally.messages > 0
        match event:
            case SystemEvent(
                subtype=SystemSubtype.REVIEW,
                extra={"tool_use_id": str(call), "status": "approved"},
            ):
                self.waiting.discard(call)
            case SystemEvent(subtype=SystemSubtype.REVIEW, extra={"tool_use_id": str(call)}):
                self.waiting.add(call)
            case SystemEvent(subtype=SystemSubtype.SUSPENDED, extra=why):
                self.was_suspended = True
                self._why = str((why or {}).get("code") or (why or {}).get("reason"))
            case SystemEvent(subtype=SystemSubtype.INIT):
                self.has_late_cost = False
            case AssistantEvent(partial=None | False, turn=None) if is_afterthought(event):
                self.has_late_cost = True
            case SystemEvent(subtype=SystemSubtype.RESUMED, extra={"reason": "asked"}):
                self.is_told = event.epoch > self._after_epoch
            case AssistantEvent(partial=None | False) if self.is_told:
                self.is_answered = self.is_answered or not is_afterthought(event)
            case AssistantEvent():
                self.was_suspended = False
            case _:
                pass


def _unrecorded(known: str | None, session: Session | None, context: Stores) -> Unrecorded:
    """What the runtime will remember and the record lacks; `known` is the runtime's session."""
    if session is None:
        return NOTHING_UNRECORDED
    if known is not None:
        return find_unrecorded(session, known, context)
    has_transcript = context.transcripts.covers(session.runtime_type)
    fork = _fork_of(session, context) if has_transcript else None
    if fork is None or fork.at_uuid is not None:
        return NOTHING_UNRECORDED
    return find_unrecorded(session, fork.runtime_session_id, context)


def close_open_calls(
    recorder: Recorder, result: str = INTERRUPTED_CALL, *, besides: frozenset[str] = frozenset()
) -> None:
    """A call that was cut off is answered with `result`, and not made again (INV-ONCE). Of `besides` others know more."""
    turn = recorder.tally.turns + 1
    for call in sorted(recorder.tally.open_calls - besides):
        recorder.record(
            ToolResultEvent(
                tool_use_id=call or None,
                success=False,
                error=result,
                turn=turn,
                index=0,
                end=True,
            )
        )


def _ask(recorder: Recorder, text: str) -> None:
    recorder.record(SystemEvent(subtype=SystemSubtype.USER_INPUT, content=text, end=True))


def _record_return(recorder: Recorder, job: Job, context: Stores, *, was_suspended: bool) -> None:
    """Record why there is another execution."""
    if was_suspended:
        recorder.record(describe(Resumed(reason="suspended", after_seq=recorder.last_seq)))
    else:
        lost = generate_execution_id(job.id, job.epoch - 1)
        executions = context.reader.list_executions(job.id)
        reasons = [execution.error for execution in executions if execution.epoch == job.epoch - 1]
        reason = (reasons[-1] if reasons else None) or WORKER_GONE
        recorder.record(describe(Recovered(lost_execution=lost, reason=reason)))


def _record_lost(job: Job) -> SystemEvent:
    """What a job has used whose journal is gone: it does its work again, and has paid for it before."""
    used = usage_of(job)
    text = f"the journal of this job was lost; what it had used ({format_usd(used.cost_microusd)}) still counts"
    return describe(Warned(code=JOURNAL_LOST, raw=msgspec.to_builtins(used)), text)


def _answer_lost(used: Usage) -> SystemEvent:
    """Return what is counted for an answer that the last execution requested and never received."""
    cost, tokens = format_usd(used.cost_microusd), tokens_in(used)
    text = f"an answer was asked for and lost: about {tokens} tokens, {cost}, count as used"
    return describe(Warned(code="answer_lost", raw=msgspec.to_builtins(used)), text)


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What the rows of a job and its session say of how far they are."""

    turns: int
    """Turns of the job that its session counts already."""
    session: Session | None


def counted_now(job: Job, context: Stores) -> Counted:
    """What they say of a job that this worker has taken, as they are now."""
    reader = context.reader
    session = reader.find_session(job.session_id) if job.session_id is not None else None
    return Counted(turns=(reader.find_job(job.id) or job).turns, session=session)


def request_for(
    job: Job,
    agent: Agent,
    texts: JobTexts,
    begun: Begun,
    counted: Counted,
    recorder: Recorder,
    context: FleetContext,
) -> RuntimeRequest:
    """What the runtime is to do, as the record stands now."""
    session, record = counted.session, recorder.tally
    settled = session.turn_count if session is not None else 0
    known = record.runtime_session_id or job.runtime_session_id
    is_begun = known is not None or session is None
    fork = _fork_of(session, context) if known is None and session is not None else None
    return RuntimeRequest(
        job_id=job.id,
        execution=generate_execution_id(job.id, job.epoch),
        session_id=job.session_id,
        agent=agent,
        prompt=texts.prompt
        if is_begun or session is None
        else with_notice(texts.prompt, agent, session, fork, context),
        # The session's row counts what has been settled; turns of this job's lost executions are on
        # record in its journal only.
        session_turns=settled - counted.turns + record.turns,
        job_turns=record.turns,
        runtime_session_id=known,
        values=values_of(agent, texts.inputs),
        inputs=texts.inputs,
        environment=without_credentials(context.environment, context.agents.values()),
        protected=context.protected,
        prices=context.prices,
        secrets=context.secrets,
        fork=fork,
        is_continued=job.epoch > 1,
        follow_up=begun.follow_up,
        repeat=record.open_calls,
        keep_output=partial(_keep_output, context),
        history=lambda: _history(session, context),
    )


async def _keep_output(context: Stores, pieces: Iterator[str], left_out: int) -> FullOutput:
    """Store a long output, masked, without holding anybody up."""
    masked = context.secrets.mask_stream(pieces)
    return await to_thread.run_sync(lambda: context.journals.keep_output(masked, left_out=left_out))


def _history(session: Session | None, context: Stores) -> Iterator[Event]:
    if session is None:
        return iter(())
    parts = segments_of(context.reader, context.journals, session)
    return contextual(events_of(context.journals, parts))


def _fork_of(session: Session, context: Stores) -> RuntimeFork | None:
    """Which of the runtime's sessions a fork begins with; None when it has none, or begins with nothing."""
    if session.base_job_id is None or session.base_messages == 0:
        return None
    base = context.reader.find_job(session.base_job_id)
    if base is None or base.runtime_session_id is None:
        return None
    if _is_whole(session, base, context):
        return RuntimeFork(runtime_session_id=base.runtime_session_id)
    uuid = _uuid_at_base(session, context)
    # Nothing but what was asked is left of it: there is no answer to begin after.
    return (
        None
        if uuid is None
        else RuntimeFork(runtime_session_id=base.runtime_session_id, at_uuid=uuid)
    )


def _is_whole(session: Session, base: Job, context: Stores) -> bool:
    """Whether the fork begins with everything that is in the runtime's session, later jobs of it included."""
    last_seq = context.journals.seq_of_message(base.id, messages_in(context.journals, base))
    if session.base_seq is not None and last_seq is not None and session.base_seq < last_seq:
        return False
    if base.session_id is None:
        return True
    *_, last = context.reader.jobs_of_session(base.session_id)
    return last.id == base.id


def _uuid_at_base(session: Session, context: Stores) -> str | None:
    """The runtime's own name of the last thing said before the fork, by the agent itself or to it."""
    parts = segments_of(context.reader, context.journals, session)
    inherited = [part for part in parts if part.job.session_id != session.id]
    found: str | None = None
    for event in events_of(context.journals, inherited):
        if event.uuid is not None and event.parent_tool_use_id is None and is_message(event):
            found = event.uuid
    return found


def header_of(job: Job, texts: JobTexts, session: Session | None, version: str) -> Header:
    """What the first line of the job's journal says."""
    return Header(
        id=job.id,
        agent=job.agent,
        trigger_type=job.trigger_type.value,
        created_at=job.created_at,
        session_id=job.session_id,
        trigger_id=job.trigger_id,
        schedule=job.schedule,
        forked_from=job.forked_from,
        resumed_from=job.resumed_from,
        parent_job_id=job.parent_job_id,
        workflow_run_id=job.workflow_run_id,
        node_id=job.node_id,
        priority=job.priority,
        dedupe_key=job.dedupe_key,
        inputs=dict(texts.inputs) or None,
        session=session_header(session) if session is not None else None,
        nightherd_version=version,
    )
