"""The daemon's own log: what it says is also in `logs/nightherd.log`, and secrets are in neither."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nightherd.model.log import LogLine
from nightherd.model.secrets import Secrets
from nightherd.ports import Clock, OperatorLog
from nightherd.wiring.stores import open_log, system_clock

Report = Callable[[str], None]


class DaemonLog:
    """Prints notices and writes them to the log."""

    def __init__(self, log: OperatorLog, clock: Clock, secrets: Secrets, report: Report) -> None:
        self._log = log
        self._clock = clock
        self._secrets = secrets
        self._report = report

    def report(self, text: str) -> None:
        """Say it."""
        self._log.write(LogLine(at=self._clock.now(), event="daemon.said", message=text))
        self._report(self._secrets.mask(text))

    def know(self, secrets: Secrets) -> None:
        """Mask these as well from now on."""
        self._secrets = self._secrets.joined(secrets)
        self._log.know(secrets)


@contextmanager
def logging_notices(state_dir: Path, secrets: Secrets, report: Report) -> Iterator[DaemonLog]:
    """`tell`, with every notice written to the log, and when the daemon started and stopped."""
    log, clock = open_log(state_dir, secrets), system_clock()
    log.write(LogLine(at=clock.now(), event="daemon.started"))
    try:
        yield DaemonLog(log, clock, secrets, report)
    finally:
        log.write(LogLine(at=clock.now(), event="daemon.ended"))
        log.close()


OUTPUT = "daemon.out"
LIMIT = 10 * 1024 * 1024
ROTATED_SUFFIX = ".1"


def trim_output(path: Path, *, limit: int = LIMIT) -> bool:
    """Put what this process has said so far aside when it is too much; whether it was.

    Only for a file that is really its output. The process continues writing at its end, which is then its
    beginning: the file was opened for appending.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 (compared with a descriptor)
        if found.st_size <= limit or not os.path.samestat(found, os.fstat(sys.stdout.fileno())):
            return False
        sys.stdout.flush()
        shutil.copyfile(path, path.with_name(path.name + ROTATED_SUFFIX))
        path.with_name(path.name + ROTATED_SUFFIX).chmod(0o600)
        os.truncate(path, 0)
    except (OSError, ValueError):
        return False  # a full disk, or no such output: what is said matters less than that it runs
    return True
