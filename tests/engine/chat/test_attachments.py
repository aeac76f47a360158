"""Files of people: fetched below the agent's directory, never anywhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio import to_thread
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.chat.chat_bench import ChatBench, chat_bench, settings_of
from nightherd.engine.chat.attachment_folders import attachment_folder, folders_for_job
from nightherd.engine.chat.attachments import remove_files, with_files
from nightherd.engine.chat.intake import Intake
from nightherd.model.agents.agent import Agent
from nightherd.model.chat.changes import FinishTurn, StartTurn
from nightherd.model.chat.conversation import MessagingSessionId
from nightherd.model.chat.incoming import IncomingFile
from nightherd.model.chat.message import (
    ChatMessage,
    ChatMessageTexts,
    MessageStatus,
    TurnStatus,
    chat_message_id,
)
from nightherd.model.chat.prompt import INLINE_LIMIT, PromptMessage
from nightherd.model.chat.settings import AttachmentSettings
from nightherd.model.jobs.job import TriggerType
from nightherd.model.workspaces.policy import WorkspaceMode
from nightherd.testing.state_values import settle, submit
from nightherd.triggers.chat.incoming_files import PlacedFiles

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


def test_file_for_a_job_with_a_directory_of_its_own_is_in_the_folder_of_its_conversation(
    tmp_path: Path,
) -> None:
    workspace = replace(AGENT.workspace, mode=WorkspaceMode.WORKTREE)

    async def main() -> None:
        agent = agent_in(tmp_path, workspace=workspace)
        async with chat_bench(tmp_path, settings_of(attachments=FILES), agent=agent) as bench:
            message, texts = await received(bench, b"hello")
            (file,) = (await with_files(message, texts, agent, bench.context)).files
            folder = anyio.Path(attachment_folder(bench.context.directory, bench.here))
            assert await anyio.Path(file.path).read_bytes() == b"hello"
            assert anyio.Path(file.path).is_relative_to(folder / FILES.directory)
            modes = [(await one.stat()).st_mode & 0o777 for one in (folder.parent, folder)]
            assert modes == [0o700, 0o755], "another user of a container enters this folder only"
            assert (await anyio.Path(file.path).stat()).st_mode & 0o777 == 0o644
        assert not [one async for one in anyio.Path(agent.working_directory).iterdir()]

    old = os.umask(0o077)
    try:
        anyio.run(main)
    finally:
        os.umask(old)


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
    assert "in the agent's directory is a link" in said.refused[0].why
    assert list(outside.iterdir()) == []


def swapping(bench: ChatBench, swap: Callable[[], None]) -> None:
    """Another job of the agent acts right after the download."""
    download = bench.connection.download

    async def then_swap(file: IncomingFile, target: str, limit: int) -> None:
        await download(file, target, limit)
        swap()

    bench.connection.download = then_swap  # type: ignore[method-assign]


def test_link_that_is_put_there_during_the_download_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    work = tmp_path / "work"

    def swap() -> None:
        (work / ".files" / "in").rename(work / "moved")
        (work / ".files" / "in").symlink_to(outside)

    async def main() -> PromptMessage:
        async with chat_bench(tmp_path, settings_of(attachments=FILES)) as bench:
            message, texts = await received(bench, b"hello")
            agent = agent_in(tmp_path)
            (work / ".files" / "in").mkdir(parents=True)
            swapping(bench, swap)
            return await with_files(message, texts, agent, bench.context)

    said = anyio.run(main)

    assert said.files == ()
    assert "is a link" in said.refused[0].why
    assert list(outside.iterdir()) == []


def test_link_in_the_place_of_the_file_is_replaced_and_neither_read_nor_written(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yours")

    async def main() -> tuple[PromptMessage, PromptMessage]:
        async with chat_bench(tmp_path, settings_of(attachments=FILES)) as bench:
            message, texts = await received(bench, b"hello")
            agent = agent_in(tmp_path)
            first = await with_files(message, texts, agent, bench.context)
            target = Path(agent.working_directory, first.files[0].path)

            def swap() -> None:
                target.unlink()
                target.symlink_to(secret)

            swapping(bench, swap)
            return first, await with_files(message, texts, agent, bench.context)

    first, again = anyio.run(main)

    assert again == first
    assert again.files[0].text == "hello"
    assert secret.read_text() == "not yours"
    target = tmp_path / "work" / again.files[0].path
    assert not target.is_symlink()
    assert target.read_bytes() == b"hello"


def test_link_in_the_place_of_what_was_downloaded_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    swapped: list[Path] = []

    async def main() -> PromptMessage:
        async with chat_bench(tmp_path, settings_of(attachments=FILES)) as bench:
            message, texts = await received(bench, b"hello")

            def swap() -> None:
                (fetched,) = Path(bench.context.directory, "incoming").iterdir()
                fetched.unlink()
                fetched.symlink_to(secret)
                swapped.append(fetched)

            swapping(bench, swap)
            return await with_files(message, texts, agent_in(tmp_path), bench.context)

    said = anyio.run(main)

    assert said.files == ()
    assert (len(said.refused), len(swapped)) == (1, 1)
    assert "not yours" not in str(said)


def test_nothing_is_removed_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "in"
    outside.mkdir(parents=True)
    (outside / "kept.txt").write_text("kept")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".files").symlink_to(outside.parent)

    PlacedFiles().remove(str(tmp_path / "work"), ".files/in/kept.txt")

    assert (outside / "kept.txt").read_text() == "kept"


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
@pytest.mark.parametrize("mode", [WorkspaceMode.SHARED, WorkspaceMode.EMPTY])
def test_files_are_removed_only_where_the_settings_say_so(
    tmp_path: Path, mode: WorkspaceMode, *, is_removed: bool
) -> None:
    async def main() -> None:
        agent = agent_in(tmp_path, workspace=replace(AGENT.workspace, mode=mode))
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
        assert await target.parent.exists() is not is_removed
        chat = anyio.Path(bench.context.directory)
        assert not [one async for one in (chat / "incoming").iterdir()]
        left = [one async for one in chat.glob("attachments/*")]
        assert len(left) == (mode is WorkspaceMode.EMPTY and not is_removed)

    anyio.run(main)


def test_files_of_messages_that_are_asked_again_are_removed_too(tmp_path: Path) -> None:
    async def main() -> None:
        agent = agent_in(tmp_path)
        async with chat_bench(tmp_path, settings_of(attachments=FILES), agent=agent) as bench:
            await hear(bench, "read", file=b"hello")
            job = await bench.start_turn(runs=True)
            await bench.apply(settle(1))
            at = bench.clock.now()
            await bench.apply(FinishTurn(job_id=job, status=TurnStatus.FAILED, at=at))
            await hear(bench, "!retry")
            first, again = bench.messages()
            texts = bench.reader.find_chat_message_texts(first.id)
            assert texts is not None
            (file,) = (await with_files(first, texts, agent, bench.context)).files
            assert await anyio.Path(agent.working_directory, file.path).exists()

            await remove_files([again], bench.context)

            assert again.id != first.id
            assert not await anyio.Path(agent.working_directory, file.path).exists()

    anyio.run(main)


async def hear(bench: ChatBench, text: str, **more: Any) -> None:
    """Somebody writes in C1."""
    said = bench.platform.messages[bench.platform.say(text, **more)].said
    assert said is not None
    await Intake(bench.context).take(said)


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


def test_jobs_that_a_turn_leads_to_read_the_folder_of_its_conversation_and_no_others(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with chat_bench(tmp_path, settings_of(attachments=FILES)) as bench:
            await hear(bench, "read this")
            spawned, slack = TriggerType.SPAWNED, TriggerType.SLACK
            change = submit(1, agent=AGENT.name)
            own = replace(change.job, trigger_type=slack)
            turn = StartTurn(
                conversation_id=bench.here,
                messages=(bench.messages()[0].id,),
                job=replace(change, job=own),
                at=bench.clock.now(),
            )
            await bench.apply(turn)
            folder = Path(attachment_folder(bench.context.directory, bench.here))
            await to_thread.run_sync(partial(folder.mkdir, parents=True))
            context = replace(
                Bench().context, reader=bench.reader, chat_directory=bench.context.directory
            )
            child = replace(submit(2).job, trigger_type=spawned, parent_job_id=own.id)
            grandchild = replace(submit(3).job, trigger_type=spawned, parent_job_id=child.id)
            fork = replace(submit(4).job, trigger_type=TriggerType.FORK, forked_from=child.id)
            again = replace(submit(5).job, resumed_from=own.id)
            other = replace(submit(6).job, trigger_type=slack)
            jobs = (child, grandchild, fork, again, other)
            await bench.apply(*(replace(submit(n), job=job) for n, job in enumerate(jobs, start=2)))
            read = [folders_for_job(job, context) for job in (own, *jobs)]
            assert read == [*[(str(folder),)] * 5, ()]

    anyio.run(main)
