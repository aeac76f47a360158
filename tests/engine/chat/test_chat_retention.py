"""Retention of chat: old texts and files go, rows stay; people who were quiet for long take no part any more."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from msgspec.structs import replace

from engine.chat.chat_bench import BOT, ChatBench, chat_bench, settings_of, until
from engine.chat.test_chat_commands import said
from engine.chat.test_outbox import is_sent, post, queue, sending
from nightherd.engine.chat.attachment_folders import attachment_folder
from nightherd.engine.chat.intake import Intake
from nightherd.engine.chat.quiet_sessions import end_quiet_sessions
from nightherd.engine.chat.retention import count_forgettable, forget_chat
from nightherd.engine.checkpoints.retention import ApplyRetention, apply_retention
from nightherd.model.chat.bot import BotStatus, ChatBot
from nightherd.model.chat.changes import SetBotState
from nightherd.model.chat.conversation import ConversationId
from nightherd.model.chat.forgotten import NOTHING_FORGOTTEN, ForgottenChat
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.post import PostId, PostKind
from nightherd.model.checkpoints.persistence import ChatRetention
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.testing.determinism import FakeClock
from nightherd.wiring.stores import open_chat_files, open_retention
from surfaces.drivers import Cli

DAY = timedelta(days=1)
TERMS = ChatRetention()
KEPT_FOR = timedelta(days=TERMS.delete_older_than_days)


async def applied(bench: ChatBench, at: datetime) -> ForgottenChat:
    """What of chat retention removes when it is that late."""
    async with open_retention(bench.root) as room:
        late = replace(room, clock=FakeClock(at))
        return (await apply_retention(ApplyRetention(), late)).chat


def counted(bench: ChatBench, at: datetime, terms: ChatRetention = TERMS) -> ForgottenChat:
    """What of chat would be removed when it is that late."""
    return count_forgettable(bench.reader, terms, at, open_chat_files(bench.root))


async def test_old_texts_and_files_are_removed_and_messages_stay_known(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        sent = bench.root / "chat" / "sent" / "job-1" / "notes.txt"
        foreign = tmp_path / "mine.txt"
        await to_thread.run_sync(partial(sent.parent.mkdir, parents=True))
        for path in (sent, foreign):
            await to_thread.run_sync(path.write_text, "notes")
        await said(bench, "a secret plan")
        await bench.start_turn()
        files = []
        for number, path in enumerate((sent, foreign)):
            one = post(f"p:{number}", "Here.", bench, kind=PostKind.FILE)
            details = {"path": str(path), "name": "notes.txt"}
            files.append(replace(one, texts=replace(one.texts, details=details)))
        async with sending(bench):
            await queue(bench, *files)
            await until(lambda: is_sent(bench, "p:1"))
        now = bench.clock.now()
        assert await applied(bench, now + KEPT_FOR - DAY) == NOTHING_FORGOTTEN
        assert bench.texts() == ["a secret plan"]
        late = now + KEPT_FOR + DAY
        assert counted(bench, late) == ForgottenChat(texts=3)
        assert counted(bench, late, replace(TERMS, enabled=False)) == NOTHING_FORGOTTEN
        assert await applied(bench, late) == ForgottenChat(texts=3)
        assert bench.texts() == [""]
        texts = bench.reader.find_post_texts(PostId("p:0"))
        assert texts is not None
        assert (texts.text, texts.details) == ("", {})
        assert not await to_thread.run_sync(sent.parent.exists)
        assert await to_thread.run_sync(foreign.exists)
        assert await applied(bench, late) == NOTHING_FORGOTTEN
        event = bench.platform.events[-1]
        assert isinstance(event, IncomingMessage)
        await Intake(bench.context).take(event)
        assert len(bench.messages()) == 1


async def test_what_waits_or_is_not_sent_yet_is_kept(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "still waiting")
        await queue(bench, post("p:1", "not sent", bench))
        assert await applied(bench, bench.clock.now() + 3 * KEPT_FOR) == NOTHING_FORGOTTEN
        assert bench.texts() == ["still waiting"]


async def test_it_stops_between_pages_when_the_daemon_does(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "one")
        await bench.start_turn()
        late = bench.clock.now() + 2 * KEPT_FOR
        removed = await forget_chat(
            bench.store,
            bench.reader,
            TERMS,
            late,
            open_chat_files(bench.root),
            is_stopped=lambda: True,
        )
        assert removed == NOTHING_FORGOTTEN
        assert bench.texts() == ["one"]


async def test_old_files_of_people_are_removed_unless_a_turn_runs_in_their_conversation(
    tmp_path: Path,
) -> None:
    async with chat_bench(tmp_path) as bench:
        busy, quiet = (
            Path(attachment_folder(str(bench.root / "chat"), id), ".slack-attachments")
            for id in (bench.here, ConversationId("slack/coder:C9"))
        )
        for folder in (busy, quiet):
            await to_thread.run_sync(partial(folder.mkdir, parents=True))
            for age in (100, 10):
                file, then = folder / f"{age}.txt", (bench.clock.now() - age * DAY).timestamp()
                await to_thread.run_sync(file.write_text, "hay")
                await to_thread.run_sync(os.utime, file, (then, then))
        bot = ChatBot(
            id=BOT,
            agent="coder",
            platform=Platform.SLACK,
            status=BotStatus.CONNECTED,
            changed_at=bench.clock.now(),
        )
        await bench.apply(SetBotState(bot=bot))
        await said(bench, "look at this")
        await bench.start_turn()
        now = bench.clock.now()
        assert counted(bench, now) == await applied(bench, now) == ForgottenChat(files=1)
        assert [one.name for one in quiet.iterdir()] == ["10.txt"]
        assert len(list(busy.iterdir())) == 2
        assert await applied(bench, now + KEPT_FOR) == ForgottenChat(texts=1, files=1)
        assert not await to_thread.run_sync(quiet.parent.exists)


async def test_who_was_quiet_for_long_takes_no_part_any_more(tmp_path: Path) -> None:
    terms = SessionTerms(mode=SessionMode.PER_CHANNEL, timeout=timedelta(hours=24))
    async with chat_bench(tmp_path, settings_of(session=terms)) as bench:
        await said(bench, "hello")
        assert await end_quiet_sessions(bench.context) == 0
        bench.clock.advance(timedelta(hours=25))  # type: ignore[attr-defined]
        assert await end_quiet_sessions(bench.context) == 1
        assert not bench.reader.active_messaging_sessions(bench.here)
        assert await end_quiet_sessions(bench.context) == 0


async def test_sessions_that_never_expire_are_not_ended(tmp_path: Path) -> None:
    terms = SessionTerms(mode=SessionMode.FRESH_PER_JOB)
    async with chat_bench(tmp_path, settings_of(session=terms)) as bench:
        await said(bench, "hello")
        bench.clock.advance(timedelta(days=900))  # type: ignore[attr-defined]
        assert await end_quiet_sessions(bench.context) == 0
        assert bench.reader.active_messaging_sessions(bench.here)


def test_the_command_says_what_goes_and_removes_it(fleet: Path, cli: Cli) -> None:
    async def fill() -> None:
        async with chat_bench(fleet) as bench:
            await said(bench, "long ago")
            await bench.start_turn()

    anyio.run(fill)
    assert "1 text of chat, older than 90 days" in cli("retention", "plan").err
    assert cli("retention", "--json").document["totals"]["chat_texts"] == 1
    assert "deleted 1 text of chat" in cli("retention", "apply").err
    assert cli("retention", "plan").err == "no checkpoints or workspaces to delete\n"
    assert cli("retention", "--json").document["totals"]["chat_texts"] == 0
