"""Context limit: before a run, a conversation that has grown beyond its limit is made smaller.

The older messages give way to a summary (`system/summary`), by the agent's own model where it has one;
Claude runtimes get the command to compact, which they record themselves (`system/compact_boundary`). Either the
event is on record or nothing has happened: an execution that is killed on the way begins with this again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import Stores, WorkerContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.errors import FencedError, StateError
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.outcome import usage_in
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    describe,
    is_terminal,
)
from nightherd.model.journal.message import Message, whole_messages
from nightherd.model.journal.system import Complete, Resumed, Summary, SystemSubtype, Warned
from nightherd.model.limits.limits import Shortfall
from nightherd.model.sessions.context_window import (
    Standing,
    covers_of,
    digest,
    latest_summary,
    plan_cut,
    tokens_of,
)
from nightherd.model.sessions.session import Session
from nightherd.model.usage import BYTES_PER_TOKEN, NOTHING_USED
from nightherd.ports import RuntimeRequest, no_history
from nightherd.ports.runtime import ignore_event
from nightherd.views.sessions.conversation import events_of, segments_of

COMPACTED = frozenset(
    {SystemSubtype.COMPACT_BOUNDARY, SystemSubtype.WARNING, SystemSubtype.COMPLETE}
)
"""What of a compaction belongs on record: that it happened, and what it cost."""

DIGEST = "digest"
ASKED = (
    "Summarise the conversation below for yourself: you will go on with it and see only your summary. "
    "Keep what was asked, what was decided and done, names and places, and what is still open. "
    "Answer with the summary alone.\n\n{text}"
)


class _Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation, and what a summary stands for already."""

    messages: Sequence[Message]
    standing: Standing


async def keep_within_context(
    request: RuntimeRequest, job: Job, recorder: Recorder, context: WorkerContext
) -> None:
    """Make the conversation of the job's session smaller if it is larger than the agent's terms say.

    A model is asked only if `request.may_spend` lets it; else nothing happens, and the limit stops the job.
    """
    limit = request.agent.session.max_context_tokens
    if limit is None or job.session_id is None:
        return
    session = context.reader.find_session(job.session_id)
    if session is None:
        return
    asked = recorder.tally.unreported_bytes // BYTES_PER_TOKEN
    estimate = (recorder.tally.context_tokens or session.token_estimate) + asked
    if estimate <= limit:
        return
    if request.agent.runtime.keeps_transcript:
        compact_prompt = request.agent.runtime.compact_prompt
        if compact_prompt is not None and request.runtime_session_id is not None:
            await _compact(compact_prompt, request, recorder, context)
        return
    await _summarise(request, session, estimate, recorder, context)


async def _compact(
    prompt: str, request: RuntimeRequest, recorder: Recorder, context: WorkerContext
) -> None:
    """Let the runtime compact what it sends; the journal keeps everything."""
    asked = replace(request, prompt=prompt, follow_up=None, is_continued=False, history=no_history)
    is_done = False
    for event in await _events_of_run(asked, context):
        if isinstance(event, SystemEvent) and event.subtype in COMPACTED:
            recorder.record(event)
            is_done |= event.subtype is SystemSubtype.COMPACT_BOUNDARY
        elif isinstance(event, ErrorEvent):
            recorder.record(describe(Warned(code="not_compacted"), event.message))
    # The run that follows counts from its own beginning.
    reason = "compacted" if is_done else "not_compacted"
    recorder.record(describe(Resumed(reason=reason, after_seq=recorder.last_seq)))


async def _summarise(
    request: RuntimeRequest,
    session: Session,
    estimate: int,
    recorder: Recorder,
    context: WorkerContext,
) -> None:
    spoken = _spoken(session, context)
    before = spoken.standing
    window = request.agent.session.context_window
    cut = plan_cut(spoken.messages, window=window, covered=before.covers)
    if cut == before.covers:
        return
    older = spoken.messages[before.covers : cut]
    found = await _summary_of(older, before.text, request, recorder, context)
    if found is None:
        return
    text, author = found
    recorder.record(
        describe(
            Summary(
                covers_message=cut,
                tokens_before=estimate,
                tokens_after=tokens_of(spoken.messages[cut:], text),
                written_by=author,
            ),
            text,
        )
    )


def _spoken(session: Session, context: Stores) -> _Spoken:
    parts = segments_of(context.reader, context.journals, session)
    events = list(events_of(context.journals, parts))
    latest = latest_summary(events)
    standing = Standing()
    if latest is not None:
        standing = Standing(covers=covers_of(latest), text=latest.content)
    return _Spoken(messages=list(whole_messages(events)), standing=standing)


async def _summary_of(
    messages: Sequence[Message],
    before: str | None,
    request: RuntimeRequest,
    recorder: Recorder,
    context: WorkerContext,
) -> tuple[str, str] | None:
    """The summary and who wrote it: the agent's own model, or None where there is none, or it fails.

    None when there is not enough left to ask the model for it.
    """
    plain = digest(messages, before)
    if not request.agent.runtime.summarises:
        return plain, DIGEST
    whole = "\n\n".join(filter(None, [before, *map(_message_text, messages)]))
    is_refused = False

    async def may_spend(microusd: int | None, tokens: int) -> Shortfall | None:
        nonlocal is_refused
        shortfall = await request.may_spend(microusd, tokens)
        is_refused = shortfall is not None
        return shortfall

    def note(event: Event) -> None:
        """That it is asked is paid for, should nobody live to see the answer; what it says is for here alone."""
        if isinstance(event, AssistantEvent) and event.partial and event.usage is not None:
            recorder.record(AssistantEvent(partial=True, usage=event.usage, extra=event.extra))

    asked = replace(_by_itself(request, ASKED.format(text=whole)), may_spend=may_spend)
    said: list[str] = []
    used = NOTHING_USED
    events = await _events_of_run(asked, context, note)
    if is_refused:
        return None
    for event in events:
        match event:
            case AssistantEvent(partial=True):
                pass
            case AssistantEvent(content=content, usage=usage):
                said += [content] if content else []
                used = used + usage if usage is not None else used
            case ErrorEvent(message=message, extra=extra):
                used = usage_in(extra) or used
                recorder.record(describe(Warned(code="not_summarised"), message))
                said.clear()
            case _:
                pass
    if used != NOTHING_USED or recorder.tally.under_way != NOTHING_USED:
        recorder.record(describe(Complete(usage=used)))
        recorder.record(describe(Resumed(reason="summarised", after_seq=recorder.last_seq)))
    text = "\n\n".join(said).strip()
    return (text, request.agent.model or DIGEST) if text else (plain, DIGEST)


def _by_itself(request: RuntimeRequest, prompt: str) -> RuntimeRequest:
    """The same agent asked for one thing, outside of any conversation."""
    return replace(
        request,
        agent=_alone(request.agent),
        prompt=prompt,
        history=no_history,
        follow_up=None,
        is_continued=False,
        session_turns=0,
        job_turns=0,
        runtime_session_id=None,
        fork=None,
        injected_servers=(),
    )


def _alone(agent: Agent) -> Agent:
    """The agent with nothing but its model."""
    return replace(agent, tools=(), mcp_servers=(), system_prompt=None, max_turns=1)


def _message_text(message: Message) -> str:
    calls = "".join(f"\n[calls {call.tool_name}: {call.input}]" for call in message.calls)
    return f"{message.speaker.value}: {message.text}{calls}"


async def _events_of_run(
    request: RuntimeRequest, context: WorkerContext, note: Callable[[Event], None] = ignore_event
) -> list[Event]:
    """Return the events of a run, passed to `note` as they come. When it fails, the conversation stays as large as it is."""
    found: list[Event] = []
    try:
        runtime = await context.runtime(request.agent.runtime.name)
        async with aclosing(runtime.execute(request)) as events:
            async for event in events:
                found.append(event)
                note(event)
                if is_terminal(event):
                    break
    except (FencedError, StateError):
        raise
    except Exception as error:  # noqa: BLE001 (an edge: whatever a runtime raises)
        found.append(ErrorEvent(message=f"{type(error).__name__}: {error}", code="runtime_error"))
    return found
