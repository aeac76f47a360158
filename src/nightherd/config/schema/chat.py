"""`chat`: people talking to an agent from Discord or Slack."""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nightherd.config.schema.types import (
    Amount,
    Count,
    Duration,
    Filling,
    Flag,
    Hours,
    Model,
    Name,
    Text,
    Texts,
    Whole,
    reading,
    refuse,
)
from nightherd.errors import InvalidValueError

ChannelMode = Literal["mention", "auto", "all"]
LogLevel = Literal["minimal", "standard", "verbose"]
ResultLength = Annotated[Count, Field(le=1000)]
ContextCount = Annotated[Whole, Field(le=100)]
Ids = tuple[Filling, ...]


def check_inner_path(path: str) -> str:
    """A relative path that leads nowhere else than down."""
    parts = path.split("/")
    if path.startswith(("/", "~")) or ".." in parts or "\0" in path or not any(parts):
        raise InvalidValueError(
            f"{path!r} is not a directory below the one the job works in; write .attachments"
        )
    return path


InnerPath = Annotated[
    str, BeforeValidator(reading("shape", check_inner_path), json_schema_input_type=str)
]
Approvers = dict[Filling, Name]


class UserRules(Model):
    """Who may talk to the agent."""

    allowlist: Ids = Field((), description="Ids of the people who may; by default all.")
    blocklist: Ids = Field((), description="Ids of the people who may not.")
    max_messages_per_hour: Count | None = Field(
        None, description="Messages of one person in an hour, in all places together."
    )


class Channel(Model):
    """One channel the agent listens in."""

    id: Filling = Field(description="The channel's id, in quotes.")
    name: Text | None = Field(None, description="Name for people.")
    mode: ChannelMode = Field(
        "mention",
        description="mention answers when named; auto everything that names no other bot of the fleet; all everything.",
    )
    context_messages: ContextCount = Field(10, description="Earlier messages to include.")
    users: UserRules | None = Field(
        None, description="Who may talk to it there, of those who may at all."
    )


class DirectMessages(Model):
    """Messages sent to the agent alone."""

    enabled: Flag = Field(True, description="Whether they are answered.")
    mode: ChannelMode = Field("auto", description="When they are answered.")
    allowlist: Ids = Field((), description="Users who may write; by default all.")
    blocklist: Ids = Field((), description="Users who may not.")


class ChatOutput(Model):
    """What is shown in the channel while a job runs."""

    tool_results: Flag = Field(True, description="Results of tools.")
    tool_result_max_length: ResultLength = Field(900, description="Characters of a result shown.")
    system_status: Flag = Field(True, description="Status messages.")
    errors: Flag = Field(True, description="Errors.")
    result_summary: Flag = Field(False, description="A summary at the end.")
    typing_indicator: Flag = Field(True, description="That the agent is typing.")
    progress_indicator: Flag = Field(True, description="A progress line.")
    acknowledge_emoji: Text | None = Field(
        "\N{EYES}", description="Reaction when a message is accepted."
    )
    assistant_messages: Literal["answers", "all"] = Field(
        "answers", description="Which of the agent's texts are sent."
    )


class Presence(Model):
    """What the member list says the agent is doing."""

    activity_type: Literal["playing", "watching", "listening", "competing"] | None = Field(
        None, description="Kind of activity."
    )
    activity_message: Text | None = Field(None, description="Text of the activity.")


class Guild(Model):
    """One Discord server."""

    id: Filling = Field(description="The server's id, in quotes.")
    channels: tuple[Channel, ...] = Field((), description="Channels the agent listens in.")
    default_channel_mode: ChannelMode | None = Field(
        None, description="Mode of the channels not listed."
    )
    dm: DirectMessages | None = Field(None, description="Direct messages from its members.")


class Voice(Model):
    """Voice messages, turned into text."""

    enabled: Flag = Field(False, description="Whether they are understood.")
    provider: Literal["openai"] = Field("openai", description="Who transcribes.")
    api_key_env: Filling = Field("OPENAI_API_KEY", description="Variable that holds the key.")
    model: Filling = Field("whisper-1", description="Model that transcribes.")
    language: Text | None = Field(None, description="Language spoken.")


class Attachments(Model):
    """Files sent along."""

    enabled: Flag = Field(False, description="Whether they are fetched.")
    max_file_size_mb: Amount = Field(10, description="Largest file, in megabytes.")
    max_files_per_message: Count = Field(5, description="Most files of one message.")
    allowed_types: Texts = Field(
        ("image/*", "application/pdf", "text/*"), description="Media types that are fetched."
    )
    download_dir: InnerPath | None = Field(
        None,
        description="Directory they are put in, below the one the job works in (or below a folder of the conversation, where that is made for each job); by default .discord-attachments or .slack-attachments.",
    )
    cleanup_after_processing: Flag = Field(
        True, description="Whether they are removed after the job."
    )


class CommandRegistration(Model):
    """Where slash commands are registered."""

    scope: Literal["global", "guild"] = Field("global", description="Everywhere, or in one server.")
    guild_id: Filling | None = Field(None, description="That server.")

    @model_validator(mode="after")
    def one_server_has_an_id(self) -> Self:
        """Only commands of one server belong to one, and that one has to be known."""
        if self.scope == "guild" and self.guild_id is None:
            raise refuse("incomplete", "scope guild needs 'guild_id'", key="scope")
        if self.scope == "global" and self.guild_id is not None:
            message = "'guild_id' goes with scope guild; global commands are in every server"
            raise refuse("incomplete", message, key="guild_id")
        return self


class Skill(Model):
    """One skill offered in chat."""

    name: Filling = Field(description="Its name.")
    description: Text | None = Field(None, description="What it does.")


class Bot(Model):
    """What bots of all platforms have."""

    session_expiry_hours: Hours | None = Field(
        None,
        description="Hours without a message after which a new session begins; by default as session says, else 24.",
    )
    session_scope: Literal["channel", "user"] = Field(
        "channel", description="Whether the people of a channel share a session."
    )
    batch_window: Duration = Field(
        timedelta(), description="How long to wait for further messages before answering."
    )
    log_level: LogLevel = Field("standard", description="How much is logged.")
    users: UserRules | None = Field(None, description="Who may talk to it anywhere.")
    approvers: Approvers = Field(
        {}, description="Names of those who may answer items of the inbox there, by user id."
    )
    output: ChatOutput | None = Field(None, description="What to show while a job runs.")
    dm: DirectMessages | None = Field(None, description="Direct messages.")
    voice: Voice | None = Field(None, description="Voice messages.")
    attachments: Attachments | None = Field(None, description="Files sent along.")
    skills: tuple[Skill, ...] = Field((), description="Skills that the command skills lists.")


class Discord(Bot):
    """Discord, by server or by channel alone."""

    bot_token_env: Filling = Field(
        "DISCORD_BOT_TOKEN", description="Variable that holds the bot's token."
    )
    presence: Presence | None = Field(None, description="Status shown in the member list.")
    guilds: tuple[Guild, ...] = Field((), description="Servers the agent is in.")
    channels: tuple[Channel, ...] = Field(
        (), description="Channels, when the servers do not matter."
    )
    command_registration: CommandRegistration | None = Field(None, description="Slash commands.")


class Slack(Bot):
    """Slack."""

    mode: Literal["socket", "http"] = Field(
        "socket",
        description="socket keeps a connection to Slack open; http takes requests from Slack, at a public address.",
    )
    bot_token_env: Filling = Field(
        "SLACK_BOT_TOKEN", description="Variable that holds the bot's token."
    )
    app_token_env: Filling = Field(
        "SLACK_APP_TOKEN", description="Variable that holds the app's token, for mode socket."
    )
    signing_secret_env: Filling = Field(
        "SLACK_SIGNING_SECRET",
        description="Variable that holds the app's signing secret, for mode http.",
    )
    channels: tuple[Channel, ...] = Field((), description="Channels the agent listens in.")


class Chat(Model):
    """Where people talk to the agent."""

    discord: Discord | None = Field(None, description="Discord.")
    slack: Slack | None = Field(None, description="Slack.")
