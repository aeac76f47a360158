"""Writers in processes of their own that die, freeze or run out of room exactly where a test says."""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nightherd.errors import NightherdError
from nightherd.host.system import SystemClock
from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Durability
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent
from nightherd.ports import Probe
from nightherd.testing.contracts.journal import begin
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.fork_server import ForkServer, Trial

LARGE = "z" * 100_000
WRITER = f"{__name__}:write"


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What a writer does: append `count` events, and what befalls it on the way."""

    folder: str
    epoch: int = 1
    count: int = 4
    padding: int = 0
    """Bytes in `extra` of each event, which stay in the line."""
    with_blob: bool = False
    at: str = ""
    """The probe point where it happens."""
    pass_by: int = 0
    """How often the point is passed before."""
    signal: int = signal.SIGKILL
    room: int = 0
    """How long files may get while the second event is written; 0 for no limit."""


def journals_in(folder: Path, probe: Probe | None = None) -> JournalFiles:
    return JournalFiles(
        folder,
        folder / "blobs",
        clock=SystemClock(),
        durability=Durability.CHECKPOINT,
        probe=probe,
    )


def acknowledged(folder: Path, epoch: int) -> list[str]:
    """What the writer of that epoch says happened: `seq text` per acknowledged event, or an error's name."""
    report = folder / f"report-{epoch}"
    return report.read_text().splitlines() if report.exists() else []


def event_of(orders: Orders, number: int) -> Event:
    text = f"{orders.epoch}:{number}"
    if orders.with_blob and number == 1:
        return ToolResultEvent(tool_use_id=text, result=LARGE)
    extra = {"padding": "p" * orders.padding} if orders.padding else None
    return AssistantEvent(content=text, uuid=text, extra=extra)


def text_of(event: Event) -> str | None:
    """What `event_of` marked the event with."""
    return event.tool_use_id if isinstance(event, ToolResultEvent) else event.uuid


def write(order: dict[str, Any], _: Say) -> None:
    """The writer's whole life. It reports into the folder, where writers of all epochs are found together."""
    orders = Orders(**order)
    folder = Path(orders.folder)
    report = os.open(folder / f"report-{orders.epoch}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    probe = Ending(orders.at, nth=orders.pass_by + 1, ending=orders.signal)

    def say(text: str) -> None:
        os.write(report, f"{text}\n".encode())

    try:
        journal = begin(journals_in(folder, probe), epoch=orders.epoch)
    except NightherdError as error:
        say(type(error).__name__)
        return
    for number in range(orders.count):
        limit = orders.room if orders.room and number == 1 else resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        event = event_of(orders, number)
        try:
            written = journal.append(event)
        except NightherdError as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            say(type(error).__name__)
        else:
            say(f"{written.seq} {text_of(event)}")
    try:
        journal.sync()
    except NightherdError as error:
        say(type(error).__name__)


class Processes:
    """Starts writers and waits for them."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server

    def start(self, orders: Orders) -> Trial:
        """A writer that has these orders; the one before it is over."""
        (trial,) = self._server.begin(WRITER, asdict(orders))
        return trial

    def run(self, orders: Orders) -> int:
        """Start and wait: how it ended (exit code, or minus the signal)."""
        return self._server.run(WRITER, asdict(orders)).status
