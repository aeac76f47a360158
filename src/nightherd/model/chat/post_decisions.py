"""Deciding about posts: sent in the order of their conversation, each once, edited where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Row, Why
from nightherd.model.chat.changes import ClaimPost, EditPost, QueuePosts, SettlePost
from nightherd.model.chat.post import (
    ERROR_LIMIT,
    POST_LIFECYCLE,
    OutboxPost,
    PostId,
    PostKind,
    PostStatus,
    PostTexts,
    QueuedPost,
    nonce_of,
)
from nightherd.model.decisions.rows import Rows
from nightherd.model.text import shorten

NOW = timedelta()
FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(minutes=5)
MOST_DOUBLINGS = 10
LONGEST_WISH = timedelta(hours=1)
"""The longest `Retry-After` that is obeyed: after that it is asked again."""
GIVE_UP = timedelta(hours=24)
"""How long a platform is asked to take a post."""
MOST_ATTEMPTS = 300
"""How often it is asked, whatever a clock that was set says: with the longest pauses that is a day too."""


def queue(change: QueuePosts, rows: Rows) -> Answer:
    """Add the posts that are not there yet."""
    return Applied(rows=tuple(queued_rows(change.posts, rows)))


def edit(change: EditPost, rows: Rows) -> Answer:
    """The post, with what it is to say now."""
    one = rows.get(OutboxPost, change.post_id)
    if one is None:
        return _missing(change.post_id)
    if POST_LIFECYCLE.is_terminal(one.status):
        return Refused(why=Why.STATUS, message=f"post {one.id} is {one.status}")
    return Applied(rows=tuple(_edited(one, change.text, change.details, change.at)))


def queued_rows(posts: Iterable[QueuedPost], rows: Rows) -> Iterator[Row]:
    """Return the rows of the posts that are not there yet, numbered."""
    number, seen = rows.next_post_number(), set[PostId]()
    for one in posts:
        if one.post.id not in seen and rows.get(OutboxPost, one.post.id) is None:
            seen.add(one.post.id)
            yield replace(one.post, number=number)
            yield one.texts
            number += 1


def wanted_rows(posts: Iterable[QueuedPost], rows: Rows) -> Iterator[Row]:
    """Return the rows by which the posts say this: new, or edited where they are there already.

    One that was given up is followed by a new one: an answer is never lost with it.
    """
    new: list[QueuedPost] = []
    for one in posts:
        known = rows.get(OutboxPost, one.post.id)
        if known is None:
            new.append(one)
        elif POST_LIFECYCLE.is_terminal(known.status):
            id = PostId(f"{one.post.id}:again")
            new.append(
                QueuedPost(
                    post=replace(one.post, id=id, nonce=nonce_of(id)),
                    texts=replace(one.texts, post_id=id),
                )
            )
        else:
            yield from _edited(known, one.texts.text, one.texts.details, one.post.created_at)
    yield from queued_rows(new, rows)


def _edited(one: OutboxPost, text: str, details: Mapping[str, Any], at: datetime) -> Iterator[Row]:
    is_sent = one.status is PostStatus.SENT
    status = POST_LIFECYCLE.check(one.status, PostStatus.PENDING) if is_sent else one.status
    due_at = at if is_sent else one.due_at
    yield replace(one, status=status, version=one.version + 1, wanted_at=at, due_at=due_at)
    yield PostTexts(post_id=one.id, text=text, details=details)


def dropped(one: OutboxPost) -> OutboxPost:
    """Return the post as nobody needs it any more."""
    status = POST_LIFECYCLE.check(one.status, PostStatus.DROPPED)
    return replace(one, status=status, claimed_by=None)


def claim(change: ClaimPost, rows: Rows) -> Answer:
    """Take the first open post. One that another process was sending may have been taken by the platform."""
    one = rows.first_open_post(change.conversation_id)
    if one is None:
        return Refused(why=Why.NOTHING, message=f"nothing to send in {change.conversation_id}")
    if one.status is PostStatus.SENDING:
        if one.claimed_by == change.by:
            return Refused(why=Why.STATUS, message=f"post {one.id} is being sent")
        return Applied(rows=(replace(one, claimed_by=change.by, is_uncertain=True),))
    if wait_until_due(one, change.at) > NOW:
        return Refused(why=Why.TOO_EARLY, message=f"post {one.id} is due at {one.due_at}")
    status = POST_LIFECYCLE.check(one.status, PostStatus.SENDING)
    return Applied(rows=(replace(one, status=status, claimed_by=change.by),))


def settle(change: SettlePost, rows: Rows) -> Answer:
    """Sent, to be tried again after a pause, or given up."""
    one = rows.get(OutboxPost, change.post_id)
    if one is None:
        return _missing(change.post_id)
    if one.status is not PostStatus.SENDING or one.claimed_by != change.by:
        return Refused(why=Why.STALE, message=f"post {one.id} is not being sent by {change.by}")
    if change.error is None:
        return Applied(rows=(_sent(one, change),))
    error = shorten(" ".join(change.error.split()), ERROR_LIMIT)
    failed = replace(one, claimed_by=None, last_error=error)
    if change.is_permanent:
        return Applied(rows=(_refused(failed, change.at),))
    wish = change.retry_after
    attempts = one.attempts + (1 if wish is None else 0)
    if change.at - one.wanted_at >= GIVE_UP or attempts >= MOST_ATTEMPTS:
        return Applied(rows=(_step(failed, PostStatus.FAILED),))
    pause = pause_after(attempts) if wish is None else min(wish, LONGEST_WISH)
    again = replace(
        failed,
        attempts=attempts,
        is_uncertain=one.is_uncertain or change.is_uncertain,
        due_at=change.at + pause,
    )
    return Applied(rows=(_step(again, PostStatus.PENDING),))


def wait_until_due(post: OutboxPost, now: datetime) -> timedelta:
    """Return how long the post still waits: not at all when it is due, or when only a clock that was set back holds it up.

    A post that nobody has refused waits for nothing, and no other waits for longer than `LONGEST_WISH`.
    """
    wait = post.due_at - now
    is_held = post.last_error is not None and NOW < wait <= LONGEST_WISH
    return wait if is_held else NOW


def pause_after(attempts: int) -> timedelta:
    """Return how long to wait after so many attempts in a row that failed."""
    doubled: int = 2 ** min(max(attempts - 1, 0), MOST_DOUBLINGS)
    return min(FIRST_PAUSE * doubled, LONGEST_PAUSE)


def _sent(one: OutboxPost, change: SettlePost) -> OutboxPost:
    is_behind = change.version < one.version
    return replace(
        _step(one, PostStatus.PENDING if is_behind else PostStatus.SENT),
        claimed_by=None,
        message_id=change.message_id or one.message_id,
        sent_version=change.version,
        sent_at=change.at,
        due_at=change.at if is_behind else one.due_at,
        is_uncertain=False,
        attempts=0,
        last_error=None,
    )


def _refused(one: OutboxPost, at: datetime) -> OutboxPost:
    """An answer that cannot be edited any more, since somebody deleted it, is sent anew; all else is given up."""
    if one.message_id is None or one.kind is not PostKind.ANSWER:
        return _step(one, PostStatus.FAILED)
    return replace(
        _step(one, PostStatus.PENDING),
        message_id=None,
        nonce=nonce_of(one.id, one.version),
        sent_version=0,
        is_uncertain=False,
        due_at=at,
    )


def _step(one: OutboxPost, status: PostStatus) -> OutboxPost:
    return replace(one, status=POST_LIFECYCLE.check(one.status, status))


def _missing(id: PostId) -> Refused:
    return Refused(why=Why.MISSING, message=f"there is no post {id}")
