"""What one bot needs: its settings, its connection, and the fleet that does the work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio
import msgspec

from nightherd.engine.contexts import FleetContext
from nightherd.model.agents.agent import Agent
from nightherd.model.chat.post import PostId
from nightherd.model.chat.settings import BotSettings
from nightherd.model.ids import SessionId
from nightherd.model.inbox.item import ItemId
from nightherd.model.worker import Worker
from nightherd.ports import ChangeFeed, Probe, no_probe
from nightherd.ports.chat import ChatConnection, Transcriber
from nightherd.ports.incoming_files import IncomingFiles


class Signal:
    """Says that something may be there; those who wait for it look then."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        """Wake those who wait, and the next one who will."""
        self._event.set()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Return once it was set since the last return, or when the time has passed."""
        if timeout_s is None:
            await self._event.wait()
        else:
            with anyio.move_on_after(timeout_s):
                await self._event.wait()
        self._event = anyio.Event()


class ChatSignals:
    """What one part of a bot wakes another part with. Each signal has one part that waits for it."""

    def __init__(self) -> None:
        self.messages = Signal()
        """A message waits, or a conversation is free: for those who start turns."""
        self.turns = Signal()
        """A turn began, or its job changed: for those who follow turns."""
        self.items = Signal()
        """Something in the inbox changed: for those who show it."""
        self.runs = Signal()
        """A run of a workflow changed: for those who say how it ended."""
        self.posts = Signal()
        """Something is to be sent: for the outbox."""

    def set_all(self) -> None:
        """Something changed in the state, perhaps by another process."""
        for signal in (self.messages, self.turns, self.items, self.runs, self.posts):
            signal.set()


def unnoticed(name: str) -> None:
    """Do nothing about a name."""


async def nothing_to_rescue() -> None:
    """Take every worker for alive."""


class ChatContext(msgspec.Struct, kw_only=True):
    """The ports of one bot. All its parts share it, and only `fleet` is ever replaced: when the fleet has changed."""

    fleet: FleetContext
    """How its turns are submitted, stopped and answered."""
    settings: BotSettings
    connection: ChatConnection
    signals: ChatSignals
    feed: ChangeFeed
    ledger_end: Callable[[], int]
    """The number of the ledger's last change; cheap."""
    is_at_work: Callable[[Worker], bool]
    """Whether the process of a worker lives on this machine."""
    sender: str
    """The name of this process in claims of posts; no other process has it."""
    directory: str
    """Where files on their way to and from people are kept: below the state directory, by its real path."""
    incoming_files: IncomingFiles
    """Puts files of people where jobs see them."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The environment of this process, with the tokens of bots; agents get none of them."""
    wake_jobs: Callable[[], None] = lambda: None
    """Called when a job was submitted or resumed: the worker need not wait for its next look."""
    other_bots: Callable[[], frozenset[str]] = frozenset
    """What the fleet's other bots are called on the platform."""
    named: Callable[[str], None] = unnoticed
    """Called with what the bot is called on the platform, once that is known."""
    rescue: Callable[[], Awaitable[object]] = nothing_to_rescue
    """Takes care of jobs whose worker is gone, so that one of them can be cancelled."""
    session_id: SessionId | None = None
    """The session that the first turn of the conversation continues; None for the agent's own."""
    transcriber: Transcriber | None = None
    """Turns voice notes into text; None where they are refused."""
    asking: dict[ItemId, PostId] = msgspec.field(default_factory=dict)
    """Items that are shown with buttons, by `Items`; one that was answered is in here until its post says so."""
    probe: Probe = no_probe

    @property
    def agent(self) -> Agent | None:
        """The bot's agent as the fleet has it now; None while it waits for a person, or is gone."""
        return self.fleet.agents.get(self.settings.agent)

    def wake_after_answer(self) -> None:
        """Have everything looked at that an answer of the inbox may have changed."""
        self.wake_jobs()
        self.signals.items.set()
        self.signals.turns.set()
