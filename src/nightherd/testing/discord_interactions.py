"""What people do with a bot of a loopback Discord beside writing: buttons, windows, slash commands."""

from __future__ import annotations

from typing import Any

import msgspec

from nightherd.testing.discord_shapes import (
    COMPONENT,
    MODAL,
    SLASH,
    Json,
    interaction_shape,
    message_shape,
)
from nightherd.testing.discord_world import (
    BotAccount,
    DiscordRefusal,
    DiscordWorld,
    check_payload,
)

ANSWER_WITHIN_S = 3.0
EPHEMERAL = 1 << 6
NOTHING_YET, MESSAGE, LATER_MESSAGE, LATER_UPDATE, WINDOW = 0, 4, 5, 6, 9
"""How a bot can answer."""


class Interaction(msgspec.Struct, kw_only=True, eq=False):
    """One use of a bot, and how the bot answered."""

    id: str
    kind: int
    token: str
    bot: BotAccount
    channel: Json
    user: Json
    message: Json | None
    comment: str | None
    begun: float
    answer: int = NOTHING_YET
    is_ephemeral: bool = False
    window: Json | None = None
    """The window that the bot opened."""
    said: list[str] = msgspec.field(default_factory=list)
    """What the bot said about it to that person alone."""
    said_openly: list[str] = msgspec.field(default_factory=list)
    """The same, but so that everybody in the channel sees it."""


class Interactions:
    """The interactions of a world. Use it while holding the world's lock."""

    def __init__(self, world: DiscordWorld) -> None:
        self._world = world
        self.all: list[Interaction] = []

    def press(
        self, channel: Json, message: Json, button: Json, user: Json, comment: str | None
    ) -> None:
        """A person presses a button, and fills in the window that it opens."""
        data = {"custom_id": button["custom_id"], "component_type": 2, "id": 1}
        self._begin(COMPONENT, self._bot_of(message), channel, user, data, message, comment)

    def command(self, bot: BotAccount, channel: Json, user: Json, name: str, argument: str) -> None:
        """A person uses a slash command. `KeyError` for one that is not registered there."""
        scopes = {None, channel.get("guild_id")}
        known = {one["name"]: one for scope in scopes for one in bot.commands.get(scope, [])}
        spec = known[name]
        options = spec.get("options", [])
        data: Json = {"id": spec["id"], "name": name, "type": 1}
        if argument:
            data["options"] = [{"name": options[0]["name"], "type": 3, "value": argument}]
        self._begin(SLASH, bot, channel, user, data, None, None)

    def respond(self, id: str, token: str, body: Json) -> Json:
        """Take the first answer to an interaction."""
        found = self._find(token)
        if found.id != id or self._world.clock.monotonic() - found.begun > ANSWER_WITHIN_S:
            raise DiscordRefusal(404, 10062, "Unknown interaction")
        if found.answer != NOTHING_YET:
            raise DiscordRefusal(400, 40060, "Interaction has already been acknowledged.")
        data = body.get("data") or {}
        found.answer = body["type"]
        found.is_ephemeral = bool(data.get("flags", 0) & EPHEMERAL)
        if found.answer == MESSAGE:
            self._say(found, data)
        if found.answer == WINDOW:
            found.window = data
            if found.comment is not None and found.message is not None:
                self._submit(found, data)
        return {
            "interaction": {
                "id": found.id,
                "type": found.kind,
                "response_message_loading": found.answer == LATER_MESSAGE,
                "response_message_ephemeral": found.is_ephemeral,
            }
        }

    def follow_up(self, token: str, data: Json) -> Json:
        """Take a further message about an interaction."""
        found = self._find(token)
        if found.answer == NOTHING_YET:
            raise DiscordRefusal(404, 10015, "Unknown Webhook")
        self._say(found, data)
        id = self._world.new_id()
        more = {"webhook_id": found.bot.id, "flags": data.get("flags", 0)}
        return message_shape(id, found.channel, found.bot.user, data.get("content") or "", more)

    def _say(self, interaction: Interaction, data: Json) -> None:
        check_payload(data, has_files=False)
        # The first message after "thinking" is shown as that was.
        is_first = not interaction.said and not interaction.said_openly
        takes_place = interaction.answer == LATER_MESSAGE and is_first
        flags = data.get("flags", 0)
        is_alone = interaction.is_ephemeral if takes_place else bool(flags & EPHEMERAL)
        (interaction.said if is_alone else interaction.said_openly).append(data["content"])

    def _submit(self, pressed: Interaction, window: Json) -> None:
        text = {"type": 4, "id": 2, "custom_id": _text_field(window), "value": pressed.comment}
        data = {
            "custom_id": window["custom_id"],
            "components": [{"type": 18, "id": 1, "component": text}],
        }
        message = pressed.message
        self._begin(MODAL, pressed.bot, pressed.channel, pressed.user, data, message, None)

    def _begin(
        self,
        kind: int,
        bot: BotAccount,
        channel: Json,
        user: Json,
        data: Json,
        message: Json | None,
        comment: str | None,
    ) -> None:
        world = self._world
        id = world.new_id()
        token = f"interaction-token-{id}"
        interaction = Interaction(
            id=id,
            kind=kind,
            token=token,
            bot=bot,
            channel=channel,
            user=user,
            message=message,
            comment=comment,
            begun=world.clock.monotonic(),
        )
        self.all.append(interaction)
        shape = interaction_shape(kind, id, token, bot.user, channel, user, data)
        if message is not None:
            shape["message"] = message
        world.tell_bot(bot, "INTERACTION_CREATE", shape)

    def _bot_of(self, message: Json) -> BotAccount:
        return next(bot for bot in self._world.bots.values() if bot.user is message["author"])

    def _find(self, token: str) -> Interaction:
        for one in self.all:
            if one.token == token:
                return one
        raise DiscordRefusal(404, 10015, "Unknown Webhook")


def _text_field(window: Json) -> str:
    """The id of the text field in a window."""
    fields: list[Any] = []
    for component in window["components"]:
        fields += component.get("components", [])
        if "component" in component:
            fields.append(component["component"])
    return str(next(one["custom_id"] for one in fields if one["type"] == 4))
