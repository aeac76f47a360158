"""The bot of a terminal: one conversation of one person with one agent, on this machine."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.agents.agent import Agent
from nightherd.model.chat.platform import BotId, ChatPlace, Platform, bot_id
from nightherd.model.chat.settings import BotSettings, LogLevel, OutputSettings
from nightherd.model.sessions.session import Session, SessionMode

RESULT_LENGTH = 300
"""Characters of a tool's result that are shown."""


def terminal_bot_id(agent: str, channel: str) -> BotId:
    """Return the name of the bot of one conversation: each has a sender of its own, as only one terminal shows it."""
    return BotId(f"{bot_id(Platform.TERMINAL, agent)}/{channel}")


def terminal_settings(
    agent: Agent, channel: str, user: str, *, shows_results: bool = True
) -> BotSettings:
    """Return what a conversation in a terminal is like; what the agent's bots have in common holds there too.

    Its turns share a session of their own, unless all of the agent's jobs share one.
    """
    own = agent.bots[0] if agent.bots else None
    schedule = None if agent.chat_schedule is None else agent.schedules.get(agent.chat_schedule)
    terms = agent.session if schedule is None or schedule.session is None else schedule.session
    is_shared = terms.mode is SessionMode.PERSISTENT
    return BotSettings(
        bot=terminal_bot_id(agent.name, channel),
        platform=Platform.TERMINAL,
        agent=agent.name,
        approvers={user: user},
        output=OutputSettings(
            tool_results=shows_results,
            tool_result_max_length=RESULT_LENGTH,
            typing_indicator=False,
            progress_indicator=False,
            acknowledge_emoji=None,
        ),
        skills=() if own is None else own.skills,
        session=terms if is_shared else replace(terms, mode=SessionMode.PER_CHANNEL),
        log_level=LogLevel.MINIMAL,
        schedule=agent.chat_schedule,
    )


def terminal_place(channel: str) -> ChatPlace:
    """Return the place of a conversation in a terminal."""
    return ChatPlace(channel_id=channel)


def channel_of(session: Session) -> str | None:
    """Return the terminal's conversation that the session belongs to; None for one that began elsewhere."""
    platform, _, channel = (session.channel_id or "").partition(":")
    return channel if platform == Platform.TERMINAL and channel and ":" not in channel else None
