"""Items: what waits for a person because of a turn or a run appears where that was asked for, and is kept up to date.

Nothing is remembered but the posts: after a restart those that still ask are found again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import anyio
from msgspec.structs import replace

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.run_items import RunItems
from nightherd.engine.limits.guard import limits_for
from nightherd.engine.operations.raise_limits import used_in_all
from nightherd.model.change import Refused
from nightherd.model.chat.changes import EditPost, QueuePosts
from nightherd.model.chat.conversation import Conversation
from nightherd.model.chat.item_post import HEADINGS, ItemPost, item_post
from nightherd.model.chat.post import (
    POST_LIFECYCLE,
    OutboxPost,
    PostId,
    PostKind,
    QueuedPost,
    new_post,
    post_id,
)
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem, InboxQuery, InboxTexts, ItemId, ItemKind
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.limits.limits import BOUNDLESS, LimitName

PAUSE_S = 0.2
"""How long it is waited for more to happen before looking: while jobs run, something happens all the time."""
LIVELY = timedelta(days=30)
MOST_PLACES = 500
MOST_POSTS = 200
"""Where posts that still ask are looked for after a start: places where something happened, and posts in each."""
MOST_ANSWERED = 500
"""Items whose posts are looked at too: those that were asked last, of all that are answered."""


class Items:
    """The posts of one bot about items of the inbox."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._asking = context.asking
        self._runs = RunItems(context)

    async def run(self) -> None:
        """Show items, and keep them up to date, until cancelled."""
        self._find_asking()
        while True:
            await self.look()
            await self._context.signals.items.wait()
            await anyio.sleep(PAUSE_S)

    async def look(self) -> None:
        """Post the items that are new, and edit the posts of those that have changed."""
        reader = self._context.fleet.reader
        for conversation in reader.answering_conversations(self._context.settings.bot):
            for item in self._asked(conversation):
                if item.id not in self._asking and conversation.turn_job_id is not None:
                    await self._ask(item, conversation, conversation.turn_job_id)
        for one in self._runs.pending():
            if one.item.id not in self._asking:
                await self._ask(one.item, one.conversation, one.run_id)
        for item_id, id in tuple(self._asking.items()):
            await self._update(item_id, id)

    def _find_asking(self) -> None:
        """Find the posts of an earlier process that still have buttons."""
        context, reader = self._context, self._context.fleet.reader
        bot, since = context.settings.bot, context.fleet.clock.now() - LIVELY
        places = [
            *reader.active_conversations(bot, since, MOST_PLACES),
            *reader.answering_conversations(bot),
        ]
        for id in dict.fromkeys(one.id for one in places):
            for post in reader.list_posts(id, MOST_POSTS):
                self._find(post)
        # Answered while nobody looked, and perhaps below many other posts by now.
        for item in reader.list_items(InboxQuery(is_pending=False, limit=MOST_ANSWERED)):
            for post in reader.posts_of_item(item.id):
                if post.bot == bot:
                    self._find(post)

    def _find(self, post: OutboxPost) -> None:
        """Keep the post up to date if it asks, or still looks as if it did."""
        reader = self._context.fleet.reader
        if post.kind is not PostKind.ITEM or post.item_id is None:
            return
        texts, item = reader.find_post_texts(post.id), reader.find_item(ItemId(post.item_id))
        has_buttons = texts is not None and bool(texts.details)
        if item is not None and (item.is_pending or has_buttons):
            self._asking[item.id] = post.id

    def _asked(self, conversation: Conversation) -> Iterator[InboxItem]:
        """What a person is asked because of the turn that runs, by its job and those below it."""
        reader = self._context.fleet.reader
        job = (
            None if conversation.turn_job_id is None else reader.find_job(conversation.turn_job_id)
        )
        if job is None or job.is_terminal:
            return
        for one in (job, *reader.jobs_below(job.id)):
            if one.status is JobStatus.SUSPENDED:
                items = reader.items_of_job(one.id)
                yield from (each for each in items if each.is_pending and each.kind in HEADINGS)

    async def _ask(self, item: InboxItem, conversation: Conversation, of: str) -> None:
        """Ask in the conversation; `of` is the turn's job, or the run that was started there."""
        context = self._context
        known = context.fleet.reader.find_post(post_id(of, item.id))
        if known is not None and POST_LIFECYCLE.is_terminal(known.status):
            return  # it was given up, and stays in the inbox
        written = self._written(item)
        if written is None:
            return
        post = _post(item, written, conversation, of, context)
        await context.fleet.state.apply([QueuePosts(posts=(post,))])
        context.probe("chat.after_item")
        self._asking[item.id] = post.post.id
        context.signals.posts.set()

    async def _update(self, item_id: ItemId, id: PostId) -> None:
        """Bring a post up to date; forget about it once nobody is asked any more."""
        context, reader = self._context, self._context.fleet.reader
        item, post, texts = (
            reader.find_item(item_id),
            reader.find_post(id),
            reader.find_post_texts(id),
        )
        written = None if item is None else self._written(item)
        if item is None or post is None or texts is None or written is None:
            del self._asking[item_id]
            return
        if post.removed_at is not None or POST_LIFECYCLE.is_terminal(post.status):
            del self._asking[item_id]
            return
        if (texts.text, dict(texts.details)) != (written.text, written.details):
            change = EditPost(
                post_id=id,
                text=written.text,
                details=written.details,
                at=context.fleet.clock.now(),
            )
            (answer,) = await context.fleet.state.apply([change])
            if isinstance(answer, Refused):
                del self._asking[item_id]  # it was given up, and cannot change any more
                return
            context.signals.posts.set()
        if not item.is_pending:
            del self._asking[item_id]

    def _written(self, item: InboxItem) -> ItemPost | None:
        context, reader = self._context, self._context.fleet.reader
        texts = reader.find_item_texts(item.id)
        if texts is None:
            return None
        return item_post(
            item,
            texts,
            reader.list_answers(item.id),
            context.settings.platform,
            raised=self._raised(item) if item.kind is ItemKind.LIMIT else None,
            can_answer=_can_answer(set(context.settings.approvers.values()), texts),
        )

    def _raised(self, item: InboxItem) -> tuple[LimitName, int] | None:
        """The limit that stopped the job, and twice as much; None where raising it would change nothing."""
        reader = self._context.fleet.reader
        job = None if item.job_id is None else reader.find_job(item.job_id)
        if job is None or job.suspend_reason is not SuspendReason.LIMIT:
            return None
        name = next((one for one in LimitName if one.code == job.error_code), None)
        maximum = None if name is None else self._maximum(job, name)
        if name is None or maximum is None:
            return None
        offered = 2 * max(maximum, used_in_all(job, reader).amount(name), 1)
        return None if offered >= BOUNDLESS else (name, offered)

    def _maximum(self, job: Job, name: LimitName) -> int | None:
        context = self._context
        agent, texts = context.fleet.agents.get(job.agent), context.fleet.reader.find_texts(job.id)
        if agent is None or texts is None:
            return None
        return limits_for(job, texts.overrides, agent).maximum(name)


def _can_answer(names: set[str], texts: InboxTexts) -> bool:
    """Whether one of those who may answer on the platform may answer this."""
    return bool(names & set(texts.approvers)) if texts.approvers else bool(names)


def _post(
    item: InboxItem,
    written: ItemPost,
    conversation: Conversation,
    of: str,
    context: ChatContext,
) -> QueuedPost:
    queued = new_post(
        post_id(of, item.id),
        conversation,
        PostKind.ITEM,
        written.text,
        context.fleet.clock.now(),
        job_id=JobId(of) if of == conversation.turn_job_id else None,
        details=written.details,
    )
    return replace(queued, post=replace(queued.post, item_id=item.id))
