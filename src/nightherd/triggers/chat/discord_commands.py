"""The slash commands of a bot: what Discord lists, and how it learns of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import discord

from nightherd.model.chat.commands import COMMANDS, CommandSpec
from nightherd.model.chat.settings import BotSettings

CHAT_INPUT, TEXT_OPTION = 1, 3
IN_SERVERS, IN_DIRECT_MESSAGES = 0, 1
OPTION = "input"


async def register_commands(client: discord.Client, settings: BotSettings) -> None:
    """Make Discord list our commands, and no others: in one server if the settings name it, else everywhere.

    Nothing is written where Discord lists them already. What an earlier setting listed elsewhere by the same
    names is removed from the list that is for everywhere.
    """
    application = client.application_id
    if application is None:
        return
    wanted = command_shapes()
    if settings.command_guild_id is None:
        if not _is_same(await client.http.get_global_commands(application), wanted):
            await client.http.bulk_upsert_global_commands(application, wanted)
        return
    guild_id = int(settings.command_guild_id)
    if not _is_same(await client.http.get_guild_commands(application, guild_id), wanted):
        await client.http.bulk_upsert_guild_commands(application, guild_id, wanted)
    everywhere: Sequence[Any] = await client.http.get_global_commands(application)
    names = {one["name"] for one in wanted}
    others = [one for one in everywhere if one["name"] not in names]
    if len(others) < len(everywhere):
        await client.http.bulk_upsert_global_commands(application, others)


def command_shapes() -> list[dict[str, Any]]:
    """Return the commands as Discord takes them."""
    return [_shape(one) for one in COMMANDS]


def _shape(spec: CommandSpec) -> dict[str, Any]:
    options = []
    if spec.argument is not None:
        option = {
            "type": TEXT_OPTION,
            "name": OPTION,
            "description": spec.argument,
            "required": spec.is_argument_required,
        }
        options.append(option)
    return {
        "type": CHAT_INPUT,
        "name": spec.name,
        "description": spec.description,
        "options": options,
        "contexts": [IN_SERVERS, IN_DIRECT_MESSAGES],
        "integration_types": [0],
    }


def _is_same(listed: Sequence[Any], wanted: Sequence[dict[str, Any]]) -> bool:
    return _compared(listed) == _compared(wanted)


def _compared(commands: Sequence[Any]) -> dict[str, Any]:
    """What makes a difference: Discord leaves out options that are as they are by default."""
    shapes = {}
    for one in commands:
        options = [
            {
                "type": option["type"],
                "name": option["name"],
                "description": option["description"],
                "required": bool(option.get("required", False)),
            }
            for option in one.get("options") or ()
        ]
        shapes[one["name"]] = (one["description"], options)
    return shapes
