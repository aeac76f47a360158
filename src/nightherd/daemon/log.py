"""The daemon's own log: what it says is also in `logs/nightherd.log`, and secrets are in neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nightherd.model.log import LogLine
from nightherd.model.secret import Secrets
from nightherd.ports import Clock, OperatorLog
from nightherd.wiring.memories import open_log, system_clock

Tell = Callable[[str], None]


class DaemonLog:
    """Says what there is to say to whoever listens, and writes it down."""

    def __init__(self, log: OperatorLog, clock: Clock, secrets: Secrets, tell: Tell) -> None:
        self._log = log
        self._clock = clock
        self._secrets = secrets
        self._tell = tell

    def tell(self, text: str) -> None:
        """Say it."""
        self._log.write(LogLine(at=self._clock.now(), event="daemon.said", message=text))
        self._tell(self._secrets.mask(text))

    def know(self, secrets: Secrets) -> None:
        """Mask these as well from now on."""
        self._secrets = self._secrets.joined(secrets)
        self._log.know(secrets)


@contextmanager
def telling(state_dir: Path, secrets: Secrets, tell: Tell) -> Iterator[DaemonLog]:
    """`tell`, with everything it says written down, and when the daemon began and ended."""
    log, clock = open_log(state_dir, secrets), system_clock()
    log.write(LogLine(at=clock.now(), event="daemon.started"))
    try:
        yield DaemonLog(log, clock, secrets, tell)
    finally:
        log.write(LogLine(at=clock.now(), event="daemon.ended"))
        log.close()
