"""Answers: what people do with a bot beside writing, acknowledged within the three seconds that Discord allows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import discord

from nightherd.errors import NightherdError, message_of
from nightherd.model.chat.incoming import ChatCommand
from nightherd.model.chat.platform import LIMITS, Platform
from nightherd.model.chat.text.discord import to_discord
from nightherd.model.chat.text.split import split_text
from nightherd.ports.chat import ChatReceiver
from nightherd.triggers.chat.discord_errors import FAILURES
from nightherd.triggers.chat.discord_incoming import (
    ASKS,
    ChannelFacts,
    Incoming,
    channel_facts,
    written_comment,
)
from nightherd.triggers.chat.discord_queues import ChannelQueues

MOST_PARTS = 5
LONGEST_TITLE = 45
LONGEST_COMMENT = 2_000
DEFAULT_TITLE = "Comment"


class Answers:
    """Takes interactions of one session. One that cannot be acknowledged has no effect: Discord says so itself."""

    def __init__(self, receiver: ChatReceiver, incoming: Incoming, queues: ChannelQueues) -> None:
        self._receiver = receiver
        self._incoming = incoming
        self._queues = queues

    async def take(self, interaction: discord.Interaction) -> None:
        """Take a press of a button, a window that was filled in, or a slash command."""
        data: Mapping[str, Any] = interaction.data or {}
        try:
            match interaction.type:
                case discord.InteractionType.application_command:
                    await self._command(interaction)
                case discord.InteractionType.component:
                    await self._press(interaction, str(data.get("custom_id", "")))
                case discord.InteractionType.modal_submit:
                    await interaction.response.defer()
                    id = str(data.get("custom_id", ""))
                    await self._count(interaction, id, written_comment(data))
                case _:
                    pass
        except FAILURES:
            return  # the person is told by Discord that it did not work

    async def _command(self, interaction: discord.Interaction) -> None:
        guild_id = interaction.guild_id
        here = ChannelFacts(guild_id=None if guild_id is None else str(guild_id))
        command = self._incoming.command(interaction, channel_facts(interaction.channel) or here)
        if command is None:
            return
        await interaction.response.defer(ephemeral=True)
        # After what was said before it in the channel.
        self._queues.put(
            int(command.place.channel_id), partial(self._carry_out, interaction, command)
        )

    async def _carry_out(self, interaction: discord.Interaction, command: ChatCommand) -> None:
        try:
            text = await self._receiver.command(command)
        except NightherdError as error:
            text = f"That failed: {message_of(error)}"
        await _say(interaction, text)

    async def _press(self, interaction: discord.Interaction, custom_id: str) -> None:
        if custom_id.startswith(ASKS):
            await interaction.response.send_modal(_window(interaction, custom_id))
            return
        await interaction.response.defer()
        await self._count(interaction, custom_id, None)

    async def _count(
        self, interaction: discord.Interaction, custom_id: str, comment: str | None
    ) -> None:
        press = self._incoming.press(interaction, custom_id, comment)
        if press is None:
            return
        try:
            text = await self._receiver.press(press)
        except NightherdError as error:
            text = f"That failed: {message_of(error)}"
        if text:
            await _say(interaction, text)


async def _say(interaction: discord.Interaction, markdown: str) -> None:
    """Say something to that person alone; it is too late a quarter of an hour after what they did."""
    parts = split_text(to_discord(markdown), LIMITS[Platform.DISCORD].characters)
    try:
        for part in parts[:MOST_PARTS]:
            await interaction.followup.send(part, ephemeral=True)
    except FAILURES:
        return


def _window(interaction: discord.Interaction, custom_id: str) -> discord.ui.Modal:
    """Return a window with a text field; discord.py is not to remember it."""
    title = _label(interaction.message, custom_id)[:LONGEST_TITLE]
    modal = discord.ui.Modal(title=title, custom_id=custom_id, timeout=None)
    field: discord.ui.TextInput[Any] = discord.ui.TextInput(
        style=discord.TextStyle.paragraph, required=False, max_length=LONGEST_COMMENT
    )
    modal.add_item(discord.ui.Label(text="Comment", component=field))
    modal.stop()
    return modal


def _label(message: discord.Message | None, custom_id: str) -> str:
    """What the button says that was pressed."""
    for row in () if message is None else message.components:
        for button in getattr(row, "children", ()):
            if getattr(button, "custom_id", None) == custom_id:
                return str(button.label or DEFAULT_TITLE)
    return DEFAULT_TITLE
