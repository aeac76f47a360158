"""TurnPosts: the posts of one turn. At most one of them is live: the next thing that is said takes its place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from nightherd.engine.chat.answer_parts import split_for
from nightherd.engine.chat.context import ChatContext
from nightherd.engine.chat.turn_outputs import Output
from nightherd.model.chat.conversation import Conversation
from nightherd.model.chat.message import ChatTurn
from nightherd.model.chat.post import (
    POST_LIFECYCLE,
    PostId,
    PostKind,
    QueuedPost,
    new_post,
    post_id,
)
from nightherd.model.chat.text.split import AnswerFile

LIVE = "live"
"""How the name of a live post begins; in its details as long as it is live."""


class TurnPosts:
    """Makes the posts of a turn. What it makes is recorded by its caller, in the order in which it was made."""

    def __init__(self, turn: ChatTurn, conversation: Conversation, context: ChatContext) -> None:
        self.live: PostId | None = None
        """The post that shows what comes in."""
        self._turn = turn
        self._conversation = conversation
        self._context = context
        self._live_count = 0
        self._reply_to = turn.reply_to
        self._shown = ""

    def find_posts(self) -> None:
        """Find what an earlier process has posted, and the live post that it has begun."""
        reader = self._context.fleet.reader
        for post in reader.posts_of_job(self._turn.job_id):
            self._reply_to = None
            if not post.id.startswith(post_id(self._turn.job_id, LIVE)):
                continue
            self._live_count += 1
            texts = reader.find_post_texts(post.id)
            is_live = texts is not None and texts.details.get(LIVE) is True
            self.live = post.id if is_live and not POST_LIFECYCLE.is_terminal(post.status) else None

    def begin_live(self, text: str) -> QueuedPost:
        """Return a new live post."""
        self._live_count += 1
        id = post_id(self._turn.job_id, f"{LIVE}-{self._live_count}")
        self.live = id
        return self._post(id, PostKind.ANSWER, text, {LIVE: True})

    def shows(self, text: str) -> bool:
        """Whether the live post, or a new one, is to show something else from now on."""
        is_new = self.live is None or text != self._shown
        self._shown = text
        return is_new

    async def of(self, outputs: Sequence[Output]) -> list[QueuedPost]:
        """Return the posts that say this: long ones in parts, long code as files."""
        posts: list[QueuedPost] = []
        for output in outputs:
            name = f"{output.seq}"
            split = split_for(self._conversation.platform, output.text)
            for number, text in enumerate(split.parts):
                id = post_id(self._turn.job_id, f"{name}.{number}" if number else name)
                posts.append(self._post(self._take_live() or id, output.kind, text))
            for number, file in enumerate(split.files, start=1):
                id = post_id(self._turn.job_id, f"{name}.file-{number}")
                posts.append(await self._file(id, f"{name}-{number}", file))
        return posts

    def notice(self, name: str, text: str, kind: PostKind = PostKind.NOTICE) -> QueuedPost:
        """Return a post by that name that says this; in place of the live one, if there is one."""
        return self._post(self._take_live() or post_id(self._turn.job_id, name), kind, text)

    def edit(self, name: str, text: str) -> Sequence[QueuedPost]:
        """Return the post by that name with another text; nothing where there is none, or it cannot change."""
        known = self._context.fleet.reader.find_post(post_id(self._turn.job_id, name))
        if known is None or POST_LIFECYCLE.is_terminal(known.status):
            return ()
        return (self._post(known.id, known.kind, text),)

    def unneeded(self, name: str) -> tuple[PostId, ...]:
        """Return the live post, and the one by that name: at the end they are dropped if nobody can have seen them."""
        named = post_id(self._turn.job_id, name)
        return (named,) if self.live is None else (self.live, named)

    def _take_live(self) -> PostId | None:
        live, self.live = self.live, None
        return live

    async def _file(self, id: PostId, name: str, file: AnswerFile) -> QueuedPost:
        folder = Path(self._context.directory, "answers", self._turn.job_id)
        target = folder / f"{name}-{file.name}"
        await to_thread.run_sync(_write, target, file.text)
        return self._post(id, PostKind.FILE, "", {"path": str(target), "name": file.name})

    def _post(
        self, id: PostId, kind: PostKind, text: str, details: dict[str, object] | None = None
    ) -> QueuedPost:
        turn = self._turn
        # The first post of a turn names what it answers; the others are right below it.
        reply_to, self._reply_to = self._reply_to, None
        return new_post(
            id,
            self._conversation,
            kind,
            text,
            self._context.fleet.clock.now(),
            job_id=turn.job_id,
            reply_to=reply_to,
            details=details,
        )


def _write(target: Path, text: str) -> None:
    """Write the file; a post names it only after this, and the same text is written as often as it is tried."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = target.with_name(f".{target.name}.new")
    with written.open("w", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    written.replace(target)
