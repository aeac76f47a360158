"""The slash commands of a bot: what Discord lists, and how it learns of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import discord

from nightherd.model.chat.commands import BY_NAME, COMMANDS, CommandSpec
from nightherd.model.chat.settings import BotSettings

CHAT_INPUT, TEXT_OPTION = 1, 3
IN_SERVERS, IN_DIRECT_MESSAGES = 0, 1
OPTION = "input"


async def register_commands(client: discord.Client, settings: BotSettings) -> None:
    """Make Discord list our commands: in one server if the settings name it, else everywhere.

    Nothing is written where Discord lists them already. What an earlier setting listed elsewhere by the same
    names is removed: from the list for everywhere, or from those of the servers that the settings name.
    """
    application = client.application_id
    if application is None:
        return
    http = client.http
    wanted = command_shapes()
    if settings.command_guild_id is not None:
        guild_id = int(settings.command_guild_id)
        if not _is_same(await http.get_guild_commands(application, guild_id), wanted):
            await http.bulk_upsert_guild_commands(application, guild_id, wanted)
        everywhere: Sequence[Any] = await http.get_global_commands(application)
        others = _others(everywhere)
        if len(others) < len(everywhere):
            await http.bulk_upsert_global_commands(application, others)
        return
    if not _is_same(await http.get_global_commands(application), wanted):
        await http.bulk_upsert_global_commands(application, wanted)
    for guild_id in _servers(settings):
        await _remove_from(client, application, guild_id)


async def _remove_from(client: discord.Client, application: int, guild_id: int) -> None:
    """Remove our commands from the list of one server; one that the bot is not in has none."""
    try:
        listed: Sequence[Any] = await client.http.get_guild_commands(application, guild_id)
        others = _others(listed)
        if len(others) < len(listed):
            await client.http.bulk_upsert_guild_commands(application, guild_id, others)
    except (discord.Forbidden, discord.NotFound):
        return


def _servers(settings: BotSettings) -> list[int]:
    ids = {*settings.guild_modes, *(one.guild_id for one in settings.channels)}
    return sorted(int(id) for id in ids if id is not None and id.isdecimal())


def _others(listed: Sequence[Any]) -> list[Any]:
    return [one for one in listed if one["name"] not in BY_NAME]


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
