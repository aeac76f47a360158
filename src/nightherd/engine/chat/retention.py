"""Retention of chat: what was said long ago is removed. Rows stay, so a message that is delivered again is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from nightherd.model.chat.changes import ForgetChat
from nightherd.model.chat.post import PostId
from nightherd.ports import StateReader, StateWriter

KEPT_FOR = timedelta(days=90)
"""How long texts of messages and posts are kept here. What an agent was asked and answered is in its journals too."""
PAGE = 500
MOST_COUNTED = 10_000


def count_forgettable(reader: StateReader, now: datetime) -> int:
    """Return how many texts would be removed now, at most `MOST_COUNTED` of each kind."""
    before = now - KEPT_FOR
    messages = reader.old_chat_messages(before, MOST_COUNTED)
    return len(messages) + len(reader.old_posts(before, MOST_COUNTED))


async def forget_chat(
    state: StateWriter,
    reader: StateReader,
    now: datetime,
    *,
    remove_file: Callable[[str], None],
    is_stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Remove old texts, and the files of old posts by `remove_file`, until `is_stopped`; returns how many texts."""
    before, forgotten = now - KEPT_FOR, 0
    while not is_stopped():
        messages = tuple(reader.old_chat_messages(before, PAGE))
        posts = tuple(reader.old_posts(before, PAGE))
        if not messages and not posts:
            break
        # Before the rows: as long as they name the files, what was interrupted here is done again.
        for path in _files_of(posts, reader):
            remove_file(path)
        await state.apply([ForgetChat(messages=messages, posts=posts, at=now)])
        forgotten += len(messages) + len(posts)
    return forgotten


def _files_of(posts: Sequence[PostId], reader: StateReader) -> Sequence[str]:
    texts = (reader.find_post_texts(id) for id in posts)
    paths: list[Any] = [one.details.get("path") for one in texts if one is not None]
    return [path for path in paths if isinstance(path, str)]
