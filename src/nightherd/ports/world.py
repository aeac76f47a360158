"""The machine as the engine sees it: time, processes, and a place for operators to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:  # only names: a command that lists jobs must not load what writing them needs
    from datetime import datetime

    from nightherd.model.log import LogLine
    from nightherd.model.secrets import Secrets
    from nightherd.model.worker import Worker


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> datetime:
        """This instant, aware and in UTC."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, for measuring how long something took."""


class Probe(Protocol):
    """Named points where the world may end; production passes one that does nothing."""

    def __call__(self, point: str, /) -> None: ...


def no_probe(point: str) -> None:
    """The probe of production: do nothing."""


class OperatorLog(Protocol):
    """Where what operators may want to know is written down. Never fails, and nothing depends on it."""

    def write(self, line: LogLine) -> None:
        """Add a line, secrets masked."""

    def know(self, secrets: Secrets) -> None:
        """Mask these as well from now on; what was masked before still is."""

    def close(self) -> None: ...


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One process of one boot of one machine, and of no other."""

    host: str
    pid: int
    started: str
    boot_id: str


def process_of(worker: Worker) -> Process:
    """The process that the worker was, or is."""
    return Process(
        host=worker.host, pid=worker.pid, started=worker.process_started, boot_id=worker.boot_id
    )
