"""The bots of an agent: what its `chat` section says, complete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import timedelta

from msgspec.structs import replace

from nightherd.config.resolve_agent import resolve_session
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.chat import Attachments, Bot, Channel, Chat, ChatOutput, Discord, Slack
from nightherd.config.schema.chat import DirectMessages as DirectSchema
from nightherd.config.schema.chat import Presence as PresenceSchema
from nightherd.config.schema.chat import UserRules as UserSchema
from nightherd.config.schema.chat import Voice as VoiceSchema
from nightherd.config.schema.schedule import Schedule as ScheduleSchema
from nightherd.config.schema.schedule import Session as SessionSchema
from nightherd.model.chat.platform import Platform, bot_id
from nightherd.model.chat.settings import (
    MEGABYTE,
    NO_RULES,
    AttachmentSettings,
    BotSettings,
    ChannelMode,
    ChannelSettings,
    DirectSettings,
    LogLevel,
    OutputSettings,
    PresenceSettings,
    SessionScope,
    Skill,
    SlackMode,
    SlackSettings,
    Texts,
    UserRules,
    VoiceSettings,
)
from nightherd.model.sessions.session import SessionMode, SessionTerms

CHAT = "chat"
"""The type of a schedule that a message of people starts."""


def resolve_bots(
    chat: Chat | None,
    *,
    agent: str,
    session: SessionSchema,
    schedules: Mapping[str, ScheduleSchema] | None,
) -> tuple[BotSettings, ...]:
    """The bots of the agent, one for each platform."""
    if chat is None:
        return ()
    name, own = chat_schedule(schedules or {})
    terms = chat_session(session if own is None or own.session is None else own.session)
    bots = []
    if chat.discord is not None:
        bots.append(_discord(chat.discord, agent, terms))
    if chat.slack is not None:
        bots.append(_slack(chat.slack, agent, terms))
    return tuple(replace(bot, schedule=name) for bot in bots)


def chat_schedule(
    schedules: Mapping[str, ScheduleSchema],
) -> tuple[str | None, ScheduleSchema | None]:
    """The schedule of type `chat` that turns belong to, with its name: one that is switched on, else the first.

    While that one is switched off, messages wait, whether the file says so or a person.
    """
    declared = [(key, one) for key, one in schedules.items() if schedule_type(one) == CHAT]
    key, schedule = next(
        (each for each in declared if each[1].enabled), next(iter(declared), (None, None))
    )
    return (None, None) if schedule is None else (schedule.name or key, schedule)


def chat_schedules(agent: AgentSchema) -> Collection[str]:
    """The names of the agent's schedules of type `chat`, those that are switched off too."""
    schedules = agent.schedules or {}
    return {one.name or key for key, one in schedules.items() if schedule_type(one) == CHAT}


def schedule_type(schedule: ScheduleSchema) -> str | None:
    """What makes the schedule due."""
    return schedule.type if schedule.trigger is None else schedule.trigger.type


def chat_session(session: SessionSchema) -> SessionTerms:
    """How conversations share context: one session for each channel, unless the file names another mode."""
    terms = resolve_session(session)
    if "mode" in session.model_fields_set:
        return terms
    return replace(terms, mode=SessionMode.PER_CHANNEL)


def _discord(discord: Discord, agent: str, terms: SessionTerms) -> BotSettings:
    registration = discord.command_registration
    guilds = discord.guilds
    bot = BotSettings(
        bot=bot_id(Platform.DISCORD, agent),
        platform=Platform.DISCORD,
        agent=agent,
        token_env=discord.bot_token_env,
        channels=(
            *_channels(discord.channels),
            *(one for guild in guilds for one in _channels(guild.channels, guild.id)),
        ),
        guild_modes={
            guild.id: ChannelMode(guild.default_channel_mode)
            for guild in guilds
            if guild.default_channel_mode is not None
        },
        presence=_presence(discord.presence),
        command_guild_id=registration.guild_id
        if registration is not None and registration.scope == "guild"
        else None,
    )
    of_guilds = [_direct(guild.dm) for guild in guilds if guild.dm is not None]
    return _common(bot, discord, of_guilds, terms)


def _slack(slack: Slack, agent: str, terms: SessionTerms) -> BotSettings:
    bot = BotSettings(
        bot=bot_id(Platform.SLACK, agent),
        platform=Platform.SLACK,
        agent=agent,
        token_env=slack.bot_token_env,
        slack=SlackSettings(
            mode=SlackMode(slack.mode),
            app_token_env=slack.app_token_env,
            signing_secret_env=slack.signing_secret_env,
        ),
        channels=tuple(_channels(slack.channels)),
    )
    return _common(bot, slack, [], terms)


def _common(
    bot: BotSettings, section: Bot, of_guilds: Iterable[DirectSettings], terms: SessionTerms
) -> BotSettings:
    """The bot with what both platforms have. Without rules of its own for direct messages, those of its servers hold."""
    direct = of_guilds if section.dm is None else [_direct(section.dm)]
    expiry = section.session_expiry_hours
    return replace(
        bot,
        direct=tuple(direct) or (DirectSettings(),),
        users=_users(section.users),
        approvers=section.approvers,
        output=_output(section.output),
        attachments=_attachments(section.attachments, bot.platform),
        voice=_voice(section.voice),
        skills=tuple(Skill(name=one.name, description=one.description) for one in section.skills),
        session=terms if expiry is None else replace(terms, idle_timeout=timedelta(hours=expiry)),
        session_scope=SessionScope(section.session_scope),
        batch_window=section.batch_window,
        log_level=LogLevel(section.log_level),
    )


def _channels(
    channels: Iterable[Channel], guild_id: str | None = None
) -> Iterator[ChannelSettings]:
    for one in channels:
        yield ChannelSettings(
            id=one.id,
            name=one.name,
            mode=ChannelMode(one.mode),
            context_messages=one.context_messages,
            users=_users(one.users),
            guild_id=guild_id,
        )


def _users(users: UserSchema | None) -> UserRules:
    if users is None:
        return NO_RULES
    return UserRules(
        allowlist=frozenset(users.allowlist),
        blocklist=frozenset(users.blocklist),
        max_messages_per_hour=users.max_messages_per_hour,
    )


def _direct(direct: DirectSchema) -> DirectSettings:
    return DirectSettings(
        enabled=direct.enabled,
        mode=ChannelMode(direct.mode),
        allowlist=frozenset(direct.allowlist),
        blocklist=frozenset(direct.blocklist),
    )


def _output(output: ChatOutput | None) -> OutputSettings:
    if output is None:
        return OutputSettings()
    return OutputSettings(
        tool_results=output.tool_results,
        tool_result_max_length=output.tool_result_max_length,
        system_status=output.system_status,
        errors=output.errors,
        result_summary=output.result_summary,
        typing_indicator=output.typing_indicator,
        progress_indicator=output.progress_indicator,
        acknowledge_emoji=output.acknowledge_emoji or None,
        assistant_messages=Texts(output.assistant_messages),
    )


def _presence(presence: PresenceSchema | None) -> PresenceSettings | None:
    """What the member list says; nothing without a text."""
    if presence is None or not presence.activity_message:
        return None
    return PresenceSettings(
        activity_type=presence.activity_type or "playing",
        activity_message=presence.activity_message,
    )


def _attachments(attachments: Attachments | None, platform: Platform) -> AttachmentSettings | None:
    if attachments is None or not attachments.enabled:
        return None
    return AttachmentSettings(
        max_bytes=round(attachments.max_file_size_mb * MEGABYTE),
        max_files=attachments.max_files_per_message,
        allowed_types=attachments.allowed_types,
        directory=attachments.download_dir or f".{platform}-attachments",
        is_removed=attachments.cleanup_after_processing,
    )


def _voice(voice: VoiceSchema | None) -> VoiceSettings | None:
    if voice is None or not voice.enabled:
        return None
    return VoiceSettings(
        provider=voice.provider,
        api_key_env=voice.api_key_env,
        model=voice.model,
        language=voice.language,
    )
