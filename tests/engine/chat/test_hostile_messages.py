"""Messages that are made to break a bot: none ends it, and none is the last one that it takes."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from engine.chat.bot_bench import ECHO, live_bot

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
