"""The job of a turn: what people said becomes its prompt, in the session of their conversation."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from msgspec.structs import replace

from nightherd.engine.chat.attachments import with_files
from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.log import write_log
from nightherd.engine.operations.new_job import JobDraft, session_key_of, values_of
from nightherd.errors import NightherdError, message_of
from nightherd.model.agents.agent import Agent
from nightherd.model.chat.accept import context_count
from nightherd.model.chat.conversation import Conversation, message_order, session_channel
from nightherd.model.chat.incoming import IncomingMessage, storable
from nightherd.model.chat.message import ChatMessage, ChatMessageId, ChatMessageTexts
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.prompt import PromptMessage, turn_prompt
from nightherd.model.chat.settings import SessionScope
from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import TriggerType
from nightherd.model.log import LogLevel
from nightherd.model.schedules.rule import Schedule
from nightherd.model.sessions.session import is_expired, is_over
from nightherd.model.text import render

LONGEST_HISTORY_S = 10.0
"""How long the platform may take to say what was said before."""
TRIGGERS = {
    Platform.SLACK: TriggerType.SLACK,
    Platform.DISCORD: TriggerType.DISCORD,
    Platform.TERMINAL: TriggerType.CHAT,
}


async def draft_turn(
    messages: Sequence[ChatMessage], conversation: Conversation, agent: Agent, context: ChatContext
) -> JobDraft:
    """Return the job that answers the messages: their files are fetched, and the prompt is complete."""
    settings = context.settings
    schedule = agent.schedules.get(settings.schedule) if settings.schedule is not None else None
    is_own = settings.session_scope is SessionScope.USER
    user_id = messages[0].user_id if is_own else None
    draft = JobDraft(
        agent=agent,
        prompt="",
        inputs={} if schedule is None else schedule.inputs,
        trigger_type=TRIGGERS[settings.platform],
        trigger_id=messages[-1].id,
        schedule=None if schedule is None else schedule.name,
        channel_id=session_channel(settings.platform, conversation.place, user_id),
        session_terms=settings.session,
        into=_into(context),
    )
    said = [each for one in messages for each in await _said(one, agent, context)]
    earlier = await _earlier(messages[0], conversation, context) if _begins(draft, context) else ()
    prompt = turn_prompt(
        said,
        is_shared=not (is_own or conversation.is_direct or settings.platform is Platform.TERMINAL),
        context=earlier,
        instructions=_instructions(agent, schedule),
    )
    return replace(draft, prompt=prompt)


def _into(context: ChatContext) -> SessionId | None:
    """The session that the caller of the bot has chosen, as long as it can be continued."""
    if context.session_id is None:
        return None
    session = context.fleet.reader.find_session(context.session_id)
    return None if session is None or is_over(session) else session.id


def _begins(draft: JobDraft, context: ChatContext) -> bool:
    """Whether the turn is the first one of its session."""
    if draft.into is not None:
        return False
    current = context.fleet.reader.current_session(session_key_of(draft))
    return current is None or is_expired(current, context.fleet.clock.now())


def _instructions(agent: Agent, schedule: Schedule | None) -> str | None:
    """The prompt of the agent's chat schedule."""
    if schedule is None or schedule.prompt is None:
        return None
    return render(schedule.prompt, values_of(agent, schedule.inputs))


async def _said(
    message: ChatMessage, agent: Agent, context: ChatContext
) -> Sequence[PromptMessage]:
    """The message as the prompt has it; for one that asks earlier ones again, those."""
    reader = context.fleet.reader
    texts = reader.find_chat_message_texts(message.id)
    if texts is None:
        texts = ChatMessageTexts(message_id=message.id, text="")
    repeated = [ChatMessageId(id) for id in texts.details.get("repeats", ())]
    if not repeated:
        return [await with_files(message, texts, agent, context)]
    said = []
    for id in repeated:
        one, its_texts = reader.find_chat_message(id), reader.find_chat_message_texts(id)
        if one is not None and its_texts is not None:
            said.append(await with_files(one, its_texts, agent, context))
    return said or [await with_files(message, texts, agent, context)]


async def _earlier(
    first: ChatMessage, conversation: Conversation, context: ChatContext
) -> Sequence[PromptMessage]:
    """What was said in the place before the turn, oldest first; nothing when the platform does not say it."""
    spoken = _spoken(first, conversation)
    count = context_count(spoken, context.settings)
    if not count:
        return ()
    try:
        with anyio.fail_after(LONGEST_HISTORY_S):
            # Some of the latest are the turn's own.
            found = await context.connection.history(conversation.place, None, count * 2)
    except (NightherdError, OSError, TimeoutError) as error:
        write_log(context, "history", message_of(error), level=LogLevel.WARNING)
        return ()
    begin = message_order(first.platform_message_id)
    before = [storable(one) for one in found if message_order(one.message_id) < begin]
    return [
        PromptMessage(user_name=one.user_name, text=str(context.fleet.secrets.mask(one.text)))
        for one in before[-count:]
    ]


def _spoken(message: ChatMessage, conversation: Conversation) -> IncomingMessage:
    """The message as it came in, as far as rules of channels look at it."""
    return IncomingMessage(
        bot=conversation.bot,
        place=conversation.place,
        message_id=message.platform_message_id,
        sent_at=message.sent_at,
        user_id=message.user_id,
        user_name=message.user_name,
        text="",
        is_direct=conversation.is_direct,
        guild_id=conversation.guild_id,
        parent_channel_id=conversation.parent_channel_id,
    )
