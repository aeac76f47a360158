"""Replies to questions: what a person writes where the agent waits for an answer is the answer.

Only of people who are named as approvers, and only where they talk to the bot alone or in a thread. The answer and
the message are recorded together, so neither is there without the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.late_commands import is_answer_to
from nightherd.engine.operations.perform import perform
from nightherd.engine.operations.requests import Answer
from nightherd.errors import ForbiddenError, InvalidValueError, RefusedError
from nightherd.model import change
from nightherd.model.chat.changes import RecordMessage
from nightherd.model.chat.conversation import conversation_id
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.platform import Platform
from nightherd.model.inbox.item import InboxItem, ItemKind, Verdict
from nightherd.model.jobs.job import JobStatus
from nightherd.ports import StateWriter


class AnswerAndRecord:
    """A `StateWriter` that records a message with whatever is applied."""

    def __init__(self, state: StateWriter, record: RecordMessage) -> None:
        self._state = state
        self._record = record

    async def apply(self, changes: Sequence[change.Change]) -> Sequence[change.Answer]:
        """Carry out the changes, and record the message; the answers are those to the changes."""
        answers = await self._state.apply([*changes, self._record])
        return answers[:-1]

    def take_notices(self) -> Sequence[str]:
        """What an operator should hear of."""
        return self._state.take_notices()

    async def close(self) -> None:
        """Close the state."""
        await self._state.close()


def question_answered_by(message: IncomingMessage, context: ChatContext) -> InboxItem | None:
    """Return the open question that a message answers; None for a message to the agent, or one said before the question.

    In a channel people also talk to each other: there only the buttons answer.
    """
    platform, reader = context.settings.platform, context.fleet.reader
    is_close = (
        message.is_direct
        or message.place.thread_id is not None
        or message.parent_channel_id is not None
        or platform is Platform.TERMINAL
    )
    name = context.settings.approvers.get(message.user_id)
    if name is None or not is_close or message.files or not message.text.strip():
        return None
    conversation = reader.find_conversation(conversation_id(context.settings.bot, message.place))
    if conversation is None or conversation.turn_job_id is None:
        return None
    job = reader.find_job(conversation.turn_job_id)
    if job is None or job.is_terminal:
        return None
    for one in (job, *reader.jobs_below(job.id)):
        if one.status is not JobStatus.SUSPENDED:
            continue
        for item in reader.items_of_job(one.id):
            is_open = item.is_pending and item.kind is ItemKind.QUESTION
            if is_open and is_answer_to(message, item.created_at, job.id, reader):
                texts = reader.find_item_texts(item.id)
                if texts is None or not texts.approvers or name in texts.approvers:
                    return item
    return None


async def answer_by_message(
    item: InboxItem, message: IncomingMessage, record: RecordMessage, context: ChatContext
) -> str | None:
    """Answer the question with the message, and record it with the answer; returns why it was no answer, None if it was.

    `record` says that no turn gets the message.
    """
    fleet = context.fleet
    request = Answer(
        item_id=item.id,
        verdict=Verdict.REPLY,
        by=context.settings.approvers[message.user_id],
        via=context.settings.platform.value,
        text=message.text.strip(),
        seen_hash=item.hash or None,
    )
    try:
        both = replace(fleet, state=AnswerAndRecord(fleet.state, record))
        await perform(request, both, rescue=context.rescue)
    except (RefusedError, ForbiddenError, InvalidValueError) as error:
        return str(fleet.secrets.mask(error.message))
    context.wake_after_answer()
    return None
