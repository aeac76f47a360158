"""What bots give: who may talk to an agent and where, who answers its approvals, and which variables log in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nightherd.model.chat.settings import BotSettings
from nightherd.model.permissions.fingerprint import fingerprint

COMPARED = (
    "token_env",
    "slack",
    "channels",
    "guild_modes",
    "direct",
    "users",
    "approvers",
    "attachments",
    "voice",
    "command_guild_id",
)
"""What a person accepts; all else is how a bot presents itself, and how its people share context."""


def bot_fingerprint(settings: BotSettings) -> str:
    """A text that is the same as long as the bot gives the same to the same people."""
    terms = {name: getattr(settings, name) for name in COMPARED}
    return fingerprint(msgspec.to_builtins(terms, str_keys=True, order="sorted"))


def bot_grants(bots: Iterable[BotSettings]) -> dict[str, str]:
    """The fingerprints of an agent's bots, by platform."""
    return {one.platform.value: bot_fingerprint(one) for one in bots}


def accepted_bots(
    bots: Iterable[BotSettings], before: Iterable[BotSettings], accepted: Mapping[str, str]
) -> tuple[BotSettings, ...]:
    """The bots that were accepted; one that was changed stays as it was before."""
    wanted = {one.platform: one for one in bots}
    kept = {
        one.platform: one
        for one in (*before, *wanted.values())
        if one.platform in wanted and accepted.get(one.platform.value) == bot_fingerprint(one)
    }
    return tuple(kept.values())
