"""What every state store must do for posts on their way to a chat platform; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from nightherd.model.change import Change, Why
from nightherd.model.chat.changes import (
    ClaimPost,
    EditPost,
    FinishTurn,
    ForgetChat,
    QueuePosts,
    SettlePost,
    StartTurn,
)
from nightherd.model.chat.message import TurnStatus
from nightherd.model.chat.post import OutboxPost, PostId, PostKind, PostStatus, PostTexts, post_id
from nightherd.model.chat.post_decisions import GIVE_UP
from nightherd.testing.chat_values import BOT, conversation, post, said
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.state_values import BEGINNING, job_id, submit

HERE = conversation().id
ONE, TWO = PostId("one"), PostId("two")


def at(seconds: float) -> datetime:
    """So many seconds later."""
    return BEGINNING + timedelta(seconds=seconds)


def claim(seconds: float, by: str = "daemon-1") -> ClaimPost:
    """Take the next one."""
    return ClaimPost(conversation_id=HERE, by=by, at=at(seconds))


def settle(id: PostId, seconds: float, **said: object) -> SettlePost:
    """The platform took it, unless `said` says otherwise."""
    change = SettlePost(
        post_id=id, by="daemon-1", version=1, at=at(seconds), message_id=f"900.{id}"
    )
    return replace(change, **said)


def found(state: OpenState, id: PostId) -> OutboxPost:
    """The post as it is now."""
    row = state.reader.find_post(id)
    assert row is not None
    return row


async def queued(state: OpenState, *more: Change) -> None:
    """Two posts in their order, and what follows."""
    both = QueuePosts(posts=(post(ONE, "first"), post(TWO, "second")))
    await must_apply(state, said(1), both, *more)


async def check_posts_are_sent_in_the_order_of_their_conversation(state: OpenState) -> None:
    await queued(state)
    await must_apply(state, QueuePosts(posts=(post(ONE, "another"),)))
    texts = state.reader.find_post_texts(ONE)
    assert texts == PostTexts(post_id=ONE, text="first"), "what is queued stays as it is"

    await must_apply(state, claim(1))
    assert (found(state, ONE).status, found(state, TWO).status) == (
        PostStatus.SENDING,
        PostStatus.PENDING,
    )
    twice = await must_refuse(state, claim(1))
    assert twice.why is Why.STATUS, "one at a time"
    await must_apply(state, settle(ONE, 2), claim(2), settle(TWO, 3))

    sent = found(state, ONE)
    assert (sent.status, sent.message_id, sent.sent_version) == (PostStatus.SENT, "900.one", 1)
    assert sent.sent_at == at(2)
    assert state.reader.post_of_message(HERE, "900.one") == sent
    assert state.reader.post_of_message(HERE, "900.none") is None
    nothing = await must_refuse(state, claim(4))
    assert nothing.why is Why.NOTHING
    assert list(state.reader.unsent_conversations(BOT)) == []


async def check_post_is_tried_again_after_growing_pauses(state: OpenState) -> None:
    await queued(state, claim(1), settle(ONE, 1, error="no\n network", message_id=None))

    waiting = found(state, ONE)
    assert (waiting.status, waiting.attempts, waiting.last_error) == (
        PostStatus.PENDING,
        1,
        "no network",
    )
    early = await must_refuse(state, claim(1.5))
    assert early.why is Why.TOO_EARLY, "the next one does not overtake it"
    failed = settle(ONE, 2, error="no network", message_id=None)
    await must_apply(state, claim(2), failed)
    assert found(state, ONE).due_at == at(4)

    wish = timedelta(seconds=90)
    limited = settle(ONE, 4, error="too fast", message_id=None, retry_after=wish)
    await must_apply(state, claim(4), limited)
    assert (found(state, ONE).due_at, found(state, ONE).attempts) == (at(94), 2)
    await must_apply(state, claim(94), settle(ONE, 95))
    assert (found(state, ONE).attempts, found(state, ONE).last_error) == (0, None)


async def check_post_that_nobody_takes_is_given_up_and_the_next_is_sent(state: OpenState) -> None:
    refused = settle(ONE, 1, error="no such channel", message_id=None, is_permanent=True)
    await queued(state, claim(1), refused)
    assert found(state, ONE).status is PostStatus.FAILED
    assert [one.id for one in state.reader.failed_posts(BOT, 5)] == [ONE]

    day = GIVE_UP.total_seconds()
    late = settle(TWO, day + 2, error="no network", message_id=None)
    await must_apply(state, claim(day + 1), late)
    assert found(state, TWO).status is PostStatus.FAILED
    edit = await must_refuse(state, EditPost(post_id=TWO, text="again", at=at(9)))
    assert edit.why is Why.STATUS


async def check_post_of_a_killed_process_is_looked_for_first(state: OpenState) -> None:
    await queued(state, claim(1))
    await must_apply(state, claim(2, by="daemon-2"))

    taken = found(state, ONE)
    assert (taken.status, taken.claimed_by, taken.is_uncertain) == (
        PostStatus.SENDING,
        "daemon-2",
        True,
    )
    stale = await must_refuse(state, settle(ONE, 3))
    assert stale.why is Why.STALE, "the process that was killed owns it no more"
    await must_apply(state, settle(ONE, 3, by="daemon-2"))
    assert (found(state, ONE).status, found(state, ONE).is_uncertain) == (PostStatus.SENT, False)

    unsure = settle(TWO, 4, error="timeout", message_id=None, is_uncertain=True)
    await must_apply(state, claim(4), unsure)
    known = settle(TWO, 6, error="refused", message_id=None)
    await must_apply(state, claim(6), known)
    assert found(state, TWO).is_uncertain, "a later refusal says nothing about the attempt before"


async def check_edited_post_is_sent_again_in_its_place(state: OpenState) -> None:
    await queued(state)
    await must_apply(state, EditPost(post_id=ONE, text="better", at=at(1)))
    assert (found(state, ONE).version, found(state, ONE).status) == (2, PostStatus.PENDING)
    buttons = {"buttons": [{"id": "yes", "label": "Yes"}]}
    edit = EditPost(post_id=ONE, text="best", at=at(2), details=buttons)
    await must_apply(state, claim(2), edit, settle(ONE, 3, version=2))

    behind = found(state, ONE)
    assert (behind.status, behind.version, behind.sent_version) == (PostStatus.PENDING, 3, 2)
    await must_apply(state, claim(3), settle(ONE, 4, version=3, message_id=None))
    done = found(state, ONE)
    assert (done.status, done.message_id, done.sent_version) == (PostStatus.SENT, "900.one", 3)
    assert state.reader.find_post_texts(ONE) == PostTexts(post_id=ONE, text="best", details=buttons)

    await must_apply(state, EditPost(post_id=ONE, text="after all", at=at(9)))
    assert (found(state, ONE).status, found(state, ONE).due_at) == (PostStatus.PENDING, at(9))
    first = state.reader.first_open_post(HERE)
    assert first is not None
    assert first.id == ONE
    missing = await must_refuse(state, EditPost(post_id=PostId("none"), text="", at=at(9)))
    assert missing.why is Why.MISSING


async def check_answer_that_somebody_deleted_is_sent_anew(state: OpenState) -> None:
    gone = settle(ONE, 4, version=2, error="unknown message", message_id=None, is_permanent=True)
    edit = EditPost(post_id=ONE, text="better", at=at(3))
    await queued(state, claim(1), settle(ONE, 2), edit, claim(3), gone)

    anew = found(state, ONE)
    assert (anew.status, anew.message_id, anew.sent_version) == (PostStatus.PENDING, None, 0)
    assert anew.nonce != post(ONE, "").post.nonce, "the platform would take it for the deleted one"
    await must_apply(state, claim(4), replace(gone, at=at(5)))
    assert found(state, ONE).status is PostStatus.FAILED


async def check_end_of_a_turn_edits_what_was_streamed(state: OpenState) -> None:
    streamed = post_id(job_id(1), 0)
    begun = StartTurn(conversation_id=HERE, messages=(said(1).message.id,), job=submit(1), at=at(1))
    partly = QueuePosts(posts=(post(streamed, "Once upon"), post("progress:1", "working")))
    await must_apply(state, said(1), begun, partly, claim(2), settle(streamed, 3))
    end = FinishTurn(
        job_id=job_id(1),
        status=TurnStatus.ANSWERED,
        at=at(4),
        posts=(post(streamed, "Once upon a time"), post(post_id(job_id(1), 1), "the end")),
        drops=(PostId("progress:1"), PostId("none")),
    )
    await must_apply(state, end)

    mine = state.reader.posts_of_job(job_id(1))
    assert [(one.id, one.status, one.version) for one in mine] == [
        (streamed, PostStatus.PENDING, 2),
        (post_id(job_id(1), 1), PostStatus.PENDING, 1),
    ]
    assert found(state, PostId("progress:1")).status is PostStatus.DROPPED


async def check_answer_whose_stream_was_refused_is_sent_anew(state: OpenState) -> None:
    streamed = post_id(job_id(1), 0)
    begun = StartTurn(conversation_id=HERE, messages=(said(1).message.id,), job=submit(1), at=at(1))
    partly = QueuePosts(posts=(post(streamed, "Once"),))
    refused = settle(streamed, 3, error="missing access", message_id=None, is_permanent=True)
    end = FinishTurn(
        job_id=job_id(1),
        status=TurnStatus.ANSWERED,
        at=at(4),
        posts=(post(streamed, "Once upon a time"),),
    )
    await must_apply(state, said(1), begun, partly, claim(2), refused, end)

    first = state.reader.first_open_post(HERE)
    assert first is not None
    assert (first.id, first.kind) == (f"{streamed}:again", PostKind.ANSWER)


async def check_posts_of_an_item_are_found_by_it(state: OpenState) -> None:
    asked = post("item", "May I?", kind=PostKind.ITEM)
    asked = replace(asked, post=replace(asked.post, item_id="ask-000000000001"))
    await must_apply(state, said(1), QueuePosts(posts=(asked,)))

    assert [one.id for one in state.reader.posts_of_item("ask-000000000001")] == ["item"]
    assert list(state.reader.posts_of_item("ask-000000000002")) == []


async def check_texts_of_old_posts_are_removed(state: OpenState) -> None:
    await queued(state, claim(1), settle(ONE, 2))
    old = state.reader.old_posts(at(10), 10)
    assert list(old) == [ONE]

    await must_apply(state, ForgetChat(posts=(ONE, TWO), at=at(10)))

    assert state.reader.find_post_texts(ONE) == PostTexts(post_id=ONE, text="")
    kept = state.reader.find_post_texts(TWO)
    assert kept is not None
    assert kept.text == "second", "it is not sent yet"
    assert list(state.reader.old_posts(at(10), 10)) == []


CHAT_OUTBOX_CHECKS = checks_in(globals())
"""All of them."""
