"""Commands: what people can tell the bot itself, and how each platform writes it."""

from __future__ import annotations

import re

import msgspec

from nightherd.model.chat.platform import Platform

COMMAND_WORD = "/nightherd"
"""The slash command on Slack, which keeps words such as `/status` for itself."""


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A command as the platforms list it."""

    name: str
    description: str
    """At most 100 characters, which is what Discord shows."""
    argument: str | None = None
    """What follows it, if anything does."""
    is_argument_required: bool = False
    of: str | None = None
    """The command that it is another word for."""


COMMANDS = (
    CommandSpec(name="help", description="List the commands."),
    CommandSpec(name="status", description="Show what the agent is doing here."),
    CommandSpec(name="stop", description="Stop the running turn."),
    CommandSpec(name="cancel", description="Stop the running turn.", of="stop"),
    CommandSpec(name="retry", description="Ask again what was asked last."),
    CommandSpec(name="reset", description="Begin a new session; what waits is dropped."),
    CommandSpec(name="new", description="Begin a new session; what waits is dropped.", of="reset"),
    CommandSpec(name="session", description="Show the session of this conversation."),
    CommandSpec(name="skills", description="List the agent's skills."),
    CommandSpec(
        name="skill",
        description="Run a skill of the agent: its name, and what to do with it.",
        argument="name and input",
        is_argument_required=True,
    ),
    CommandSpec(
        name="run",
        description="Start a workflow: its name, and what it is told. Alone, list those there are.",
        argument="workflow and text",
    ),
    CommandSpec(name="tools", description="List the agent's tools."),
    CommandSpec(name="usage", description="Show what this conversation used."),
    CommandSpec(name="config", description="Show the agent's settings."),
    CommandSpec(name="ping", description="Check that the bot answers."),
)
"""Every command, in the order in which they are listed."""

BY_NAME = {one.name: one for one in COMMANDS}
PREFIXES = {Platform.SLACK: "!", Platform.DISCORD: "!", Platform.TERMINAL: "/"}
"""What a command in a message begins with. Slash commands of a platform are no messages."""
HOW_TO_CALL = {Platform.SLACK: "!", Platform.DISCORD: "/", Platform.TERMINAL: "/"}
"""How help writes a command."""

_WORD = re.compile(r"(?P<name>[A-Za-z][A-Za-z-]*)(?:\s+(?P<argument>\S.*))?\s*", re.DOTALL)


class ParsedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a person told the bot itself."""

    name: str
    """Of a command of `COMMANDS` that is no other word for one; as it was written, if there is none."""
    argument: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is such a command."""
        return self.name in BY_NAME


def parse_message(text: str, platform: Platform) -> ParsedCommand | None:
    """Return the command that a message is; None for what is said to the agent.

    On Slack and Discord only a known command counts, and one without argument stands alone: `!important` and
    `!help me with this` are said to the agent. In a terminal every `/word` is meant for the bot.
    """
    prefix = PREFIXES[platform]
    written = text.strip()
    if not written.startswith(prefix):
        return None
    match = _WORD.fullmatch(written[len(prefix) :])
    if match is None:
        return None
    command = resolve_command(match["name"], match["argument"] or "")
    if platform is Platform.TERMINAL:
        return command
    spec = BY_NAME.get(command.name)
    if spec is None or (command.argument and spec.argument is None):
        return None
    return command


def parse_slash_text(text: str) -> ParsedCommand:
    """Return the command in what follows `/nightherd`: its first word; `help` if there is none."""
    name, _, argument = text.strip().partition(" ")
    return resolve_command(name or "help", argument)


def resolve_command(name: str, argument: str = "") -> ParsedCommand:
    """Return the command of that name, or the one that it is another word for."""
    plain = name.strip().lower().lstrip("/!")
    spec = BY_NAME.get(plain)
    canonical = plain if spec is None or spec.of is None else spec.of
    return ParsedCommand(name=canonical, argument=argument.strip())


def split_skill(argument: str) -> tuple[str, str]:
    """Return the name of a skill and what it is asked to do."""
    parts = argument.split(None, 1)
    return (parts[0] if parts else "", parts[1] if len(parts) > 1 else "")
