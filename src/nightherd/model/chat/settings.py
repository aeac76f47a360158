"""What a fleet file says about one bot: where it listens, to whom, and what it shows. Complete, defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

import msgspec

from nightherd.model.chat.platform import BotId, Platform
from nightherd.model.sessions.session import SessionMode, SessionTerms

MEGABYTE = 1_000_000
API_URL_VARIABLES = {
    Platform.SLACK: "NIGHTHERD_SLACK_API_URL",
    Platform.DISCORD: "NIGHTHERD_DISCORD_API_URL",
}
"""Variables of the process that name another address of a platform, such as a proxy. No key of a fleet file does:
whoever can write the file could have the tokens sent elsewhere."""


class ChannelMode(StrEnum):
    """Which messages of a channel are the bot's."""

    MENTION = "mention"
    """Those that name it; in a thread it takes part in, those that name no other bot."""
    AUTO = "auto"
    """Those that name no other bot of the fleet."""
    ALL = "all"
    """Every one."""


class SessionScope(StrEnum):
    """Who shares the session of a place."""

    CHANNEL = "channel"
    """Everybody who writes there."""
    USER = "user"
    """Each person has one of their own."""


class LogLevel(StrEnum):
    """How much of a bot's doings goes to the operator log."""

    MINIMAL = "minimal"
    """Connections that fail, and refusals of the platform."""
    STANDARD = "standard"
    """Also every connect, and each turn that begins and ends."""
    VERBOSE = "verbose"
    """Also each message that is left alone, with the reason."""


class Texts(StrEnum):
    """Which of the agent's texts are posted."""

    ANSWERS = "answers"
    """Those that no call of a tool follows in the same message."""
    ALL = "all"


class UserRules(msgspec.Struct, frozen=True, kw_only=True):
    """Who may talk to the bot, by platform id, and how much."""

    allowlist: frozenset[str] = frozenset()
    """Only these; none for everybody."""
    blocklist: frozenset[str] = frozenset()
    max_messages_per_hour: int | None = None
    """Messages of one person to the bot, in all places together; None for no limit."""

    def admits(self, user_id: str) -> bool:
        """Return whether the person may talk to the bot."""
        if user_id in self.blocklist:
            return False
        return not self.allowlist or user_id in self.allowlist


NO_RULES = UserRules()


class ChannelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One channel that the bot listens in. Its threads are like it."""

    id: str
    name: str | None = None
    mode: ChannelMode = ChannelMode.MENTION
    context_messages: int = 10
    """Earlier messages that the agent is shown with the first one."""
    users: UserRules = NO_RULES
    """Who may talk to the bot there, of those whom the bot's own rules admit."""
    guild_id: str | None = None
    """The Discord server it is listed under; None where only the channel counts."""


class DirectSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Direct messages."""

    enabled: bool = True
    mode: ChannelMode = ChannelMode.AUTO
    allowlist: frozenset[str] = frozenset()
    """Only these people; none for everybody."""
    blocklist: frozenset[str] = frozenset()


class OutputSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown in the channel."""

    tool_results: bool = True
    tool_result_max_length: int = 900
    system_status: bool = True
    errors: bool = True
    result_summary: bool = False
    typing_indicator: bool = True
    progress_indicator: bool = True
    acknowledge_emoji: str | None = "\N{EYES}"
    """None, or nothing in it, for no reaction."""
    assistant_messages: Texts = Texts.ANSWERS


class PresenceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What Discord's member list says about the bot."""

    activity_type: str
    """`playing`, `watching`, `listening` or `competing`."""
    activity_message: str


class AttachmentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Files that people send along; without these settings none is fetched."""

    max_bytes: int = 10 * MEGABYTE
    """Of one file."""
    max_files: int = 5
    """Of one message."""
    allowed_types: tuple[str, ...] = ("image/*", "application/pdf", "text/*")
    directory: str
    """Where they are put, below the directory that the job works in, or below a folder of the conversation."""
    is_removed: bool = True
    """Whether they are removed when the job has ended."""


class VoiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who turns voice notes into text; without these settings they are refused with a message."""

    provider: str = "openai"
    api_key_env: str = "OPENAI_API_KEY"
    model: str = "whisper-1"
    language: str | None = None


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill of the agent that `/skills` lists and `/skill` runs."""

    name: str
    description: str | None = None


class SlackMode(StrEnum):
    """How Slack reaches the bot."""

    SOCKET = "socket"
    """By a connection that the bot opens."""
    HTTP = "http"
    """By requests to an address of ours, signed."""


class SlackSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a bot connects to Slack."""

    mode: SlackMode
    app_token_env: str
    """The variable that holds the app-level token, for Socket Mode."""
    signing_secret_env: str
    """The variable that holds the secret by which requests are signed, for HTTP."""


class BotSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one bot."""

    bot: BotId
    platform: Platform
    agent: str
    """Qualified."""
    token_env: str = ""
    """The variable that holds the bot's token; empty in a terminal."""
    slack: SlackSettings | None = None
    """Set for a bot on Slack."""
    channels: tuple[ChannelSettings, ...] = ()
    guild_modes: Mapping[str, ChannelMode] = msgspec.field(default_factory=dict)
    """How the bot listens in channels of a Discord server that are not listed, by the server's id."""
    direct: tuple[DirectSettings, ...] = (DirectSettings(),)
    """Rules for direct messages: one that admits the person is enough (each server may have its own)."""
    users: UserRules = NO_RULES
    """Who may talk to the bot anywhere."""
    approvers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Names of those who may answer items of the inbox there, by platform id. Nobody else may."""
    output: OutputSettings = OutputSettings()
    presence: PresenceSettings | None = None
    attachments: AttachmentSettings | None = None
    voice: VoiceSettings | None = None
    command_guild_id: str | None = None
    """The only server whose slash commands are registered; None to register them everywhere."""
    skills: tuple[Skill, ...] = ()
    session: SessionTerms = SessionTerms(mode=SessionMode.PER_CHANNEL)
    """How turns share context, and for how long: per channel, unless the agent or its chat schedule names a mode."""
    session_scope: SessionScope = SessionScope.CHANNEL
    batch_window: timedelta = timedelta()
    """How long a conversation waits for further messages before its turn begins."""
    log_level: LogLevel = LogLevel.STANDARD
    schedule: str | None = None
    """The agent's schedule of type `chat`: prompt, inputs, session, limits and approvals of the turns are its own."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that hold what the bot logs in with."""
        slack = self.slack
        names = [self.token_env]
        if slack is not None:
            is_socket = slack.mode is SlackMode.SOCKET
            names.append(slack.app_token_env if is_socket else slack.signing_secret_env)
        return tuple(name for name in names if name)
