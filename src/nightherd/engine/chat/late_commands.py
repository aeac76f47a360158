"""Late messages: what a person said a while ago is about what went on then, not about what began since.

A kill may come before anything of a message is on record. The platform delivers it again, or it is found in the
history; by then another turn may run. Platforms have clocks of their own: how long messages of about that time took
to arrive says how far the clocks are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nightherd.model.chat.accept import Spoken
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.message import ChatMessage, ChatTurn
from nightherd.model.ids import JobId
from nightherd.ports import StateReader


def is_about(spoken: Spoken, turn: ChatTurn, reader: StateReader) -> bool:
    """Whether a command is about this turn: not if all of it was asked later, or the turn before still ran when it was said."""
    if not isinstance(spoken, IncomingMessage):
        return True  # a slash command is delivered once, while the person waits
    if was_asked_later(spoken, turn, reader):
        return False
    earlier = next(iter(reader.list_chat_turns(turn.conversation_id, 1, turn.number)), None)
    if earlier is None or earlier.ended_at is None:
        return True
    around = [*_written(turn.job_id, reader), *_written(earlier.job_id, reader)]
    return not _was_said_before(spoken, earlier.ended_at, around)


def was_asked_later(spoken: Spoken, turn: ChatTurn, reader: StateReader) -> bool:
    """Whether everything that the turn answers was said after that."""
    if not isinstance(spoken, IncomingMessage):
        return False
    asked = _written(turn.job_id, reader)
    return bool(asked) and all(one.sent_at > spoken.sent_at for one in asked)


def is_answer_to(
    message: IncomingMessage, asked_at: datetime, job_id: JobId, reader: StateReader
) -> bool:
    """Whether a message may answer what the turn of the job asked then: it was not said before."""
    return not _was_said_before(message, asked_at, _written(job_id, reader))


def _was_said_before(message: IncomingMessage, at: datetime, around: Sequence[ChatMessage]) -> bool:
    """Whether a message was said before an instant of our clock, as far as messages of about that time can tell."""
    delays = [one.received_at - one.sent_at for one in around]
    return bool(delays) and message.sent_at < at - min(delays)


def _written(job_id: JobId, reader: StateReader) -> Sequence[ChatMessage]:
    """The messages that a turn answers, as far as the platform's clock says when they were said."""
    found = reader.chat_messages_of_job(job_id)
    return [one for one in found if one.message_to_reply_to is not None]
