"""What every state store must do for chat: messages, turns and sessions; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.change import Why
from nightherd.model.chat.bot import BotStatus, ChatBot
from nightherd.model.chat.changes import (
    EndMessagingSessions,
    FinishTurn,
    ForgetChat,
    JoinTurn,
    NoteTurn,
    ResetConversation,
    SeeMessage,
    SetBotState,
    StartTurn,
)
from nightherd.model.chat.conversation import ConversationQuery
from nightherd.model.chat.message import ChatMessageTexts, MessageStatus, TurnStatus
from nightherd.model.chat.platform import Platform, bot_id
from nightherd.model.chat.post import PostKind
from nightherd.model.jobs.job import JobStatus
from nightherd.model.sessions.session import SessionMode, SessionStatus
from nightherd.testing.chat_values import BOT, PLACE, conversation, post, said
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

LATER = BEGINNING + timedelta(minutes=5)
HERE = conversation().id
THREAD = replace(PLACE, thread_id="100.5")


def turn(number: int, *messages: int) -> StartTurn:
    """Job `number` answers those messages, in the session of the channel."""
    job = submit(number, mode=SessionMode.PER_CHANNEL, channel="slack:C1")
    ids = tuple(said(one).message.id for one in messages)
    return StartTurn(conversation_id=HERE, messages=ids, job=job, at=LATER)


def finish(number: int, *texts: str) -> FinishTurn:
    """The turn of job `number` was answered so."""
    posts = tuple(post(f"{job_id(number)}:{place}", text) for place, text in enumerate(texts))
    return FinishTurn(job_id=job_id(number), status=TurnStatus.ANSWERED, at=LATER, posts=posts)


async def check_message_is_recorded_once_with_its_conversation(state: OpenState) -> None:
    first = said(1, text="moo 🐄", files=({"id": "F1", "name": "hay.png"},))
    assert state.reader.find_chat_message(first.message.id) is None
    assert state.reader.find_conversation(HERE) is None

    await must_apply(state, first)
    again = await must_refuse(state, said(1, session="other"))
    await must_apply(state, said(2))

    assert again.why is Why.DUPLICATE
    message = state.reader.find_chat_message(first.message.id)
    assert message == replace(first.message, number=1)
    assert state.reader.find_chat_message_texts(first.message.id) == first.texts
    known = state.reader.find_conversation(HERE)
    assert known is not None
    assert (known.place, known.number, known.seen_message_id) == (PLACE, 1, "100.2")
    (person,) = state.reader.active_messaging_sessions(HERE)
    assert (person.id, person.message_count, person.user_name) == ("msg-1", 2, "Ada")
    waiting = state.reader.waiting_chat_messages(HERE, 10)
    assert [one.platform_message_id for one in waiting] == ["100.1", "100.2"]
    assert list(state.reader.waiting_conversations(BOT)) == [HERE]
    assert list(state.reader.waiting_conversations(bot_id(Platform.SLACK, "other"))) == []
    assert state.reader.count_chat_messages(BOT, "U1", BEGINNING) == 2
    assert state.reader.count_chat_messages(BOT, "U1", BEGINNING + timedelta(seconds=2)) == 1
    assert state.reader.count_chat_messages(BOT, "U2", BEGINNING) == 0


async def check_each_person_has_one_active_session_in_each_place(state: OpenState) -> None:
    await must_apply(state, said(1), said(2, user="U2"), said(3, place=THREAD), said(4))
    other = conversation(agent="other")
    await must_apply(state, said(5, agent="other"))

    assert [one.id for one in state.reader.active_messaging_sessions(HERE)] == ["msg-1", "msg-2"]
    in_thread = conversation(place=THREAD)
    assert [one.id for one in state.reader.active_messaging_sessions(in_thread.id)] == ["msg-3"]
    assert [one.id for one in state.reader.active_messaging_sessions(other.id)] == ["msg-5"]
    listed = state.reader.list_conversations(ConversationQuery(limit=2))
    assert [one.id for one in listed] == [other.id, in_thread.id]
    mine = state.reader.list_conversations(ConversationQuery(bot=BOT, before=2))
    assert [one.id for one in mine] == [HERE]
    lively = state.reader.active_conversations(BOT, BEGINNING + timedelta(seconds=4), 10)
    assert [one.id for one in lively] == [HERE]


async def check_quiet_session_is_followed_by_a_new_one(state: OpenState) -> None:
    day = timedelta(hours=24)
    await must_apply(state, said(1))
    late = said(100_000)
    await must_apply(state, replace(late, expires_after=day))

    (person,) = state.reader.active_messaging_sessions(HERE)
    assert (person.id, person.message_count) == ("msg-100000", 1)

    quiet = state.reader.quiet_messaging_sessions("grazer", late.message.received_at, 10)
    assert list(quiet) == []
    later = late.message.received_at + day
    found = state.reader.quiet_messaging_sessions("grazer", later, 10)
    assert list(found) == ["msg-100000"]
    await must_apply(state, EndMessagingSessions(ids=tuple(found), before=later, at=later))
    assert list(state.reader.active_messaging_sessions(HERE)) == []


async def check_turn_takes_the_first_messages_and_no_other_begins(state: OpenState) -> None:
    await must_apply(state, said(1), said(2), said(3))

    skipping = await must_refuse(state, turn(1, 2, 3))
    none = await must_refuse(state, replace(turn(1), messages=()))
    taken = await must_apply(state, turn(1, 1, 2))
    second = await must_refuse(state, turn(2, 3))

    assert (skipping.why, none.why, second.why) == (Why.STALE, Why.STALE, Why.SESSION_BUSY)
    job = taken.job
    assert job is not None
    assert (job.id, job.status, job.session_id) == (job_id(1), JobStatus.PENDING, "sess-00000001")
    assert state.reader.find_job(job_id(1)) == job
    assert state.reader.find_job(job_id(2)) is None, "nothing of a refused turn is there"
    mine = state.reader.chat_messages_of_job(job_id(1))
    assert [(one.platform_message_id, one.status) for one in mine] == [
        ("100.1", MessageStatus.TAKEN),
        ("100.2", MessageStatus.TAKEN),
    ]
    known = state.reader.find_chat_turn(job_id(1))
    assert known is not None
    assert (known.status, known.reply_to, known.message_count) == (TurnStatus.RUNNING, "100.2", 2)
    here = state.reader.find_conversation(HERE)
    assert here is not None
    assert (here.turn_job_id, here.session_id, here.turn_count) == (job_id(1), job.session_id, 1)
    assert list(state.reader.answering_conversations(BOT)) == [here]
    (person,) = state.reader.active_messaging_sessions(HERE)
    assert person.agent_session_id == job.session_id


async def check_turn_ends_once_with_its_answer(state: OpenState) -> None:
    await must_apply(state, said(1), turn(1, 1), said(2))
    await must_apply(state, finish(1, "one", "two"))
    again = await must_refuse(state, finish(1, "three"))
    missing = await must_refuse(state, finish(7))

    assert (again.why, missing.why) == (Why.STATUS, Why.MISSING)
    known = state.reader.find_chat_turn(job_id(1))
    assert known is not None
    assert (known.status, known.ended_at) == (TurnStatus.ANSWERED, LATER)
    texts = [state.reader.find_post_texts(one.id) for one in state.reader.posts_of_job(job_id(1))]
    assert [one.text for one in texts if one is not None] == ["one", "two"]
    (person,) = state.reader.active_messaging_sessions(HERE)
    assert person.message_count == 3, "two of the person and an answer"

    await must_apply(state, turn(2, 2))
    newest = state.reader.list_chat_turns(HERE, 5)
    assert [one.job_id for one in newest] == [job_id(2), job_id(1)]
    assert list(state.reader.list_chat_turns(HERE, 5, newest[0].number)) == [newest[1]]


async def check_messages_join_the_turn_that_runs(state: OpenState) -> None:
    def join(number: int, *, epoch: int = 1) -> JoinTurn:
        ids = (said(number).message.id,)
        return JoinTurn(job_id=job_id(1), epoch=epoch, messages=ids, at=LATER)

    await must_apply(state, said(1), turn(1, 1), said(2))
    early = await must_refuse(state, join(2, epoch=0))
    await must_apply(state, start(1))
    old = await must_refuse(state, join(2, epoch=0))
    none = await must_refuse(state, join(3))
    await must_apply(state, join(2))
    again = await must_refuse(state, join(2))

    assert (early.why, old.why) == (Why.STATUS, Why.FENCED)
    assert (none.why, again.why) == (Why.STALE, Why.STALE)
    assert len(state.reader.chat_messages_of_job(job_id(1))) == 2
    await must_apply(state, settle(1), finish(1), said(3))
    over = await must_refuse(state, join(3))
    assert over.why is Why.STATUS


async def check_what_a_turn_says_is_said_once(state: OpenState) -> None:
    await must_apply(state, said(1), turn(1, 1))
    note = NoteTurn(job_id=job_id(1), posts=(post("tool-1", "ls"),), seq=4)
    wait = NoteTurn(job_id=job_id(1), posts=(post("wait-1", "until 3"),), notice="until 3")

    await must_apply(state, note, wait)
    said_again = await must_refuse(state, note)
    waits_again = await must_refuse(state, wait)
    older = await must_refuse(state, replace(note, seq=3))

    assert {said_again.why, waits_again.why, older.why} == {Why.DUPLICATE}
    await must_apply(state, replace(note, posts=(post("tool-2", "cat"),), seq=9))
    found = state.reader.list_posts(HERE, 10)
    assert [one.id for one in found] == ["tool-2", "wait-1", "tool-1"]
    await must_apply(state, finish(1))
    over = await must_refuse(state, replace(note, seq=12))
    assert over.why is Why.STATUS


async def check_reset_drops_what_waits_and_begins_a_new_session(state: OpenState) -> None:
    await must_apply(state, said(1), turn(1, 1), said(2))
    reset = ResetConversation(
        conversation_id=HERE,
        at=LATER,
        reason="reset by Ada",
        session_id=submit(1).session.id,
    )
    busy = await must_refuse(state, reset)
    await must_apply(state, finish(1))
    still = await must_refuse(state, reset)
    assert (busy.why, still.why) == (Why.SESSION_BUSY, Why.SESSION_BUSY), "its job has not ended"

    await must_apply(state, start(1), settle(1), reset)

    dropped = state.reader.find_chat_message(said(2).message.id)
    assert dropped is not None
    assert (dropped.status, dropped.reason) == (MessageStatus.DROPPED, "reset by Ada")
    assert list(state.reader.active_messaging_sessions(HERE)) == []
    session = state.reader.find_session(submit(1).session.id)
    assert session is not None
    assert session.status is SessionStatus.EXPIRED
    await must_apply(state, said(3), turn(3, 3))
    job = state.reader.find_job(job_id(3))
    assert job is not None
    assert job.session_id == submit(3).session.id


async def check_cursor_of_a_place_only_moves_forward(state: OpenState) -> None:
    here = conversation()
    await must_apply(state, SeeMessage(conversation=here, message_id="100.9"))
    await must_apply(state, SeeMessage(conversation=here, message_id="99.11"), said(2))

    known = state.reader.find_conversation(HERE)
    assert known is not None
    assert known.seen_message_id == "100.9"
    await must_apply(state, SeeMessage(conversation=here, message_id="100.10"))
    moved = state.reader.find_conversation(HERE)
    assert moved is not None
    assert moved.seen_message_id == "100.10", "numbers, not text"


async def check_place_is_recorded_without_a_message(state: OpenState) -> None:
    await must_apply(state, SeeMessage(conversation=conversation(), message_id=None))
    await must_apply(state, SeeMessage(conversation=conversation(), message_id=None))

    known = state.reader.find_conversation(HERE)
    assert known is not None
    assert (known.seen_message_id, known.created_at) == (None, BEGINNING)


async def check_message_beyond_what_was_looked_at_leaves_the_cursor(state: OpenState) -> None:
    await must_apply(state, said(1), replace(said(2), moves_cursor=False))

    known = state.reader.find_conversation(HERE)
    assert known is not None
    assert known.seen_message_id == "100.1"
    assert len(state.reader.waiting_chat_messages(HERE, 10)) == 2


async def check_bot_remembers_when_it_was_first_connected(state: OpenState) -> None:
    bot = ChatBot(
        id=BOT,
        agent="grazer",
        platform=Platform.SLACK,
        status=BotStatus.CONNECTED,
        changed_at=BEGINNING,
        name="Grazer",
        connected_at=BEGINNING,
        first_connected_at=BEGINNING,
    )
    lost = replace(
        bot,
        status=BotStatus.DISCONNECTED,
        changed_at=LATER,
        name=None,
        connected_at=None,
        first_connected_at=None,
        error="no network",
    )
    assert list(state.reader.list_chat_bots()) == []

    await must_apply(state, SetBotState(bot=bot), SetBotState(bot=lost))
    expected = replace(lost, name="Grazer", connected_at=BEGINNING, first_connected_at=BEGINNING)
    assert list(state.reader.list_chat_bots()) == [expected]

    again = replace(bot, changed_at=LATER, connected_at=LATER, first_connected_at=LATER)
    await must_apply(state, SetBotState(bot=again))
    assert list(state.reader.list_chat_bots()) == [replace(again, first_connected_at=BEGINNING)]


async def check_old_texts_are_removed_and_rows_stay(state: OpenState) -> None:
    await must_apply(state, said(1), turn(1, 1), finish(1, "old"), said(2))
    messages = state.reader.old_chat_messages(LATER, 10)
    assert list(messages) == [said(1).message.id], "what waits is not old"
    assert list(state.reader.old_posts(LATER, 10)) == [], "what is not sent is not old"

    await must_apply(state, ForgetChat(messages=tuple(messages), at=LATER))

    texts = state.reader.find_chat_message_texts(said(1).message.id)
    assert texts == ChatMessageTexts(message_id=said(1).message.id, text="")
    message = state.reader.find_chat_message(said(1).message.id)
    assert message is not None
    assert message.removed_at == LATER
    assert list(state.reader.old_chat_messages(LATER, 10)) == []
    again = await must_refuse(state, said(1))
    assert again.why is Why.DUPLICATE, "it is still known"
    assert [one.id for one in state.reader.list_chat_messages(HERE, 1)] == [said(2).message.id]
    page = state.reader.list_chat_messages(HERE, 5, 2)
    assert [one.id for one in page] == [said(1).message.id]


async def check_answer_given_with_a_message_is_queued_with_it(state: OpenState) -> None:
    refused = said(1)
    message = replace(refused.message, status=MessageStatus.DROPPED, reason="too many messages")
    notice = post("limit", "Too many messages.", kind=PostKind.NOTICE)
    await must_apply(state, replace(refused, message=message, posts=(notice,)))

    assert list(state.reader.waiting_conversations(BOT)) == []
    assert list(state.reader.unsent_conversations(BOT)) == [HERE]
    first = state.reader.first_open_post(HERE)
    assert first == replace(notice.post, number=1)


CHAT_STATE_CHECKS = checks_in(globals())
"""All of them."""
