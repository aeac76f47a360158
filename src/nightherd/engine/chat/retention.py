"""Retention of chat: what was said long ago is removed. Rows stay, so a message that is delivered again is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from nightherd.engine.chat.attachment_folders import attachment_folder
from nightherd.model.chat.changes import ForgetChat
from nightherd.model.chat.forgotten import NOTHING_FORGOTTEN, ForgottenChat
from nightherd.model.chat.post import PostId
from nightherd.model.checkpoints.persistence import ChatRetention
from nightherd.ports import StateReader, StateWriter

PAGE = 500
MOST_COUNTED = 10_000


class ChatFiles(Protocol):
    """Files of chat below the state directory."""

    def remove(self, path: str, /) -> None:
        """Remove a file that was sent to people; a path that leads anywhere else is left alone."""

    def old_attachments(self, before: datetime, besides: Collection[str], /) -> Sequence[str]:
        """Return files of people that were fetched before then, but for those of conversations in folders `besides`."""

    def remove_attachment(self, path: str, /) -> None:
        """Remove a file of people, and its folders that are empty then."""


def count_forgettable(
    reader: StateReader, terms: ChatRetention, now: datetime, files: ChatFiles
) -> ForgottenChat:
    """Return how much would be removed now, at most `MOST_COUNTED` texts of each kind."""
    if not terms.enabled:
        return NOTHING_FORGOTTEN
    before = _before(terms, now)
    messages = reader.old_chat_messages(before, MOST_COUNTED)
    texts = len(messages) + len(reader.old_posts(before, MOST_COUNTED))
    return ForgottenChat(
        texts=texts, files=len(files.old_attachments(before, _folders_in_use(reader)))
    )


async def forget_chat(
    state: StateWriter,
    reader: StateReader,
    terms: ChatRetention,
    now: datetime,
    files: ChatFiles,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> ForgottenChat:
    """Remove old texts, the files of old posts and old files of people, until `is_stopped`."""
    if not terms.enabled:
        return NOTHING_FORGOTTEN
    before, texts, removed = _before(terms, now), 0, 0
    while not is_stopped():
        messages = tuple(reader.old_chat_messages(before, PAGE))
        posts = tuple(reader.old_posts(before, PAGE))
        if not messages and not posts:
            break
        # Before the rows: as long as they name the files, what was interrupted here is done again.
        for path in _files_of(posts, reader):
            files.remove(path)
        await state.apply([ForgetChat(messages=messages, posts=posts, at=now)])
        texts += len(messages) + len(posts)
    for path in files.old_attachments(before, _folders_in_use(reader)):
        if is_stopped():
            break
        files.remove_attachment(path)
        removed += 1
    return ForgottenChat(texts=texts, files=removed)


def _before(terms: ChatRetention, now: datetime) -> datetime:
    return now - timedelta(days=terms.delete_older_than_days)


def _folders_in_use(reader: StateReader) -> Collection[str]:
    """The names of the folders of conversations in which a turn runs: its prompt may name any file there."""
    return {
        Path(attachment_folder("", conversation.id)).name
        for bot in reader.list_chat_bots()
        for conversation in reader.answering_conversations(bot.id)
    }


def _files_of(posts: Sequence[PostId], reader: StateReader) -> Sequence[str]:
    texts = (reader.find_post_texts(id) for id in posts)
    paths: list[Any] = [one.details.get("path") for one in texts if one is not None]
    return [path for path in paths if isinstance(path, str)]
