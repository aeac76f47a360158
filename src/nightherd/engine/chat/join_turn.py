"""Messages that come in during a turn, for an agent at work whose runtime can be told more.

They are in the job's journal first, then in its row, then given to the agent. So a message that the agent has not
read is known, whatever is killed: the next run of the job gives it what its conversation lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import NAMESPACE_URL, uuid5

from anyio import CancelScope
from msgspec.structs import replace

from nightherd.engine.chat.send_file import TRIGGERS
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.jobs.settle import job_of
from nightherd.model.agents.agent import Agent
from nightherd.model.chat.changes import JoinTurn
from nightherd.model.chat.conversation import Conversation
from nightherd.model.chat.message import ChatMessage, ChatMessageId
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.prompt import PromptMessage, message_text
from nightherd.model.chat.settings import SessionScope
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import describe, messages_joined
from nightherd.model.journal.system import UserInput
from nightherd.ports import NewInput

MOST_MESSAGES = 100
"""Messages that an agent is told at once."""


class TurnInput:
    """What people say in the conversation of a turn while its job is at work."""

    def __init__(
        self,
        job: Job,
        conversation: Conversation,
        recorder: Recorder,
        context: WorkerContext,
        *,
        is_own: bool,
    ) -> None:
        """`is_own` says whether each person has a session: then others wait for a turn of their own."""
        self._job = job
        self._conversation = conversation
        self._recorder = recorder
        self._context = context
        self._is_own = is_own
        is_alone = conversation.is_direct or conversation.platform is Platform.TERMINAL
        self._is_shared = not (is_own or is_alone)

    async def take(self) -> Sequence[NewInput]:
        """Return what was said meanwhile, once: it is on record, and in the job. Nothing while a call runs."""
        if self._recorder.tally.open_calls:
            return ()
        said = self._texts()
        if not said:
            return ()
        ids, texts = tuple(said), "\n\n".join(said.values())
        text = str(self._context.secrets.mask(texts))
        uuid = str(uuid5(NAMESPACE_URL, f"{self._job.id}/{ids[0]}"))
        event = describe(UserInput(messages=ids), text)
        with CancelScope(shield=True):  # a message that is on record is in the job too
            self._recorder.record(replace(event, uuid=uuid, end=True))
            await self._join(ids)
        return (NewInput(uuid=uuid, text=text),)

    async def rejoin(self) -> None:
        """Put into the job what an earlier execution has recorded, and was killed before it could."""
        waiting = {one.id for one in self._waiting()}
        if not waiting:
            return
        for event in self._context.journals.read(self._job.id, load_blobs=False):
            ids = [ChatMessageId(id) for id in messages_joined(event)]
            left = tuple(id for id in ids if id in waiting)
            if left:
                await self._join(left)

    def _texts(self) -> dict[ChatMessageId, str]:
        """The first messages that wait, as the agent is told them, up to one that needs a turn of its own."""
        reader = self._context.reader
        said: dict[ChatMessageId, str] = {}
        asked = self._asked_by() if self._is_own else None
        for message in self._waiting():
            texts = reader.find_chat_message_texts(message.id)
            # Files are fetched before a turn begins.
            if texts is None or texts.details or (asked is not None and message.user_id != asked):
                break
            one = PromptMessage(user_name=message.user_name, text=texts.text)
            said[message.id] = message_text(one, is_shared=self._is_shared)
        return said

    def _waiting(self) -> Sequence[ChatMessage]:
        return self._context.reader.waiting_chat_messages(self._conversation.id, MOST_MESSAGES)

    def _asked_by(self) -> str | None:
        """Who asked for the turn, where it is one person."""
        asked = self._context.reader.chat_messages_of_job(self._job.id)
        return asked[0].user_id if asked else None

    async def _join(self, ids: tuple[ChatMessageId, ...]) -> None:
        job, context = self._job, self._context
        change = JoinTurn(job_id=job.id, epoch=job.epoch, messages=ids, at=context.clock.now())
        (answer,) = await context.state.apply([change])
        job_of(answer)


def input_for_turn(
    job: Job, agent: Agent, recorder: Recorder, context: WorkerContext
) -> TurnInput | None:
    """Return what the agent of a chat turn can be told while it is at work; None for any other job."""
    if job.trigger_type not in TRIGGERS:
        return None
    turn = context.reader.find_chat_turn(job.id)
    if turn is None or not turn.is_open:
        return None
    conversation = context.reader.find_conversation(turn.conversation_id)
    if conversation is None:
        return None
    settings = next((bot for bot in agent.bots if bot.bot == turn.bot), None)
    if settings is None and conversation.platform is not Platform.TERMINAL:
        return None
    is_own = settings is not None and settings.session_scope is SessionScope.USER
    return TurnInput(job, conversation, recorder, context, is_own=is_own)
