"""Commands: what people tell the bot itself, carried out. Each answers in markdown, to be said where it was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from nightherd.engine.chat.command_texts import config_text, help_text, session_text, tools_text
from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.late_commands import is_about, was_asked_later
from nightherd.engine.chat.runs import start_run, workflows_text
from nightherd.engine.operations.jobs import finish_cancel
from nightherd.engine.operations.new_job import JobDraft, session_key_of
from nightherd.errors import RefusedError
from nightherd.model.change import Refused, Why
from nightherd.model.chat.accept import Spoken
from nightherd.model.chat.changes import EditPost, RecordMessage, ResetConversation
from nightherd.model.chat.commands import HOW_TO_CALL, ParsedCommand, split_skill
from nightherd.model.chat.conversation import Conversation, conversation_id, session_channel
from nightherd.model.chat.files import shown_name
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.message import ChatMessage
from nightherd.model.chat.prompt import author, skill_prompt
from nightherd.model.chat.settings import SessionScope
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.sessions.session import Session
from nightherd.model.text import counted
from nightherd.model.units import MicroUsd, format_duration, format_usd

MOST_SHOWN = 5
"""Messages and people that `status` names."""
MOST_COUNTED = 1_000
"""Turns that `usage` adds up, the latest ones."""
NOTHING_RUNS = "Nothing is running here."
ENDED = "It has ended already."
LATE = "Something else was asked since you said that, so I did nothing. Say it again if you still want it."


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a command."""

    text: str
    """What the person is told."""
    ask: str | None = None
    """What the agent is asked because of it; None for nothing."""
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What belongs to that: see `ChatMessageTexts.details`."""
    effect: CancelJob | ResetConversation | None = None
    """What is changed by it, not before it is recorded."""
    otherwise: str = ""
    """What the person is told where that is not possible any more."""


Record = Callable[[CommandResult], RecordMessage]
"""Makes the change that records a command with what the person is told."""


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """A command, and where it was given."""

    command: ParsedCommand
    spoken: Spoken
    context: ChatContext

    @property
    def conversation(self) -> Conversation | None:
        """The conversation of the place; None before the first message."""
        bot = self.context.settings.bot
        return self.context.fleet.reader.find_conversation(conversation_id(bot, self.spoken.place))

    @property
    def job(self) -> Job | None:
        """The job of the turn that runs there."""
        conversation = self.conversation
        if conversation is None or conversation.turn_job_id is None:
            return None
        return self.context.fleet.reader.find_job(conversation.turn_job_id)

    @property
    def session_owner(self) -> str | None:
        """Whose session it is: the person's own where each has one, else None."""
        is_own = self.context.settings.session_scope is SessionScope.USER
        return self.spoken.user_id if is_own else None

    @property
    def session(self) -> Session | None:
        """The session of the agent that the person's next message would continue; None before the first turn."""
        conversation, context = self.conversation, self.context
        if conversation is None:
            return None
        if self.session_owner is None or context.agent is None:
            id = conversation.session_id
            return None if id is None else context.fleet.reader.find_session(id)
        draft = JobDraft(
            agent=context.agent,
            channel_id=session_channel(
                context.settings.platform, conversation.place, self.session_owner
            ),
            session_terms=context.settings.session,
        )
        return context.fleet.reader.current_session(session_key_of(draft))

    def call(self, name: str) -> str:
        """Return how a command is written on the platform."""
        return f"`{HOW_TO_CALL[self.context.settings.platform]}{name}`"


async def carry_out(
    parsed: ParsedCommand, spoken: Spoken, context: ChatContext, record: Record | None = None
) -> CommandResult:
    """Carry out a command of a person who may use the bot there. `NightherdError` when it cannot be done.

    What it changes is recorded together with what `record` makes: so a command that is delivered again changes
    nothing else.
    """
    here = Here(command=parsed, spoken=spoken, context=context)
    command = _COMMANDS.get(parsed.name)
    if command is None:
        name = shown_name(parsed.name)
        text = f"There is no command `{name}`. {here.call('help')} lists them."
        return CommandResult(text=text)
    result = await command(here)
    result = replace(result, text=str(context.fleet.secrets.mask(result.text)))
    return result if result.effect is None else await _take_effect(result, here, record)


async def _take_effect(result: CommandResult, here: Here, record: Record | None) -> CommandResult:
    context, effect = here.context, result.effect
    assert effect is not None  # noqa: S101 (asked before)
    said = () if record is None else (record(result),)
    context.probe("chat.before_record")
    answer, *_ = await context.fleet.state.apply([effect, *said])
    context.probe("chat.after_record")
    if isinstance(effect, CancelJob):
        try:
            await finish_cancel(effect.job_id, answer, context.fleet, rescue=context.rescue)
        except RefusedError:
            result = replace(result, text=result.otherwise)
        context.signals.turns.set()
    elif isinstance(answer, Refused):
        if answer.why is not Why.SESSION_BUSY:
            raise RefusedError(answer.message)
        result = replace(result, text=result.otherwise)
    if isinstance(answer, Refused):
        # What was recorded with it says that it was done.
        at = context.fleet.clock.now()
        posts = (one.post.id for change in said for one in change.posts)
        changed = [EditPost(post_id=id, text=result.text, at=at) for id in posts]
        await context.fleet.state.apply(changed)
    return result


async def _help(here: Here) -> CommandResult:
    return CommandResult(text=help_text(here.context.settings.platform))


async def _ping(here: Here) -> CommandResult:
    return CommandResult(text="pong")


async def _status(here: Here) -> CommandResult:
    context = here.context
    agent = context.agent
    lines = [f"**{context.settings.agent}**: {_doing(here)}"]
    if agent is None:
        lines[0] += " A person has to accept the agent before it can work."
    elif agent.blocked_text is not None:
        lines[0] += f" The agent {agent.blocked_text}."
    lines += _queue(here)
    return CommandResult(text="\n".join(lines))


def _doing(here: Here) -> str:
    """What happens in the place, as a sentence."""
    job = here.job
    if job is None:
        return "nothing is running here."
    now = here.context.fleet.clock.now()
    since = format_duration(now - (job.started_at or job.created_at))
    match job.status:
        case JobStatus.PENDING:
            return f"`{job.id}` waits for a free worker, since {since}."
        case JobStatus.RUNNING if job.cancel_requested_at is not None:
            return f"`{job.id}` is being stopped."
        case JobStatus.RUNNING:
            return f"`{job.id}` has been running for {since} ({counted(job.turns, 'turn')} so far)."
        case JobStatus.SUSPENDED:
            return f"`{job.id}` waits{_for_whom(job, here)}."
        case _:
            return f"`{job.id}` has ended; its answer is being sent."


def _for_whom(job: Job, here: Here) -> str:
    items = here.context.fleet.reader.items_of_job(job.id)
    asked = [item.title for item in items if item.is_pending]
    if asked:
        return f" for a person: {shown_name(asked[0])}"
    if job.not_before is not None:
        return f" until {job.not_before:%H:%M} UTC"
    return " for a person"


def _queue(here: Here) -> Iterable[str]:
    """The messages that wait, in their order."""
    conversation = here.conversation
    if conversation is None:
        return
    reader = here.context.fleet.reader
    waiting = reader.waiting_chat_messages(conversation.id, MOST_COUNTED)
    if not waiting:
        return
    yield f"{counted(len(waiting), 'message')} waiting, in this order:"
    for number, message in enumerate(waiting[:MOST_SHOWN], start=1):
        yield f"{number}. from {shown_name(author(message.user_name))}"
    if len(waiting) > MOST_SHOWN:
        yield f"... and {len(waiting) - MOST_SHOWN} more"


async def _stop(here: Here) -> CommandResult:
    conversation, context = here.conversation, here.context
    if conversation is None or conversation.turn_job_id is None:
        return CommandResult(text=NOTHING_RUNS)
    job = here.job
    if job is not None and job.is_terminal:
        return CommandResult(text=ENDED)
    turn = context.fleet.reader.find_chat_turn(conversation.turn_job_id)
    if turn is not None and not is_about(here.spoken, turn, context.fleet.reader):
        return CommandResult(text=LATE)
    waiting = context.fleet.reader.waiting_chat_messages(conversation.id, 1)
    more = f" What waits is answered next; {here.call('reset')} drops it." if waiting else ""
    return CommandResult(
        text=f"Stopping `{conversation.turn_job_id}`.{more}",
        effect=CancelJob(job_id=conversation.turn_job_id, at=context.fleet.clock.now()),
        otherwise=ENDED,
    )


async def _reset(here: Here) -> CommandResult:
    conversation, context = here.conversation, here.context
    fresh = CommandResult(text="The next message begins a new session.")
    if conversation is None:
        return fresh
    user_id, spoken = here.session_owner, here.spoken
    said_at = spoken.sent_at if isinstance(spoken, IncomingMessage) else None
    waiting = [
        one
        for one in context.fleet.reader.waiting_chat_messages(conversation.id, MOST_COUNTED)
        if user_id in (None, one.user_id) and one.was_said_by(said_at)
    ]
    session = here.session
    busy = f"A turn is running here. Stop it first with {here.call('stop')}."
    if conversation.turn_job_id is not None:
        return CommandResult(text=busy)
    turns = context.fleet.reader.list_chat_turns(conversation.id, 1)
    if turns and was_asked_later(here.spoken, turns[0], context.fleet.reader):
        return CommandResult(text=LATE)
    change = ResetConversation(
        conversation_id=conversation.id,
        at=context.fleet.clock.now(),
        reason=f"{author(here.spoken.user_name)} began a new session",
        session_id=None if session is None else session.id,
        user_id=user_id,
        said_at=said_at,
    )
    dropped = f" {counted(len(waiting), 'message')} dropped." if waiting else ""
    return CommandResult(text=f"{fresh.text}{dropped}", effect=change, otherwise=busy)


async def _retry(here: Here) -> CommandResult:
    conversation, reader = here.conversation, here.context.fleet.reader
    if conversation is not None and conversation.turn_job_id is not None:
        text = f"A turn is running here. Stop it first with {here.call('stop')}."
        return CommandResult(text=text)
    turns = [] if conversation is None else reader.list_chat_turns(conversation.id, 1)
    if turns and not is_about(here.spoken, turns[0], reader):
        return CommandResult(text=LATE)
    asked = [] if not turns else reader.chat_messages_of_job(turns[0].job_id)
    if not asked:
        return CommandResult(text="Nothing was asked here yet.")
    ids = _repeated(asked, here.context)
    if ids is None:
        return CommandResult(text="What was asked last is not kept any more.")
    return CommandResult(text="Asking again.", ask="", details={"repeats": list(ids)})


def _repeated(asked: Sequence[ChatMessage], context: ChatContext) -> Sequence[str] | None:
    """The messages to ask again: those that people wrote, also if they were repeated before; None if one is gone."""
    ids: list[str] = []
    for one in asked:
        texts = context.fleet.reader.find_chat_message_texts(one.id)
        if texts is None or one.removed_at is not None:
            return None
        ids += texts.details.get("repeats", ()) or (one.id,)
    return ids


async def _session(here: Here) -> CommandResult:
    conversation, session = here.conversation, here.session
    if conversation is None or session is None:
        return CommandResult(text="There is no session yet: the next message begins one.")
    people = here.context.fleet.reader.active_messaging_sessions(conversation.id)
    owner = here.session_owner
    return CommandResult(
        text=session_text(session, [one for one in people if owner in (None, one.user_id)])
    )


async def _skills(here: Here) -> CommandResult:
    skills = here.context.settings.skills
    if not skills:
        return CommandResult(text="No skills are listed for this bot (`chat.skills`).")
    lines = [
        f"- `{one.name}`" + (f": {one.description}" if one.description else "") for one in skills
    ]
    example = here.call(f"skill {skills[0].name}")
    return CommandResult(text="\n".join((*lines, f"Run one with {example}.")))


async def _skill(here: Here) -> CommandResult:
    name, text = split_skill(here.command.argument)
    if not name:
        return CommandResult(text=f"Name a skill; {here.call('skills')} lists them.")
    known = [one.name for one in here.context.settings.skills]
    if known and name not in known:
        shown = shown_name(name)
        return CommandResult(text=f"There is no skill `{shown}`; {here.call('skills')} lists them.")
    return CommandResult(text=f"Running `{shown_name(name)}`.", ask=skill_prompt(name, text))


async def _run(here: Here) -> CommandResult:
    name, text = split_skill(here.command.argument)
    if not name:
        return CommandResult(text=workflows_text(here.context.fleet.workflows, here.call("run")))
    run = await start_run(name, text, here.spoken, here.context)
    return CommandResult(text=f"Started `{run.id}` of **{shown_name(run.workflow_name)}**.")


async def _tools(here: Here) -> CommandResult:
    agent = here.context.agent
    return CommandResult(text=NO_AGENT if agent is None else tools_text(agent))


async def _usage(here: Here) -> CommandResult:
    conversation, reader = here.conversation, here.context.fleet.reader
    turns = [] if conversation is None else reader.list_chat_turns(conversation.id, MOST_COUNTED)
    jobs = [job for turn in turns if (job := reader.find_job(turn.job_id)) is not None]
    if not jobs:
        return CommandResult(text="Nothing was used here yet.")
    last, which = jobs[0], "All" if len(jobs) < MOST_COUNTED else "The latest"
    lines = (
        f"Last turn: {_used((last,))}",
        f"{which} {counted(len(jobs), 'turn')}: {_used(jobs)}",
    )
    return CommandResult(text="\n".join(lines))


def _used(jobs: Sequence[Job]) -> str:
    cost = format_usd(MicroUsd(sum(job.cost_microusd for job in jobs)))
    return f"{sum(job.tokens for job in jobs):,} tokens, {cost}"


async def _config(here: Here) -> CommandResult:
    agent = here.context.agent
    if agent is None:
        return CommandResult(text=NO_AGENT)
    return CommandResult(text=config_text(agent, here.context.settings, here.spoken))


NO_AGENT = "A person has to accept the agent before it can work."

_COMMANDS: Mapping[str, Callable[[Here], Awaitable[CommandResult]]] = {
    "help": _help,
    "status": _status,
    "stop": _stop,
    "retry": _retry,
    "reset": _reset,
    "session": _session,
    "skills": _skills,
    "skill": _skill,
    "run": _run,
    "tools": _tools,
    "usage": _usage,
    "config": _config,
    "ping": _ping,
}
