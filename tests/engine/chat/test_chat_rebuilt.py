"""Conversations in a database that is made again: every row is as it was, and what is delivered again is known."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio

from engine.chat.bot_bench import ECHO, live_bot, until
from engine.chat.chat_bench import settings_of
from nightherd.wiring.repair import rebuild_database

SETTINGS = settings_of(approvers={"U1": "ada"})
TABLES = (
    "chat_bots",
    "chat_conversations",
    "chat_messages",
    "chat_message_texts",
    "chat_turns",
    "chat_posts",
    "chat_post_texts",
    "messaging_sessions",
    "jobs",
)


def rows(state_dir: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the tables."""
    file = state_dir / "nightherd.db"
    with closing(sqlite3.connect(file)) as database:
        return {
            table: sorted(database.execute(f"SELECT * FROM {table}"), key=repr) for table in TABLES
        }


def test_a_rebuilt_database_has_every_row_of_chat_and_answers_nothing_twice(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_bot(tmp_path, ECHO, SETTINGS) as live:
            live.platform.say("one")
            await live.answered()
            live.platform.say("!status")
            live.platform.say("two")
            await live.answered(2)
            live.platform.say("!reset")
            await until(lambda: any("begins a new session" in one for one in live.texts()))
            await until(live.is_quiet)
        posted, before = live.texts(), rows(live.state_dir)
        rebuild_database(live.state_dir, lambda change: None)
        assert rows(live.state_dir) == before
        async with live_bot(tmp_path, ECHO, SETTINGS, live.platform) as again:
            again.platform.say("three")
            texts = await again.answered(3)
            assert len(texts) == len(posted) + 1
            assert len(again.turns()) == 3

    anyio.run(main)
