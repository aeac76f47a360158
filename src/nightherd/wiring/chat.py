"""Bots of chat platforms: their connections and what they need, opened."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nightherd.errors import RefusedError
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import API_URL_VARIABLES, SlackMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nightherd.engine.chat.bots import Bots
    from nightherd.engine.chat.context import ChatContext
    from nightherd.engine.contexts import FleetContext, WorkerContext
    from nightherd.model.agents.agent import Fleet
    from nightherd.model.chat.settings import BotSettings
    from nightherd.ports.chat import ChatConnection, Transcriber
    from nightherd.ports.outgoing_files import OutgoingFiles

DIRECTORY = "chat"
"""Below the state directory: files on their way to and from people."""
SENT = "sent"
"""Below that: copies of what agents sent, a folder for each job."""
PACKAGES = {Platform.SLACK: "slack_bolt", Platform.DISCORD: "discord"}
"""What a platform's extra brings; the extra has the platform's name."""
PROCESS_ONLY = frozenset({*API_URL_VARIABLES.values(), "SSL_CERT_FILE"})
"""Variables that count only in the environment of the process: addresses, and certificates to trust."""


def why_not_opened(
    settings: BotSettings, environment: Mapping[str, str], fleet: Fleet
) -> RefusedError | None:
    """Why a bot cannot be started here: a package, a token or a port is missing; None when it can be."""
    package = PACKAGES.get(settings.platform)
    if package is not None and find_spec(package) is None:
        extra = f"pip install 'nightherd[{settings.platform}]'"
        message = f"chat on {settings.platform.title()} is not installed: {extra}"
        return RefusedError(message, hint=extra)
    missing = [name for name in settings.variables if not environment.get(name, "").strip()]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        return RefusedError(f"{' and '.join(missing)} {verb} not set")
    if (
        settings.slack is not None
        and settings.slack.mode is SlackMode.HTTP
        and not fleet.opens_port
    ):
        message = "Slack cannot reach it: chat.slack.mode is http, and the fleet opens no port"
        return RefusedError(message, hint="enable 'webhooks' in the fleet file, or use mode socket")
    return None


def make_bots(
    state_dir: Path,
    fleet: Fleet,
    context: WorkerContext,
    environ: Mapping[str, str],
    report: Callable[[str], None],
    wake: Callable[[], None],
) -> Bots:
    """The bots of the process whose worker has `context`; `wake` is called when a job was submitted."""
    from nightherd.engine.chat.bot import run_bot
    from nightherd.engine.chat.bots import Bots
    from nightherd.wiring.stores import ledger_end

    return Bots(
        fleet,
        context,
        environment_of(fleet, environ),
        partial(_open_bot, state_dir, environ, wake),
        run_bot,
        ledger_end=partial(ledger_end, state_dir),
        report=report,
    )


def bots_on(
    connection: ChatConnection,
    state_dir: Path,
    fleet: Fleet,
    context: FleetContext,
    report: Callable[[str], None],
    **parts: Any,
) -> Bots:
    """The one bot of a fleet on a connection that is there already; `parts` are parts of its context."""
    from nightherd.engine.chat.bot import run_bot
    from nightherd.engine.chat.bots import Bots
    from nightherd.wiring.stores import ledger_end

    def open_bot(settings: BotSettings, used: FleetContext, _: Bots) -> ChatContext:
        return replace(chat_context(state_dir, settings, used, connection, {}), **parts)

    end = partial(ledger_end, state_dir)
    return Bots(fleet, context, {}, open_bot, run_bot, ledger_end=end, report=report)


def environment_of(fleet: Fleet, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The variables that bots log in with: those of the process, else those of the `.env` file.

    Where they connect to is said by the process alone: no file of the fleet may have the tokens sent elsewhere.
    """
    own = {name: value for name, value in fleet.environment.items() if name not in PROCESS_ONLY}
    return {**own, **environ}


def _open_bot(
    state_dir: Path,
    environ: Mapping[str, str],
    wake: Callable[[], None],
    settings: BotSettings,
    context: FleetContext,
    bots: Bots,
) -> ChatContext:
    environment = bots.environment
    why_not = why_not_opened(settings, environment, bots.fleet)
    if why_not is not None:
        raise why_not
    return replace(
        chat_context(state_dir, settings, context, _connect(settings, environment), environment),
        wake_jobs=wake,
        other_bots=partial(bots.other_names, settings.bot),
        named=partial(bots.name, settings.bot),
        rescue=partial(_rescue, bots),
    )


async def _rescue(bots: Bots) -> None:
    """Rescue jobs as the fleet says now."""
    from nightherd.wiring.running import rescuer

    await rescuer(bots.context, bots.fleet)()


def _connect(settings: BotSettings, environment: Mapping[str, str]) -> ChatConnection:
    if settings.platform is Platform.SLACK:
        from nightherd.triggers.chat.slack import open_slack

        return open_slack(settings, environment)
    if settings.platform is Platform.DISCORD:
        from nightherd.triggers.chat.discord import open_discord

        return open_discord(settings, environment)
    raise RefusedError(f"a bot on {settings.platform} is not opened by the daemon")


def chat_context(
    state_dir: Path,
    settings: BotSettings,
    fleet: FleetContext,
    connection: ChatConnection,
    environment: Mapping[str, str],
) -> ChatContext:
    """What a bot works with, on a connection that is not running yet."""
    from nightherd.engine.chat.context import ChatContext, ChatSignals
    from nightherd.triggers.chat.incoming_files import PlacedFiles
    from nightherd.wiring.machine import is_at_work
    from nightherd.wiring.stores import ledger_end, open_feed

    return ChatContext(
        fleet=fleet,
        settings=settings,
        connection=connection,
        signals=ChatSignals(),
        feed=open_feed(state_dir),
        ledger_end=partial(ledger_end, state_dir),
        is_at_work=is_at_work,
        # Different each time: what an earlier opening was sending may have been taken.
        sender=f"{settings.bot}-{fleet.random_text(12)}",
        directory=chat_directory(state_dir),
        incoming_files=PlacedFiles(),
        environment=environment,
        transcriber=open_transcriber(settings, environment, fleet),
    )


def chat_directory(state_dir: Path) -> str:
    """Where files on their way to and from people are kept. Its real path: containers see files of people there."""
    return str((state_dir / DIRECTORY).resolve())


def open_outgoing_files(state_dir: Path) -> OutgoingFiles:
    """What keeps the files that agents send into conversations."""
    from nightherd.triggers.chat.outgoing_files import KeptFiles

    return KeptFiles(state_dir.absolute() / DIRECTORY / SENT, private=state_dir.absolute())


def open_transcriber(
    settings: BotSettings, environment: Mapping[str, str], fleet: FleetContext
) -> Transcriber | None:
    """What turns voice notes into text, where the bot's settings name it."""
    if settings.voice is None:
        return None
    from nightherd.triggers.chat.transcriber import OpenAiTranscriber

    return OpenAiTranscriber(settings.voice, environment, fleet.random_text)
