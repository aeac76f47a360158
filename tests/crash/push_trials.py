"""A notifier with a device that works in a process which is killed at one of its points."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from engine.notifications.outbox import fleet_of, outbox
from nightherd.model.access.web import Web
from nightherd.model.agents.agent import Fleet
from nightherd.ports import OutgoingPush, Probe, SendPush, SendResult
from nightherd.testing.determinism import FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.state_values import BEGINNING

PUSH = f"{__name__}:push"
ARRIVED = "arrived"


class PushBox:
    """A push service whose pushes outlive every process: a line in a file each, and then the device is gone or not."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / ARRIVED
        self._gone = folder / "gone"

    def public_key(self) -> str:
        """The key that the device subscribed with."""
        return "key"

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[SendPush]:
        """Nothing to open."""
        yield self.send

    async def send(self, outgoing: OutgoingPush) -> SendResult:
        """Take it, or say that the device is gone."""
        fields = json.loads(outgoing.payload)
        with self._path.open("a") as file:
            file.write(json.dumps([fields["title"], outgoing.topic]) + "\n")
        if self._gone.exists():
            return SendResult(error="gone", is_permanent=True, is_gone=True)
        return SendResult()

    def forget_device(self) -> None:
        """From now on there is no such device."""
        self._gone.touch()

    @property
    def arrived(self) -> list[tuple[str, str]]:
        """The title and topic of each push, in order."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [(title, topic) for title, topic in map(json.loads, lines)]


def dashboard_fleet() -> Fleet:
    """A fleet with a dashboard and no declared target."""
    return replace(fleet_of(), web=Web(enabled=True))


async def work(folder: Path, *, minutes: int, by: str, probe: Probe) -> None:
    """Take in what is new and push what is due, so many minutes after the jobs ended."""
    clock = FakeClock(BEGINNING + timedelta(hours=1, minutes=minutes))
    fleet, pushes = dashboard_fleet(), PushBox(folder)
    async with outbox(folder, fleet, clock=clock, probe=probe, by=by, pushes=pushes) as box:
        await box.round()


def push(order: dict[str, Any], say: Say) -> None:
    """Work; end at the `nth` point, or say each of them."""

    def tell(point: str, /) -> None:
        say(point)

    probe: Probe = Ending(nth=order["nth"]) if order["nth"] else tell
    folder = Path(order["folder"])

    async def main() -> None:
        await work(folder, minutes=order["minutes"], by=order["by"], probe=probe)

    anyio.run(main)
