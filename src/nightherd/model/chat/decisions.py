"""Deciding about conversations: each message takes effect once, one turn at a time (INV-ONCE)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Row, Why
from nightherd.model.chat.bot import ChatBot
from nightherd.model.chat.changes import (
    EndMessagingSessions,
    FinishTurn,
    ForgetChat,
    JoinTurn,
    NoteTurn,
    RecordMessage,
    ResetConversation,
    SeeMessage,
    SetBotState,
    StartTurn,
)
from nightherd.model.chat.conversation import (
    Conversation,
    ConversationId,
    MessagingSession,
    has_gone_quiet,
    latest,
)
from nightherd.model.chat.message import (
    MESSAGE_LIFECYCLE,
    TURN_LIFECYCLE,
    ChatMessage,
    ChatMessageId,
    ChatMessageTexts,
    ChatTurn,
    MessageStatus,
    TurnStatus,
)
from nightherd.model.chat.post import OutboxPost, PostKind, PostTexts
from nightherd.model.chat.post_decisions import dropped, queued_rows, wanted_rows
from nightherd.model.decisions.around import owned
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.schedules.decisions import submit
from nightherd.model.sessions.session import SESSION_LIFECYCLE, Session, SessionStatus

MOST_TAKEN = 1_000
"""Messages that one turn may take."""


def set_bot_state(change: SetBotState, rows: Rows) -> Answer:
    """The bot as it is now."""
    known, bot = rows.get(ChatBot, change.bot.id), change.bot
    if known is not None:
        bot = replace(
            bot,
            name=bot.name or known.name,
            connected_at=bot.connected_at or known.connected_at,
            first_connected_at=known.first_connected_at or bot.first_connected_at,
        )
    return Applied(rows=() if bot == known else (bot,))


def record_message(change: RecordMessage, rows: Rows) -> Answer:
    """The message, in its conversation and its person's session."""
    message = change.message
    if rows.get(ChatMessage, message.id) is not None:
        return Refused(why=Why.DUPLICATE, message=f"message {message.id} is known already")
    conversation = _conversation(change.conversation, rows)
    said = message.platform_message_id if change.moves_cursor else None
    seen = latest(conversation.seen_message_id, said)
    conversation = replace(conversation, seen_message_id=seen, last_activity_at=message.received_at)
    proposed = change.session
    current = rows.active_messaging_session(conversation, message.user_id)
    written: list[Row] = [conversation]
    if current is not None and has_gone_quiet(current, message.received_at, change.expires_after):
        written.append(_ended(current, message.received_at))
        current = None
    if current is None:
        if rows.get(MessagingSession, proposed.id) is not None:
            return Refused(
                why=Why.ID_TAKEN, message=f"there is a messaging session {proposed.id} already"
            )
        current = proposed
    session = replace(
        current,
        last_activity_at=message.received_at,
        message_count=current.message_count + 1,
        user_name=message.user_name,
    )
    number = rows.next_chat_message_number()
    written += (session, replace(message, session_id=session.id, number=number), change.texts)
    return Applied(rows=(*written, *queued_rows(change.posts, rows)))


def see_message(change: SeeMessage, rows: Rows) -> Answer:
    """Move the cursor of the place forward."""
    conversation = _conversation(change.conversation, rows)
    seen = latest(conversation.seen_message_id, change.message_id)
    moved = replace(conversation, seen_message_id=seen)
    return Applied(rows=() if rows.get(Conversation, moved.id) == moved else (moved,))


def _conversation(proposed: Conversation, rows: Rows) -> Conversation:
    known = rows.get(Conversation, proposed.id)
    return known or replace(proposed, number=rows.next_conversation_number())


def start_turn(change: StartTurn, rows: Rows) -> Answer:
    """The turn with its job and the messages that it answers, all in one."""
    conversation = rows.get(Conversation, change.conversation_id)
    if conversation is None:
        return _missing(change.conversation_id)
    if conversation.turn_job_id is not None:
        message = f"job {conversation.turn_job_id} answers in {conversation.id}"
        return Refused(why=Why.SESSION_BUSY, message=message)
    taken = _first_waiting(conversation.id, change.messages, rows)
    if taken is None:
        return Refused(why=Why.STALE, message="other messages wait")
    submitted = submit(change.job, rows)
    if isinstance(submitted, Refused) or submitted.job is None:
        return submitted
    job = submitted.job
    turn = ChatTurn(
        job_id=job.id,
        conversation_id=conversation.id,
        bot=conversation.bot,
        session_id=taken[-1].session_id,
        status=TurnStatus.RUNNING,
        started_at=change.at,
        message_count=len(taken),
        reply_to=taken[-1].message_to_reply_to,
        agent_session_id=job.session_id,
        number=rows.next_chat_turn_number(),
    )
    busy = replace(
        conversation,
        turn_job_id=job.id,
        session_id=job.session_id,
        turn_count=conversation.turn_count + 1,
        last_activity_at=change.at,
    )
    written = (*submitted.rows, busy, *_taken(taken, job, rows), turn)
    return Applied(rows=written, job=job, then=submitted.then)


def join_turn(change: JoinTurn, rows: Rows) -> Answer:
    """The messages belong to the turn that runs."""
    turn = rows.get(ChatTurn, change.job_id)
    if turn is None:
        return Refused(why=Why.MISSING, message=f"there is no turn of job {change.job_id}")
    job = owned(change.job_id, change.epoch, rows)
    if isinstance(job, Refused):
        return job
    if not turn.is_open:
        return Refused(why=Why.STATUS, message=f"the turn of job {turn.job_id} is {turn.status}")
    taken = _first_waiting(turn.conversation_id, change.messages, rows)
    if taken is None:
        return Refused(why=Why.STALE, message="other messages wait")
    joined = replace(turn, message_count=turn.message_count + len(taken))
    return Applied(rows=(*_taken(taken, job, rows), joined), job=job)


def _first_waiting(
    id: ConversationId, wanted: Sequence[ChatMessageId], rows: Rows
) -> Sequence[ChatMessage] | None:
    """The messages that wait, if the wanted ones are the first of them."""
    waiting = rows.waiting_chat_messages(id, len(wanted))
    is_same = bool(wanted) and [one.id for one in waiting] == list(wanted)
    return waiting if is_same else None


def _taken(messages: Iterable[ChatMessage], job: Job, rows: Rows) -> Iterable[Row]:
    """The messages in that job, and the sessions of those who said them."""
    sessions: dict[str, MessagingSession] = {}
    for one in messages:
        status = MESSAGE_LIFECYCLE.check(one.status, MessageStatus.TAKEN)
        yield replace(one, status=status, job_id=job.id)
        session = rows.get(MessagingSession, one.session_id)
        if session is not None and session.agent_session_id != job.session_id:
            sessions[session.id] = replace(session, agent_session_id=job.session_id)
    yield from sessions.values()


def note_turn(change: NoteTurn, rows: Rows) -> Answer:
    """Posts of the turn, each said once."""
    turn = rows.get(ChatTurn, change.job_id)
    if turn is None:
        return Refused(why=Why.MISSING, message=f"there is no turn of job {change.job_id}")
    if not turn.is_open:
        return Refused(why=Why.STATUS, message=f"the turn of job {turn.job_id} is {turn.status}")
    is_old = change.seq is not None and change.seq <= turn.seq
    if is_old or (change.notice is not None and change.notice == turn.notice):
        return Refused(why=Why.DUPLICATE, message="that was said already")
    noted = replace(
        turn,
        seq=turn.seq if change.seq is None else change.seq,
        notice=turn.notice if change.notice is None else change.notice,
    )
    return Applied(rows=(noted, *wanted_rows(change.posts, rows)))


def finish_turn(change: FinishTurn, rows: Rows) -> Answer:
    """The turn is over; its conversation is free for the next one."""
    turn = rows.get(ChatTurn, change.job_id)
    if turn is None:
        return Refused(why=Why.MISSING, message=f"there is no turn of job {change.job_id}")
    if not turn.is_open:
        return Refused(why=Why.STATUS, message=f"the turn of job {turn.job_id} is {turn.status}")
    status = TURN_LIFECYCLE.check(turn.status, change.status)
    written: list[Row] = [replace(turn, status=status, ended_at=change.at)]
    conversation = rows.get(Conversation, turn.conversation_id)
    if conversation is not None and conversation.turn_job_id == turn.job_id:
        written.append(replace(conversation, turn_job_id=None, last_activity_at=change.at))
    session = rows.get(MessagingSession, turn.session_id)
    if session is not None and any(one.post.kind is PostKind.ANSWER for one in change.posts):
        heard = replace(
            session, message_count=session.message_count + 1, last_activity_at=change.at
        )
        written.append(heard)
    found = [one for id in change.drops if (one := rows.get(OutboxPost, id)) is not None]
    unseen = {one.id: dropped(one) for one in found if one.is_unseen}
    posts = [one for one in change.posts if one.post.id not in unseen]
    return Applied(rows=(*written, *unseen.values(), *wanted_rows(posts, rows)))


def reset(change: ResetConversation, rows: Rows) -> Answer:
    """What waits is dropped; sessions of the people and of the agent are over."""
    conversation = rows.get(Conversation, change.conversation_id)
    if conversation is None:
        return _missing(change.conversation_id)
    if conversation.turn_job_id is not None:
        message = f"job {conversation.turn_job_id} answers in {conversation.id}"
        return Refused(why=Why.SESSION_BUSY, message=message)
    over = _agent_session_over(change.session_id, rows)
    if isinstance(over, Refused):
        return over
    written: list[Row] = list(over)
    if conversation.session_id == change.session_id:
        written.append(replace(conversation, session_id=None))
    for one in rows.waiting_chat_messages(conversation.id, MOST_TAKEN):
        if change.user_id in (None, one.user_id) and one.was_said_by(change.said_at):
            status = MESSAGE_LIFECYCLE.check(one.status, MessageStatus.DROPPED)
            written.append(replace(one, status=status, reason=change.reason))
    written += (
        _ended(one, change.at)
        for one in rows.active_messaging_sessions(conversation.id)
        if change.user_id in (None, one.user_id)
    )
    return Applied(rows=tuple(written))


def _agent_session_over(id: SessionId | None, rows: Rows) -> Sequence[Row] | Refused:
    session = None if id is None else rows.get(Session, id)
    if session is None or session.status in SESSION_LIFECYCLE.terminal:
        return ()
    if session.status is SessionStatus.ACTIVE or rows.open_jobs_in(session.id):
        return Refused(why=Why.SESSION_BUSY, message=f"session {session.id} is in use")
    status = SESSION_LIFECYCLE.check(session.status, SessionStatus.EXPIRED)
    return (replace(session, status=status),)


def end_sessions(change: EndMessagingSessions, rows: Rows) -> Answer:
    """End those that are still active and were quiet since then."""
    found = [one for id in change.ids if (one := rows.get(MessagingSession, id)) is not None]
    quiet = [one for one in found if one.active and one.last_activity_at < change.before]
    return Applied(rows=tuple(_ended(one, change.at) for one in quiet))


def forget(change: ForgetChat, rows: Rows) -> Answer:
    """A tombstone for each: the row stays, without what was said."""
    written: list[Row] = []
    for message in (rows.get(ChatMessage, id) for id in change.messages):
        if message is not None and not message.is_waiting and message.removed_at is None:
            written.append(replace(message, removed_at=change.at))
            written.append(ChatMessageTexts(message_id=message.id, text=""))
    for post in (rows.get(OutboxPost, id) for id in change.posts):
        if post is not None and not post.is_open and post.removed_at is None:
            written.append(replace(post, removed_at=change.at))
            written.append(PostTexts(post_id=post.id, text=""))
    return Applied(rows=tuple(written))


def _ended(session: MessagingSession, at: datetime) -> MessagingSession:
    return replace(session, active=False, ended_at=at)


def _missing(id: ConversationId | JobId) -> Refused:
    return Refused(why=Why.MISSING, message=f"there is no conversation {id}")
