"""TurnStarter: gives messages that wait to a job, one turn at a time in each conversation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import anyio
import msgspec
from anyio.abc import TaskGroup

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.log import write_log
from nightherd.engine.chat.turn_draft import draft_turn
from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.new_job import JobDraft, apply_with_fresh_ids, job_change
from nightherd.engine.operations.schedules import why_disabled
from nightherd.errors import NightherdError, RefusedError, message_of
from nightherd.model.change import Applied, Refused, Why
from nightherd.model.chat.changes import EditPost, QueuePosts, StartTurn
from nightherd.model.chat.conversation import Conversation, ConversationId
from nightherd.model.chat.message import ChatMessage
from nightherd.model.chat.post import PostKind, new_post, post_id
from nightherd.model.chat.settings import LogLevel as Detail
from nightherd.model.chat.settings import SessionScope
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.log import LogLevel
from nightherd.model.text import counted

MOST_MESSAGES = 100
"""Messages that one turn answers; the others are the next turn's."""
MOST_AT_ONCE = 8
"""Turns that are prepared at the same time: files are fetched for them."""
RETRY = timedelta(seconds=30)
"""How long until it is tried again to start a turn that could not be started."""
NOTICE_AFTER = timedelta(seconds=1)
"""How long a message waits before it is said that it does."""
EDIT_EVERY = timedelta(seconds=2)
"""How often a notice follows the length of the queue."""
QUEUE = "queue"
"""The name of the post of a turn that says how many messages wait for it."""


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation whose turn could not be started, and until when it is left alone."""

    until: datetime
    fleet: FleetContext
    """A changed fleet is tried at once."""


class TurnStarter:
    """Starts the turns of one bot."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._starting: set[ConversationId] = set()
        self._held: dict[ConversationId, _Held] = {}
        self._limiter = anyio.CapacityLimiter(MOST_AT_ONCE)

    async def run(self) -> None:
        """Start turns until cancelled."""
        context = self._context
        async with anyio.create_task_group() as tasks:
            while True:
                due = await self._look(tasks)
                now = context.fleet.clock.now()
                pause = None if due is None else max((due - now).total_seconds(), 0.0)
                await context.signals.messages.wait(pause)

    async def _look(self, tasks: TaskGroup) -> datetime | None:
        """Start what can be started; returns when to look again at the latest, None for when something happens."""
        context, reader = self._context, self._context.fleet.reader
        times: list[datetime | None] = []
        for id in reader.waiting_conversations(context.settings.bot):
            if id in self._starting:
                continue
            conversation = reader.find_conversation(id)
            waiting = reader.waiting_chat_messages(id, MOST_MESSAGES)
            if conversation is None or not waiting:
                continue
            if conversation.turn_job_id is not None:
                times.append(await self._show_queue(conversation, waiting))
                continue
            due = self._due(id, waiting)
            if due > context.fleet.clock.now():
                times.append(due)
                continue
            self._starting.add(id)
            tasks.start_soon(self._start, id)
        return min((time for time in times if time is not None), default=None)

    def _due(self, id: ConversationId, waiting: Sequence[ChatMessage]) -> datetime:
        """When the turn may begin: people who write several messages in a row have them answered together."""
        now, received_at = self._context.fleet.clock.now(), waiting[0].received_at
        # Received later than now: the clock was set back since.
        due = now if received_at > now else received_at + self._context.settings.batch_window
        held = self._held.get(id)
        if held is None or held.fleet is not self._context.fleet:
            self._held.pop(id, None)
            return due
        # Held for longer than anything is: the clock was set back since.
        return due if held.until > now + RETRY else max(due, held.until)

    async def _start(self, id: ConversationId) -> None:
        context = self._context
        try:
            async with self._limiter:
                await self._start_turn(id)
        except NightherdError as error:
            await self._hold(id, error)
        finally:
            self._starting.discard(id)
            context.signals.messages.set()

    async def _start_turn(self, id: ConversationId) -> None:
        """Give the messages that wait to a new job. Those that come meanwhile wait for the next turn."""
        context, reader = self._context, self._context.fleet.reader
        conversation = reader.find_conversation(id)
        messages = self._taken(id)
        if conversation is None or not messages or conversation.turn_job_id is not None:
            return
        agent = context.agent
        if agent is None:
            raise RefusedError("a person has to accept the agent before it can work")
        schedule = agent.schedules.get(context.settings.schedule or "")
        problem = None if schedule is None else why_disabled(agent, schedule, reader)
        if problem is not None:
            raise RefusedError(problem)
        draft = await draft_turn(messages, conversation, agent, context)

        def make(_: StartTurn | None = None) -> StartTurn:
            return _change(conversation, messages, draft, context)

        first = make()
        context.probe("chat.before_turn")
        (answer,) = await apply_with_fresh_ids([first], make, context.fleet.state.apply)
        context.probe("chat.after_turn")
        match answer:
            case Applied(job=Job() as job):
                self._held.pop(id, None)
                write_log(
                    context, "turn_started", detail=Detail.STANDARD, job=job.id, conversation=id
                )
                context.signals.turns.set()
                context.wake_jobs()
            case Refused(why=Why.STALE | Why.SESSION_BUSY):
                return  # reset meanwhile, or another process was quicker: it is looked at again
            case Refused(message=message):
                raise RefusedError(message)
            case Applied():
                raise NightherdError("the turn was recorded and its job not returned")

    def _taken(self, id: ConversationId) -> Sequence[ChatMessage]:
        """The messages that the next turn answers: where each person has a session, one person's."""
        waiting = self._context.fleet.reader.waiting_chat_messages(id, MOST_MESSAGES)
        if self._context.settings.session_scope is not SessionScope.USER:
            return waiting
        others = (at for at, one in enumerate(waiting) if one.user_id != waiting[0].user_id)
        return waiting[: next(others, len(waiting))]

    async def _hold(self, id: ConversationId, error: NightherdError) -> None:
        """Say once to those who wait that their messages cannot be answered now, and why."""
        context = self._context
        now = context.fleet.clock.now()
        self._held[id] = _Held(until=now + RETRY, fleet=context.fleet)
        message = str(context.fleet.secrets.mask(message_of(error)))
        write_log(context, "turn_failed", message, level=LogLevel.WARNING, conversation=id)
        conversation = context.fleet.reader.find_conversation(id)
        waiting = context.fleet.reader.waiting_chat_messages(id, 1)
        if conversation is None or not waiting:
            return
        text = f"I cannot begin now: {message}. Your message waits; I try again."
        notice = new_post(
            post_id(waiting[0].id, "held"),
            conversation,
            PostKind.NOTICE,
            text,
            now,
            reply_to=waiting[0].message_to_reply_to,
        )
        await context.fleet.state.apply([QueuePosts(posts=(notice,))])
        context.signals.posts.set()

    async def _show_queue(
        self, conversation: Conversation, waiting: Sequence[ChatMessage]
    ) -> datetime | None:
        """Say how many messages wait for the turn that runs; returns when there may be more to say."""
        context, reader = self._context, self._context.fleet.reader
        now = context.fleet.clock.now()
        due = waiting[0].received_at + NOTICE_AFTER
        if now < due <= now + NOTICE_AFTER:
            return due
        assert conversation.turn_job_id is not None  # noqa: S101 (a turn runs)
        text = queue_text(len(waiting), reader.find_job(conversation.turn_job_id))
        id = post_id(conversation.turn_job_id, QUEUE)
        known, texts = reader.find_post(id), reader.find_post_texts(id)
        if known is None:
            notice = new_post(
                id,
                conversation,
                PostKind.NOTICE,
                text,
                now,
                job_id=conversation.turn_job_id,
                reply_to=waiting[0].message_to_reply_to,
            )
            await context.fleet.state.apply([QueuePosts(posts=(notice,))])
        elif texts is None or texts.text == text:
            return None
        elif known.wanted_at <= now < known.wanted_at + EDIT_EVERY:
            return known.wanted_at + EDIT_EVERY
        else:
            # Refused when it was given up meanwhile: nobody sees it then.
            await context.fleet.state.apply([EditPost(post_id=id, text=text, at=now)])
        context.signals.posts.set()
        return None


def queue_text(count: int, job: Job | None) -> str:
    """Return what people are told whose messages wait for a turn."""
    number = f"{counted(count, 'message')} waiting" + ("" if count < MOST_MESSAGES else " or more")
    if job is not None and job.status is JobStatus.SUSPENDED and job.not_before is None:
        return f"{number}: I go on when a person has answered what I asked."
    return f"{number}: I answer when I am done with what I am doing now."


def _change(
    conversation: Conversation,
    messages: Sequence[ChatMessage],
    draft: JobDraft,
    context: ChatContext,
) -> StartTurn:
    return StartTurn(
        conversation_id=conversation.id,
        messages=tuple(one.id for one in messages),
        job=job_change(draft, context.fleet),
        at=context.fleet.clock.now(),
    )
