"""Attachments: files and voice notes of people, fetched for the agent before its turn begins."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

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
    refused = list(msgspec.convert(texts.details.get("refused", ()), tuple[RefusedFile, ...]))
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
    return msgspec.convert(texts.details.get("files", ()), tuple[IncomingFile, ...])


async def remove_files(messages: Iterable[ChatMessage], context: ChatContext) -> None:
    """Remove what was fetched for these messages, if the bot's settings say so."""
    settings, agent = context.settings.attachments, context.agent
    if settings is None or not settings.is_removed or agent is None:
        return
    root = _directory(agent, context)
    for message in messages:
        texts = context.fleet.reader.find_chat_message_texts(message.id)
        if texts is None or not message.files:
            continue
        for place, file in enumerate(files_of(texts)):
            target = Path(root, _path(message, place, file, settings.directory))
            with suppress(OSError, NightherdError):
                await to_thread.run_sync(_remove, Path(root), target)


async def _fetched(
    message: ChatMessage, place: int, file: IncomingFile, agent: Agent, context: ChatContext
) -> PromptFile:
    settings = context.settings.attachments
    if settings is None:
        raise RefusedError(NOT_FETCHED)
    root = _directory(agent, context)
    path = _path(message, place, file, settings.directory)
    target = Path(root, path)
    await to_thread.run_sync(_make_room, Path(root), target)
    await context.connection.download(file, str(target), settings.max_bytes)
    size, content = await to_thread.run_sync(_beginning, target)
    text = content.decode(errors="replace")
    # Where each job has a directory of its own, that one is made later: the file is beside it.
    workspace = for_schedule(agent, context.settings.schedule).workspace
    return PromptFile(
        name=file.name,
        media_type=file.media_type,
        size=size,
        path=path if workspace.mode is WorkspaceMode.SHARED else str(target),
        text=text if is_inlined(file.media_type, text) else None,
    )


async def _transcribed(
    message: ChatMessage, place: int, file: IncomingFile, context: ChatContext
) -> str:
    if context.transcriber is None:
        raise RefusedError(NO_VOICE)
    folder = Path(context.directory, "voice")
    target = Path(folder, attachment_path("", message.id, place, file.name).lstrip("/"))
    await anyio.Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    await to_thread.run_sync(_make_room, folder, target)
    try:
        await context.connection.download(file, str(target), VOICE_LIMIT)
        return await context.transcriber.transcribe(str(target), file.media_type)
    finally:
        with suppress(OSError):
            await anyio.Path(target).unlink(missing_ok=True)


def _directory(agent: Agent, context: ChatContext) -> str:
    """The directory that the turn's job works in, or that its own directory is made from."""
    return for_schedule(agent, context.settings.schedule).working_directory


def _path(message: ChatMessage, place: int, file: IncomingFile, directory: str) -> str:
    return attachment_path(directory, message.platform_message_id, place, file.name)


def _make_room(root: Path, target: Path) -> None:
    """Make the folder below `root`, and remove what an earlier try left there."""
    if not root.is_dir():
        raise RefusedError(f"there is no directory {root}")
    _check_inside(root, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)


def _remove(root: Path, target: Path) -> None:
    _check_inside(root, target)
    target.unlink(missing_ok=True)
    with suppress(OSError):
        target.parent.rmdir()


def _check_inside(root: Path, target: Path) -> None:
    """An agent may have put a link there: nothing is written or removed outside of its directory."""
    real_root, real = os.path.realpath(root), os.path.realpath(target.parent)
    if real != real_root and not real.startswith(real_root.rstrip("/") + "/"):
        raise RefusedError("the directory for attachments is outside of the agent's directory")


def _beginning(path: Path) -> tuple[int, bytes]:
    """The size of the file, and as much of it as could stand in a prompt."""
    with path.open("rb") as file:
        content = file.read(INLINE_LIMIT * WORST_CHARACTER + 1)
        return os.fstat(file.fileno()).st_size, content


def _why(error: Exception, context: ChatContext) -> str:
    if isinstance(error, TimeoutError):
        return f"it could not be fetched within {LONGEST_FETCH_S:g}s"
    return f"it could not be fetched: {context.fleet.secrets.mask(message_of(error))}"
