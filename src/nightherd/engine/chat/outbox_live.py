"""Live posts: text that comes in is shown in place while it does, as often as the platform allows.

Nothing of it is recorded. A version that is recorded is sent by the outbox, and what is shown here never
comes after it: while one of the two edits a post, the other waits, and a post with a new version is left alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from nightherd.engine.chat.context import ChatContext, Signal
from nightherd.errors import NightherdError, message_of
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.post import POST_LIFECYCLE, OutboxPost, PostId, PostStatus
from nightherd.model.chat.text.written import write_for
from nightherd.ports.chat import ChatPost, PostResult

INTERVALS_S = {Platform.SLACK: 1.0, Platform.DISCORD: 1.2, Platform.TERMINAL: 0.0}
"""Seconds between two edits of a live post, times the number of those there are."""
LONGEST_EDIT_S = 30.0
LOOK_S = 60.0
"""How often it is looked whether a post is over in which nothing changes: one that was dropped is never sent."""
FAILED_S = 5.0
"""How long a post is left alone after an edit that failed."""


class LivePosts:
    """The live posts of one bot."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._posts: dict[PostId, _LivePost] = {}
        self._new: list[_LivePost] = []
        self._news = Signal()

    def show(self, post_id: PostId, text: str) -> None:
        """Show the text in the post as soon as the platform allows."""
        live = self._posts.get(post_id)
        if live is None:
            row = self._context.fleet.reader.find_post(post_id)
            if row is None:
                return
            live = self._posts[post_id] = _LivePost(post_id, row.version)
            self._new.append(live)
            self._news.set()
        live.text = text
        live.changed.set()

    @asynccontextmanager
    async def settling(self, post_id: PostId) -> AsyncIterator[None]:
        """While a version of the post is sent and settled, nothing else is shown in it."""
        live = self._posts.get(post_id)
        if live is None:
            yield
        else:
            async with live.lock:
                yield
        # Perhaps it is live since then.
        live = self._posts.get(post_id)
        if live is not None:
            live.changed.set()

    async def run(self) -> None:
        """Show texts until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                await self._news.wait()
                new, self._new = self._new, []
                for live in new:
                    tasks.start_soon(self._keep, live)

    async def _keep(self, live: _LivePost) -> None:
        """Show what there is to show in one post, until it has another version."""
        try:
            pause: float | None = 0.0
            while pause is not None:
                await anyio.sleep(pause)
                await live.changed.wait(LOOK_S)
                pause = await self._show(live)
        finally:
            del self._posts[live.id]

    async def _show(self, live: _LivePost) -> float | None:
        """Edit the post if it can be; how long it is left alone then. None when there is no more to show."""
        context = self._context
        async with live.lock:
            post = context.fleet.reader.find_post(live.id)
            if (
                post is None
                or post.version != live.version
                or POST_LIFECYCLE.is_terminal(post.status)
            ):
                return None
            if post.status is not PostStatus.SENT or post.message_id is None:
                return 0.0  # once it is settled, this is looked at again
            if live.text == live.shown:
                return 0.0
            text = live.text
            result = await self._edit(post, post.message_id, text)
        if result.error is None:
            live.shown = text
            if live.text != text:
                live.changed.set()
            return INTERVALS_S[context.settings.platform] * len(self._posts)
        live.changed.set()
        if result.retry_after is not None:
            return result.retry_after.total_seconds()
        # The recorded version finds out what to do about it.
        return None if result.is_permanent else FAILED_S

    async def _edit(self, post: OutboxPost, message_id: str, text: str) -> PostResult:
        context = self._context
        conversation = context.fleet.reader.find_conversation(post.conversation_id)
        if conversation is None:
            return PostResult(error="its conversation is gone", is_permanent=True)
        written = ChatPost(
            place=conversation.place,
            text=write_for(context.settings.platform, str(context.fleet.secrets.mask(text))),
            nonce=post.nonce,
            reply_to=post.reply_to,
        )
        result = PostResult(error="the platform did not answer in time")
        with anyio.move_on_after(LONGEST_EDIT_S):
            try:
                result = await context.connection.edit(message_id, written)
            except (NightherdError, OSError) as error:
                result = PostResult(error=message_of(error))
        return result


class _LivePost:
    """A post, the text that it is to show, and the one that it shows."""

    def __init__(self, id: PostId, version: int) -> None:
        self.id = id
        self.version = version
        """The recorded version that it stands for; with another one it is over."""
        self.text = ""
        self.shown: str | None = None
        self.changed = Signal()
        self.lock = anyio.Lock()
