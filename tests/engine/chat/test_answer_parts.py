"""Answers in the size of a platform: every part fits once it is written in the platform's way."""

from __future__ import annotations

import pytest

from nightherd.engine.chat.answer_parts import preview, split_for
from nightherd.model.chat.platform import LIMITS, Platform
from nightherd.model.chat.text.characters import units
from nightherd.model.chat.text.written import WRITTEN

PLATFORMS = (Platform.SLACK, Platform.DISCORD)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "text",
    [
        "word " * 1_500,
        "a < b & c > d " * 300,
        "\n".join(f"| <{n}> | {n} |" if n != 1 else "|---|---|" for n in range(300)),
        "\N{PILE OF POO}" * 3_000,
        "x" * 9_000,
    ],
)
def test_every_part_fits(platform: Platform, text: str) -> None:
    parts = split_for(platform, text).parts
    write = WRITTEN[platform]
    assert parts
    assert all(units(write(part)) <= LIMITS[platform].characters for part in parts)
    assert len(parts) <= LIMITS[platform].most_parts


def test_long_code_becomes_a_file() -> None:
    split = split_for(Platform.DISCORD, "Here:\n```python\n" + "x = 1\n" * 500 + "```\nDone.")
    (file,) = split.files
    assert file.name == "answer-1.py"
    assert "answer-1.py" in split.parts[0]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_preview_is_one_message_and_short_text_is_whole(platform: Platform) -> None:
    assert preview(platform, "short") == "short"
    for text in ("word " * 2_000, "<" * 3_000):
        shown = preview(platform, text)
        assert units(WRITTEN[platform](shown)) <= LIMITS[platform].characters
        assert text.startswith(shown.removesuffix("\n\n…"))


def test_a_terminal_takes_everything_in_one_piece() -> None:
    text = "word " * 20_000
    assert split_for(Platform.TERMINAL, text).parts == (text.strip(),)
