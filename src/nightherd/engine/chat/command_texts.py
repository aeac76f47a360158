"""What commands show about the agent and its session, in markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nightherd.model.agents.agent import Agent
from nightherd.model.chat.accept import Spoken, channel_settings, listening_modes, message_limit
from nightherd.model.chat.commands import COMMAND_WORD, COMMANDS, HOW_TO_CALL
from nightherd.model.chat.conversation import MessagingSession
from nightherd.model.chat.files import shown_name
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.prompt import author
from nightherd.model.chat.settings import BotSettings
from nightherd.model.sessions.session import Session
from nightherd.model.text import counted
from nightherd.model.units import format_duration, format_usd

MOST_NAMES = 40
"""Tools or people that are named."""


def help_text(platform: Platform) -> str:
    """Return the list of commands, as they are written on the platform."""
    prefix = HOW_TO_CALL[platform]
    lines = [
        f"- `{prefix}{one.name}{'' if one.argument is None else ' ...'}`: {one.description}"
        for one in COMMANDS
        if one.of is None
    ]
    if platform is Platform.SLACK:
        lines.append(
            f"`{COMMAND_WORD} status` does the same as `{prefix}status`; so do the others."
        )
    return "\n".join(lines)


def session_text(session: Session, people: Sequence[MessagingSession]) -> str:
    """Return what there is to say about the session of a conversation."""
    last = f"{session.last_active_at:%Y-%m-%d %H:%M} UTC"
    lines = [
        f"Session `{session.id}` ({session.status.value}), last used {last}",
        f"{counted(session.job_count, 'job')}, {counted(session.turn_count, 'turn')}, "
        f"{format_usd(session.cost_microusd)}",
    ]
    if people:
        names = [shown_name(author(one.user_name)) for one in people]
        lines.append(f"With {_listed(names)}")
    return "\n".join(lines)


def tools_text(agent: Agent) -> str:
    """Return which tools the agent has."""
    lines = []
    if agent.tools is not None:
        lines.append(f"Only: {_coded(agent.tools)}")
    lines += [
        f"{name}: {_coded(tools)}"
        for name, tools in (
            ("Allowed beforehand", agent.allowed_tools),
            ("Denied", agent.denied_tools),
            ("Asks a person first", [rule.tool for rule in agent.approvals]),
            ("From MCP servers", [server.name for server in agent.mcp_servers]),
        )
        if tools
    ]
    lines.append(f"Permission mode: `{agent.permission_mode}`")
    return "\n".join(lines)


def config_text(agent: Agent, settings: BotSettings, spoken: Spoken) -> str:
    """Return the settings that matter in a place."""
    terms = settings.session
    modes = " or ".join(mode.value for mode in listening_modes(spoken, settings))
    lines = [
        f"Agent: `{agent.name}`" + (f", {agent.description}" if agent.description else ""),
        f"Runtime: `{agent.runtime.name}`, model: `{agent.model or 'its own choice'}`",
        f"Listens here: {modes}",
        f"Session: {terms.mode.value}, shared by {settings.session_scope.value}",
    ]
    if terms.max_idle is not None:
        lines.append(f"A new session begins after {format_duration(terms.max_idle)} of silence")
    limit = message_limit(spoken, settings)
    if limit is not None:
        lines.append(f"Messages of one person in an hour: {limit}")
    channel = None if spoken.is_direct else channel_settings(spoken, settings)
    if channel is not None:
        lines.append(f"Earlier messages shown to a new session: {channel.context_messages}")
    return "\n".join(lines)


def _coded(names: Iterable[str]) -> str:
    return _listed([f"`{name.replace('`', '')}`" for name in names])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    shown = ", ".join(names[:MOST_NAMES])
    return shown if more <= 0 else f"{shown} and {more} more"
