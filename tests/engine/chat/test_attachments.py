"""Files of people: fetched below the agent's directory, never anywhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from engine.bench import AGENT
from engine.chat.chat_bench import ChatBench, chat_bench, settings_of
from nightherd.engine.chat.attachments import remove_files, with_files
from nightherd.engine.chat.intake import Intake
from nightherd.model.agents.agent import Agent
from nightherd.model.chat.conversation import MessagingSessionId
from nightherd.model.chat.incoming import IncomingFile
from nightherd.model.chat.message import (
    ChatMessage,
    ChatMessageTexts,
    MessageStatus,
    chat_message_id,
)
from nightherd.model.chat.prompt import INLINE_LIMIT, PromptMessage
from nightherd.model.chat.settings import AttachmentSettings
from nightherd.model.workspaces.policy import WorkspaceMode

FILES = AttachmentSettings(directory=".files/in", max_bytes=100_000)


def agent_in(folder: Path, **changes: Any) -> Agent:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return replace(AGENT, working_directory=str(work), **changes)


async def received(bench: ChatBench, content: bytes) -> tuple[ChatMessage, ChatMessageTexts]:
    """A message with a file, as it is on record."""
    platform = bench.platform
    id = platform.say("read this", file=content)
    said = platform.messages[id].said
    assert said is not None
    message = ChatMessage(
        id=chat_message_id(said.bot, said.place.channel_id, id),
        conversation_id=bench.here,
        bot=said.bot,
        session_id=MessagingSessionId("msg-1"),
        status=MessageStatus.TAKEN,
        platform_message_id=id,
        user_id="U1",
        user_name="Ada",
        sent_at=said.sent_at,
        received_at=said.sent_at,
        files=1,
    )
    details = {"files": msgspec.to_builtins(said.files)}
    return message, ChatMessageTexts(message_id=message.id, text=said.text, details=details)


async def fetched(folder: Path, agent: Agent, content: bytes, **settings: Any) -> PromptMessage:
    """The message as the prompt has it."""
    async with chat_bench(folder, settings_of(**{"attachments": FILES} | settings)) as bench:
        message, texts = await received(bench, content)
        return await with_files(message, texts, agent, bench.context)


def test_a_file_is_put_below_the_agents_directory(tmp_path: Path) -> None:
    said = anyio.run(fetched, tmp_path, agent_in(tmp_path), b"hello")
    (file,) = said.files
    assert (tmp_path / "work" / file.path).read_bytes() == b"hello"
    assert (file.text, file.size, file.media_type) == ("hello", 5, "text/plain")
    assert file.path.startswith(".files/in/")


def test_a_long_text_is_named_and_not_shown(tmp_path: Path) -> None:
    said = anyio.run(fetched, tmp_path, agent_in(tmp_path), b"x" * (INLINE_LIMIT + 1))
    (file,) = said.files
    assert (file.text, file.size) == (None, INLINE_LIMIT + 1)


def test_a_job_with_a_directory_of_its_own_gets_the_whole_path(tmp_path: Path) -> None:
    workspace = replace(AGENT.workspace, mode=WorkspaceMode.WORKTREE)
    said = anyio.run(fetched, tmp_path, agent_in(tmp_path, workspace=workspace), b"hello")
    (file,) = said.files
    assert Path(file.path).read_bytes() == b"hello"
    assert file.path.startswith(str(tmp_path / "work"))


@pytest.mark.parametrize("link", [".files", ".files/in"])
def test_nothing_is_written_through_a_link_that_leads_out(tmp_path: Path, link: str) -> None:
    agent = agent_in(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    place = Path(agent.working_directory, link)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)

    said = anyio.run(fetched, tmp_path, agent, b"hello")

    assert said.files == ()
    assert "outside of the agent's directory" in said.refused[0].why
    assert list(outside.iterdir()) == []


def test_a_missing_directory_of_the_agent_is_not_made(tmp_path: Path) -> None:
    agent = replace(AGENT, working_directory=str(tmp_path / "none"))
    said = anyio.run(fetched, tmp_path, agent, b"hello")
    assert "there is no directory" in said.refused[0].why
    assert not (tmp_path / "none").exists()


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    small = replace(FILES, max_bytes=3)

    async def main() -> PromptMessage:
        return await fetched(tmp_path, agent_in(tmp_path), b"hello", attachments=small)

    said = anyio.run(main)
    assert "more than 3 bytes" in said.refused[0].why


def test_without_settings_for_files_none_is_fetched(tmp_path: Path) -> None:
    async def main() -> PromptMessage:
        return await fetched(tmp_path, agent_in(tmp_path), b"hello", attachments=None)

    said = anyio.run(main)
    assert (said.files, len(said.refused)) == ((), 1)


@pytest.mark.parametrize("is_removed", [True, False])
def test_files_are_removed_only_where_the_settings_say_so(
    tmp_path: Path, *, is_removed: bool
) -> None:
    async def main() -> None:
        agent = agent_in(tmp_path)
        settings = settings_of(attachments=replace(FILES, is_removed=is_removed))
        async with chat_bench(tmp_path, settings, agent=agent) as bench:
            intake = Intake(bench.context)
            said = bench.platform.messages[bench.platform.say("read", file=b"hello")].said
            assert said is not None
            await intake.take(said)
            (message,) = bench.messages()
            texts = bench.reader.find_chat_message_texts(message.id)
            assert texts is not None
            prompt = await with_files(message, texts, agent, bench.context)
            await remove_files([message], bench.context)
        target = anyio.Path(agent.working_directory, prompt.files[0].path)
        assert await target.exists() is not is_removed

    anyio.run(main)


def test_names_of_people_lead_nowhere_else(tmp_path: Path) -> None:
    async def main() -> PromptMessage:
        async with chat_bench(tmp_path, settings_of(attachments=FILES)) as bench:
            message, texts = await received(bench, b"hello")
            (file,) = msgspec.convert(texts.details["files"], list[IncomingFile])
            evil = replace(file, name="../../../etc/passwd")
            texts = replace(texts, details={"files": msgspec.to_builtins([evil])})
            return await with_files(message, texts, agent_in(tmp_path), bench.context)

    (file,) = anyio.run(main).files
    assert Path(tmp_path, "work", file.path).resolve().is_relative_to(tmp_path / "work" / ".files")
