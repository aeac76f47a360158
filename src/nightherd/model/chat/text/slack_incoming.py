"""Slack's mrkdwn, as people's messages arrive, converted to markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ANGLE = re.compile(r"<([^<>\n]*)>")
_PERSON = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_CHANNEL = re.compile(r"<#([CGD][A-Z0-9]+)(?:\|([^<>]*))?>")
_BLOCK = re.compile(r"```(.*?)```", re.DOTALL)
_SPAN = re.compile(r"`[^`\n]+`")
_BOLD = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])")
_STRUCK = re.compile(r"(?<![\w~])~(?=[^\s~])([^~\n]*[^\s~])~(?![\w~])")
_BULLET = re.compile(r"^([ ]*)[\u2022\u25e6\u25aa][ ]+", re.MULTILINE)
_EMPTY_MENTION = re.compile(r"[ \t]{2,}")


def people_in(text: str) -> frozenset[str]:
    """Return the ids of the people that a message names."""
    return frozenset(_PERSON.findall(text))


def channels_in(text: str) -> frozenset[str]:
    """Return the ids of the channels that a message names without saying what they are called."""
    return frozenset(channel for channel, name in _CHANNEL.findall(text) if not name)


def from_mrkdwn(
    text: str, *, names: Mapping[str, str], channels: Mapping[str, str], bot_user: str | None
) -> str:
    """Return a message in markdown: names instead of ids, and without the mention of the bot.

    Code is left as it was written.
    """
    kept: list[str] = []

    def keep(code: str) -> str:
        kept.append(unescape(code))
        return f"\x00{len(kept) - 1}\x00"

    def block(found: re.Match[str]) -> str:
        inner = _ANGLE.sub(_in_code, found[1]).strip("\n")
        return keep(f"\n```\n{inner}\n```\n" if inner else "``````")

    text = text.replace("\x00", "")
    text = _BLOCK.sub(block, text)
    text = _SPAN.sub(lambda found: keep(_ANGLE.sub(_in_code, found[0])), text)
    text = _ANGLE.sub(lambda found: keep(_resolve(found[1], names, channels, bot_user)), text)
    text = _BOLD.sub(r"**\1**", text)
    text = _STRUCK.sub(r"~~\1~~", text)
    text = _BULLET.sub(r"\1- ", text)
    text = unescape(text)
    text = re.sub("\x00(\\d+)\x00", lambda found: kept[int(found[1])], text)
    if bot_user is not None and _EMPTY_MENTION.search(text) and "```" not in text:
        text = _EMPTY_MENTION.sub(" ", text)
    return text.strip()


def unescape(text: str) -> str:
    """Undo Slack's escaping."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _in_code(found: re.Match[str]) -> str:
    """Slack makes links of addresses in code as well: the address was written."""
    inner = found[1]
    return inner.split("|", 1)[-1] if inner.startswith(("http", "mailto:")) else found[0]


def _resolve(
    inner: str, names: Mapping[str, str], channels: Mapping[str, str], bot_user: str | None
) -> str:
    """Return what stands between angle brackets, for people."""
    target, _, label = inner.partition("|")
    if target.startswith("@"):
        person = target[1:]
        return "" if person == bot_user else f"@{names.get(person) or label or person}"
    if target.startswith("#"):
        return f"#{label or channels.get(target[1:]) or target[1:]}"
    if target.startswith("!"):
        name = target[1:].split("^", 1)[0]
        return label or f"@{name}"
    shown = target.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in (target, shown):
        return shown
    return f"[{label}]({target})"
