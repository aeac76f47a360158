"""The daemon's own log: what it says is also in `logs/nightherd.log`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nightherd.model.log import LogLine
from nightherd.model.secret import find_secrets
from nightherd.wiring import open_log, system_clock

Tell = Callable[[str], None]


@contextmanager
def telling(state_dir: Path, environ: Mapping[str, str], tell: Tell) -> Iterator[Tell]:
    """`tell`, with everything it says written down, and when the daemon began and ended."""
    log, clock = open_log(state_dir, find_secrets(environ)), system_clock()

    def told(text: str) -> None:
        log.write(LogLine(at=clock.now(), event="daemon.said", message=text))
        tell(text)

    log.write(LogLine(at=clock.now(), event="daemon.started"))
    try:
        yield told
    finally:
        log.write(LogLine(at=clock.now(), event="daemon.ended"))
        log.close()
