"""Attachments: files and voice notes of people, fetched for the agent before its turn begins."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

import anyio
from anyio import to_thread

from nightherd.decoding import convert
from nightherd.engine.chat.attachment_folders import attachment_folder
from nightherd.engine.chat.context import ChatContext
from nightherd.errors import NightherdError, RefusedError, message_of
from nightherd.model.agents.agent import Agent
from nightherd.model.chat.files import (
    NO_VOICE,
    NOT_FETCHED,
    RefusedFile,
    attachment_path,
    shown_name,
)
from nightherd.model.chat.incoming import IncomingFile
from nightherd.model.chat.message import ChatMessage, ChatMessageTexts
from nightherd.model.chat.prompt import INLINE_LIMIT, PromptFile, PromptMessage, is_inlined
from nightherd.model.chat.settings import MEGABYTE
from nightherd.model.schedules.jobs import for_schedule
from nightherd.model.workspaces.policy import WorkspaceMode

INCOMING = "incoming"
"""Below the directory of chat: files that are being fetched."""
ID_LENGTH = 32
LONGEST_FETCH_S = 60.0
"""How long one file may take."""
VOICE_LIMIT = 25 * MEGABYTE
"""Bytes of a voice note; what turns it into text takes no more."""
WORST_CHARACTER = 4
"""Bytes of a character in UTF-8, at most."""


async def with_files(
    message: ChatMessage, texts: ChatMessageTexts, agent: Agent, context: ChatContext
) -> PromptMessage:
    """Return the message with its files fetched. One that cannot be had is named in the prompt, with the reason."""
    files: list[PromptFile] = []
    voices: list[str] = []
    refused = list(convert(texts.details.get("refused", ()), tuple[RefusedFile, ...]))
    for place, file in enumerate(files_of(texts)):
        try:
            with anyio.fail_after(LONGEST_FETCH_S):
                if file.is_voice:
                    voices.append(await _transcribed(message, place, file, context))
                else:
                    files.append(await _fetched(message, place, file, agent, context))
        except (NightherdError, OSError, TimeoutError) as error:
            refused.append(RefusedFile(name=shown_name(file.name), why=_why(error, context)))
    return PromptMessage(
        user_name=message.user_name,
        text=texts.text,
        files=tuple(files),
        refused=tuple(refused),
        voices=tuple(voices),
    )


def files_of(texts: ChatMessageTexts) -> tuple[IncomingFile, ...]:
    """Return the files of a message that the agent is to get."""
    return convert(texts.details.get("files", ()), tuple[IncomingFile, ...])


async def remove_files(messages: Iterable[ChatMessage], context: ChatContext) -> None:
    """Remove what was fetched for these messages, if the bot's settings say so."""
    settings, agent = context.settings.attachments, context.agent
    if settings is None or not settings.is_removed or agent is None:
        return
    for message, texts in _with_repeated(messages, context):
        root, is_folder = _root(message, agent, context)
        files = context.incoming_files
        remove = files.unshare if is_folder else files.remove
        for place, file in enumerate(files_of(texts)):
            path = _path(message, place, file, settings.directory)
            with suppress(OSError, NightherdError):
                await to_thread.run_sync(remove, root, path)


def _with_repeated(
    messages: Iterable[ChatMessage], context: ChatContext
) -> Iterator[tuple[ChatMessage, ChatMessageTexts]]:
    """The messages with their texts; for one that asks earlier ones again, those too."""
    reader = context.fleet.reader
    for message in messages:
        texts = reader.find_chat_message_texts(message.id)
        if texts is None:
            continue
        yield message, texts
        for id in texts.details.get("repeats", ()):
            earlier, its_texts = reader.find_chat_message(id), reader.find_chat_message_texts(id)
            if earlier is not None and its_texts is not None:
                yield earlier, its_texts


async def _fetched(
    message: ChatMessage, place: int, file: IncomingFile, agent: Agent, context: ChatContext
) -> PromptFile:
    settings = context.settings.attachments
    if settings is None:
        raise RefusedError(NOT_FETCHED)
    root, is_folder = _root(message, agent, context)
    path = _path(message, place, file, settings.directory)
    async with _downloaded(message, place, file, settings.max_bytes, context) as source:
        size, content = await to_thread.run_sync(_beginning, source)
        files = context.incoming_files
        put = files.share if is_folder else files.place
        await to_thread.run_sync(put, str(source), root, path)
    text = content.decode(errors="replace")
    return PromptFile(
        name=file.name,
        media_type=file.media_type,
        size=size,
        path=str(Path(root, path)) if is_folder else path,
        text=text if is_inlined(file.media_type, text) else None,
    )


async def _transcribed(
    message: ChatMessage, place: int, file: IncomingFile, context: ChatContext
) -> str:
    if context.transcriber is None:
        raise RefusedError(NO_VOICE)
    async with _downloaded(message, place, file, VOICE_LIMIT, context) as source:
        return await context.transcriber.transcribe(str(source), file.media_type)


@asynccontextmanager
async def _downloaded(
    message: ChatMessage, place: int, file: IncomingFile, limit: int, context: ChatContext
) -> AsyncIterator[Path]:
    """The file where no agent in a container can change it, as long as the context is open."""
    folder = Path(context.directory, INCOMING)
    id = sha256(message.id.encode(errors="surrogateescape")).hexdigest()[:ID_LENGTH]
    target = Path(attachment_path(str(folder), id, place, file.name))
    await anyio.Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    await anyio.Path(target).unlink(missing_ok=True)  # what an earlier try left there
    try:
        await context.connection.download(file, str(target), limit)
        yield target
    finally:
        with suppress(OSError), anyio.CancelScope(shield=True):
            await anyio.Path(target).unlink(missing_ok=True)


def _root(message: ChatMessage, agent: Agent, context: ChatContext) -> tuple[str, bool]:
    """Where files are put: the directory that the turn's job works in, or the conversation's folder (True).

    Where each job has a directory of its own, that one is made later.
    """
    job_agent = for_schedule(agent, context.settings.schedule)
    if job_agent.workspace.mode is WorkspaceMode.SHARED:
        return job_agent.working_directory, False
    return attachment_folder(context.directory, message.conversation_id), True


def _path(message: ChatMessage, place: int, file: IncomingFile, directory: str) -> str:
    return attachment_path(directory, message.platform_message_id, place, file.name)


def _beginning(path: Path) -> tuple[int, bytes]:
    """The size of the file, and as much of it as could stand in a prompt. A link is not followed."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        content = file.read(INLINE_LIMIT * WORST_CHARACTER + 1)
        return os.fstat(file.fileno()).st_size, content


def _why(error: Exception, context: ChatContext) -> str:
    if isinstance(error, TimeoutError):
        return f"it could not be fetched within {LONGEST_FETCH_S:g}s"
    return f"it could not be fetched: {context.fleet.secrets.mask(message_of(error))}"
