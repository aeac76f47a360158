"""Outbox: sends what a bot has to say. Several conversations side by side, in order within each, each post once.

A claim is recorded before a post is sent, and what came of it after. What was being sent when its process ended
may have been taken: it is looked for on the platform before it is sent again.
"""

from __future__ import annotations

from datetime import timedelta

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from nightherd.decoding import convert
from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.log import write_log
from nightherd.engine.chat.outbox_live import LivePosts
from nightherd.errors import ChatRefusedError, NightherdError, message_of
from nightherd.model.change import Refused
from nightherd.model.chat.changes import ClaimPost, SettlePost
from nightherd.model.chat.conversation import Conversation, ConversationId
from nightherd.model.chat.platform import ChatPlace
from nightherd.model.chat.post import OutboxPost, PostId, PostKind, PostStatus, PostTexts
from nightherd.model.chat.post_decisions import NOW, wait_until_due
from nightherd.model.chat.text.written import write_for
from nightherd.model.log import LogLevel
from nightherd.ports.chat import Button, ChatPost, ChatUpload, PostResult

SIDE_BY_SIDE = 16
"""Conversations that are sent to at once."""
LONGEST_ATTEMPT_S = 120.0
"""How long a platform may take to answer; then it is not known whether it took the post."""


class Outbox:
    """Sends the posts of one bot. Only one process does, and only one outbox in it."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._live = LivePosts(context)
        self._at_work: set[ConversationId] = set()
        self._limiter = anyio.CapacityLimiter(SIDE_BY_SIDE)

    def show(self, post_id: PostId, text: str) -> None:
        """Show the text, in markdown, in a post that is being written: best effort, as often as the platform allows.

        It is not recorded, and never takes the place of a version that is.
        """
        self._live.show(post_id, text)

    async def run(self) -> None:
        """Send what is to be sent until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._live.run)
            while True:
                pause = self._begin(tasks)
                await self._context.signals.posts.wait(
                    None if pause is None else pause.total_seconds()
                )

    def _begin(self, tasks: TaskGroup) -> timedelta | None:
        """Begin with the conversations in which something is due; how long until something else is."""
        reader, now = self._context.fleet.reader, self._context.fleet.clock.now()
        pauses: list[timedelta] = []
        for id in reader.unsent_conversations(self._context.settings.bot):
            post = None if id in self._at_work else reader.first_open_post(id)
            if post is None or post.claimed_by == self._context.sender:
                continue
            pause = wait_until_due(post, now) if post.status is PostStatus.PENDING else NOW
            if pause > NOW:
                pauses.append(pause)
            else:
                self._at_work.add(id)
                tasks.start_soon(self._send_all, id)
        return min(pauses, default=None)

    async def _send_all(self, id: ConversationId) -> None:
        """Send the posts of a conversation in order, until none is due."""
        try:
            async with self._limiter:
                while await self._send_first(id):
                    pass
        finally:
            self._at_work.discard(id)
        # What was queued meanwhile, and when the first one is due again.
        self._context.signals.posts.set()

    async def _send_first(self, id: ConversationId) -> bool:
        """Send the first open post; whether there was one to send."""
        context = self._context
        claim = ClaimPost(conversation_id=id, by=context.sender, at=context.fleet.clock.now())
        (answer,) = await context.fleet.state.apply([claim])
        if isinstance(answer, Refused):
            return False
        reader = context.fleet.reader
        conversation = reader.find_conversation(id)
        # The one that was claimed: an earlier one may be first again, with something else to say.
        claimed = next(row for row in answer.rows if isinstance(row, OutboxPost))
        # The row before its texts: those of a later version are only sent twice, never left out.
        post = reader.find_post(claimed.id)
        if post is None or conversation is None:
            return False
        if post.status is not PostStatus.SENDING:
            return True  # nobody needs it any more
        texts = reader.find_post_texts(post.id) or PostTexts(post_id=post.id, text="")
        async with self._live.settling(post.id):
            result = await self._attempt(post, texts, conversation)
            with anyio.CancelScope(shield=True):
                await self._settle(post, result)
        return True

    async def _attempt(
        self, post: OutboxPost, texts: PostTexts, conversation: Conversation
    ) -> PostResult:
        context = self._context
        context.probe("chat.before_send")
        result = PostResult(error="the platform did not answer in time", is_uncertain=True)
        with anyio.move_on_after(LONGEST_ATTEMPT_S):
            try:
                result = await self._send(post, texts, conversation.place)
            except ChatRefusedError:
                raise
            except (NightherdError, OSError) as error:
                result = PostResult(error=message_of(error), is_uncertain=True)
        context.probe("chat.after_send")
        return result

    async def _send(self, post: OutboxPost, texts: PostTexts, place: ChatPlace) -> PostResult:
        """Send it, or edit what is there already."""
        connection = self._context.connection
        known = post.message_id
        if known is None and post.is_uncertain:
            known = await connection.find_post(place, post.nonce)
            if known is not None and post.version == 1:
                return PostResult(message_id=known)
        if post.kind is PostKind.FILE:
            if known is not None:
                return PostResult(message_id=known)
            return await connection.upload(self._upload(post, texts, place))
        if known is None:
            return await connection.post(self._post(post, texts, place))
        result = await connection.edit(known, self._post(post, texts, place))
        return replace(result, message_id=known) if result.error is None else result

    def _post(self, post: OutboxPost, texts: PostTexts, place: ChatPlace) -> ChatPost:
        return ChatPost(
            place=place,
            text=self._text(texts.text),
            nonce=post.nonce,
            buttons=convert(texts.details.get("buttons", ()), tuple[Button, ...]),
            reply_to=post.reply_to,
        )

    def _upload(self, post: OutboxPost, texts: PostTexts, place: ChatPlace) -> ChatUpload:
        return ChatUpload(
            place=place,
            path=str(texts.details.get("path", "")),
            name=str(texts.details.get("name", "file")),
            nonce=post.nonce,
            text=self._text(texts.text),
        )

    def _text(self, markdown: str) -> str:
        context = self._context
        return write_for(context.settings.platform, str(context.fleet.secrets.mask(markdown)))

    async def _settle(self, post: OutboxPost, result: PostResult) -> None:
        """Record what came of it."""
        context = self._context
        error = None if result.error is None else str(context.fleet.secrets.mask(result.error))
        change = SettlePost(
            post_id=post.id,
            by=context.sender,
            version=post.version,
            at=context.fleet.clock.now(),
            message_id=result.message_id,
            error=error,
            is_permanent=result.is_permanent,
            is_uncertain=result.is_uncertain,
            retry_after=result.retry_after,
        )
        await context.fleet.state.apply([change])
        context.probe("chat.after_settle")
        if error is None:
            return
        settled = context.fleet.reader.find_post(post.id)
        if settled is not None and settled.status is PostStatus.FAILED:
            write_log(
                context,
                "post_failed",
                f"a message was not sent: {error}",
                level=LogLevel.WARNING,
                job=post.job_id,
                post=post.id,
            )
