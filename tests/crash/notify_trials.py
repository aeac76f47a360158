"""A notifier that works in a process which is killed at one of its points."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from engine.notifications.outbox import PHONE, fleet_of, outbox
from nightherd.ports import Outgoing, Probe, Send, SendResult
from nightherd.testing.determinism import FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.state_values import BEGINNING

NOTIFY = f"{__name__}:notify"
ARRIVED = "arrived"


class MailBox:
    """A server whose messages outlive every process: a line in a file each."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ARRIVED

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[Send]:
        """Nothing to open."""
        yield self.send

    async def send(self, outgoing: Outgoing) -> SendResult:
        """Take it."""
        with self._path.open("a") as file:
            file.write(outgoing.message.title + "\n")
        return SendResult()

    @property
    def titles(self) -> list[str]:
        """What arrived, in order."""
        return self._path.read_text().splitlines() if self._path.exists() else []


async def work(folder: Path, *, minutes: int, by: str, probe: Probe) -> None:
    """Take in what is new and deliver what is due, so many minutes after the jobs ended."""
    clock = FakeClock(BEGINNING + timedelta(hours=1, minutes=minutes))
    fleet = fleet_of(PHONE)
    async with outbox(folder, fleet, MailBox(folder), clock=clock, probe=probe, by=by) as box:
        await box.round()


def notify(order: dict[str, Any], say: Say) -> None:
    """Work; end at the `nth` point, or say each of them."""

    def tell(point: str, /) -> None:
        say(point)

    probe: Probe = Ending(nth=order["nth"]) if order["nth"] else tell
    folder = Path(order["folder"])

    async def main() -> None:
        await work(folder, minutes=order["minutes"], by=order["by"], probe=probe)

    anyio.run(main)
