"""Messages that are made to break a bot: none ends it, and none is the last one that it takes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.chat.bot_bench import ECHO, live_bot, opened
from engine.chat.chat_bench import THERE, chat_bench, settings_of, until
from nightherd.engine.chat.intake import Intake
from nightherd.engine.chat.start_turns import TurnStarter
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.settings import ChannelMode, ChannelSettings
from nightherd.testing.determinism import FakeClock
from nightherd.testing.local_chat import BEGINNING, HERE

ASKING = """\
    approvals: [{tool: "Bash(touch:*)"}]
    script: [{tool: Bash, input: {command: touch pushed}}, {say: pushed}]
"""
TEXTS = (
    "\ud800",
    "a\x00b",
    "\u202e\u2066",
    "@everyone <!channel>",
    "x" * 1_000_000,
    "]]>\r\n\x1b[2J",
)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_bot_answers_what_comes_after_a_hostile_text(tmp_path: Path, text: str) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, ECHO) as live:
            live.platform.user_name = f"Ada{text[:40]}"
            live.platform.say(f"hello {text}")
            await live.answered()
            live.platform.say("goodbye")
            texts = await live.answered(2)
            assert any("goodbye" in one for one in texts)
            assert live.reported == []

    anyio.run(main)


async def test_a_message_does_not_wait_for_a_clock_that_was_set_back(tmp_path: Path) -> None:
    later, earlier = FakeClock(BEGINNING + timedelta(hours=1)), FakeClock(BEGINNING)
    settings = settings_of(batch_window=timedelta(seconds=5))
    async with chat_bench(tmp_path, settings, clock=later) as bench:
        bench.platform.say("hello")
        said = bench.platform.events[-1]
        assert isinstance(said, IncomingMessage)
        await Intake(bench.context).take(said)
    async with (
        chat_bench(tmp_path, settings, platform=bench.platform, clock=earlier) as after,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(TurnStarter(after.context).run)
        await until(lambda: after.messages()[0].job_id)
        tasks.cancel_scope.cancel()


def test_a_turn_whose_journal_cannot_be_read_holds_no_other_conversation_up(tmp_path: Path) -> None:
    channels = tuple(
        ChannelSettings(id=place.channel_id, mode=ChannelMode.ALL) for place in (HERE, THERE)
    )
    settings = settings_of(channels=channels)

    async def main() -> None:
        async with opened(tmp_path, ASKING, settings) as live, live.at_work():
            async with live.bot():
                live.platform.say("push it")
                await until(lambda: any("Approval needed" in one for one in live.texts()))
            journal = next(live.state_dir.joinpath("jobs").rglob("*.jsonl"))
            kept = journal.rename(journal.with_suffix(".kept"))
            journal.mkdir()
            async with live.bot():
                live.platform.say("and here?", place=THERE)
                await until(lambda: any("Approval needed" in one for one in live.texts(THERE)))
                assert live.reported == []
            journal.rmdir()
            kept.rename(journal)

    anyio.run(main)


async def test_no_secret_is_on_record_as_the_name_of_a_file(tmp_path: Path) -> None:
    async with chat_bench(tmp_path, secret="s3cret-" + "k" * 20) as bench:
        bench.platform.say("look", file=b"x")
        said = bench.platform.events[-1]
        assert isinstance(said, IncomingMessage)
        named = tuple(replace(one, name=f"s3cret-{'k' * 20}.txt") for one in said.files)
        await Intake(bench.context).take(replace(said, files=named))
    files = [one for one in (tmp_path / ".nightherd").rglob("*") if one.is_file()]
    holding = {
        word: [one for one in files if word in one.read_bytes()] for word in (b"look", b"s3cret-")
    }
    assert holding[b"look"]
    assert holding[b"s3cret-"] == []
