"""Retention of chat: old texts and files go, rows stay; people who were quiet for long take no part any more."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from msgspec.structs import replace

from engine.chat.chat_bench import ChatBench, chat_bench, settings_of, until
from engine.chat.test_chat_commands import said
from engine.chat.test_outbox import is_sent, post, queue, sending
from nightherd.engine.chat.intake import Intake
from nightherd.engine.chat.quiet_sessions import end_quiet_sessions
from nightherd.engine.chat.retention import KEPT_FOR, count_forgettable, forget_chat
from nightherd.engine.checkpoints.retention import ApplyRetention, apply_retention
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.post import PostId, PostKind
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.testing.determinism import FakeClock
from nightherd.wiring.stores import open_retention
from surfaces.drivers import Cli

DAY = timedelta(days=1)


async def applied(bench: ChatBench, at: datetime) -> int:
    """How many texts retention removes when it is that late."""
    async with open_retention(bench.root) as room:
        late = replace(room, clock=FakeClock(at))
        return (await apply_retention(ApplyRetention(), late)).texts


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
        assert await applied(bench, now + KEPT_FOR - DAY) == 0
        assert bench.texts() == ["a secret plan"]
        late = now + KEPT_FOR + DAY
        assert count_forgettable(bench.reader, late) == 3
        assert await applied(bench, late) == 3
        assert bench.texts() == [""]
        texts = bench.reader.find_post_texts(PostId("p:0"))
        assert texts is not None
        assert (texts.text, texts.details) == ("", {})
        assert not await to_thread.run_sync(sent.parent.exists)
        assert await to_thread.run_sync(foreign.exists)
        assert await applied(bench, late) == 0
        event = bench.platform.events[-1]
        assert isinstance(event, IncomingMessage)
        await Intake(bench.context).take(event)
        assert len(bench.messages()) == 1


async def test_what_waits_or_is_not_sent_yet_is_kept(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "still waiting")
        await queue(bench, post("p:1", "not sent", bench))
        assert await applied(bench, bench.clock.now() + 3 * KEPT_FOR) == 0
        assert bench.texts() == ["still waiting"]


async def test_it_stops_between_pages_when_the_daemon_does(tmp_path: Path) -> None:
    async with chat_bench(tmp_path) as bench:
        await said(bench, "one")
        await bench.start_turn()
        late = bench.clock.now() + 2 * KEPT_FOR
        removed = await forget_chat(
            bench.store,
            bench.reader,
            late,
            remove_file=lambda path: None,
            is_stopped=lambda: True,
        )
        assert removed == 0
        assert bench.texts() == ["one"]


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
    assert "deleted 1 text of chat" in cli("retention", "apply").err
    assert cli("retention", "plan").err == "no checkpoints or workspaces to delete\n"
