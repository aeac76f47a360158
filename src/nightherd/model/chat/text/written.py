"""Markdown as each platform writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nightherd.model.chat.platform import LIMITS, Platform
from nightherd.model.chat.text.characters import units
from nightherd.model.chat.text.discord import to_discord
from nightherd.model.chat.text.slack import to_mrkdwn
from nightherd.model.chat.text.split import split_text

WRITTEN: Mapping[Platform, Callable[[str], str]] = {
    Platform.SLACK: to_mrkdwn,
    Platform.DISCORD: to_discord,
    Platform.TERMINAL: str,
}


def write_for(platform: Platform, markdown: str) -> str:
    """Return markdown as the platform writes it; what is longer than one message ends where that is full."""
    written, limit = WRITTEN[platform](markdown), LIMITS[platform].characters
    if units(written) <= limit:
        return written
    return next(iter(split_text(written, limit)), "")
