"""The demo's dashboard: a daemon that serves it while everything happens, is killed with the jobs it runs, and ends with the demo."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from nightherd.cli.daemon.open import ask_for_link
from nightherd.cli.demo.stage import LOOK_S, PATIENCE_S, Workers
from nightherd.config.discovery import STATE_DIRECTORY
from nightherd.daemon.record import SERVING, find_daemon
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.workflows.run import RunStatus
from nightherd.wiring.machine import user_name
from nightherd.wiring.stores import open_reader

NEEDED = ("fastapi", "uvicorn")
OUTPUT = "daemon.txt"
PORTS = (20_000, 32_000)
"""Below those that the system gives to connections: the daemon that is started again gets the same one."""
TRIES = 50
LOGIN_S = 60.0
"""How long the demo waits for a login: as long as the link works."""
APPROVAL_S = 30.0
"""How long it waits for a person who is logged in to approve."""
STOPPING_S = 5.0
CANCELLING_S = 20.0
AT_WORK = (JobStatus.PENDING, JobStatus.RUNNING)
UNDER_WAY = frozenset({RunStatus.QUEUED, RunStatus.RUNNING})
ENDING = (signal.SIGTERM, signal.SIGHUP)
"""What ends this process besides Ctrl-C."""
LINK_WORKS = "it works once, for 60 seconds"


def ensure_served() -> None:
    """`RefusedError` where the dashboard cannot be served."""
    if any(find_spec(name) is None for name in NEEDED):
        raise RefusedError("the demo's dashboard needs the extra serve", hint=SERVING)


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    first, last = PORTS
    for _ in range(TRIES):
        port = first + int.from_bytes(os.urandom(4), "big") % (last - first)
        with closing(socket.socket()) as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise NightherdError("no free port was found for the demo's dashboard")


class DashboardDaemon(Workers):
    """The daemon of the demo's fleet. Whatever kills a worker of the demo kills the daemon instead."""

    def __init__(self, place: Path, environ: Mapping[str, str]) -> None:
        super().__init__(place, environ)
        self._state_dir = place / STATE_DIRECTORY
        self._child: subprocess.Popen[bytes] | None = None
        self._read = 0

    def start(self) -> None:
        """Start it, if it does not run; it serves the dashboard when this returns."""
        if self._child is not None:
            return
        with (self.place / OUTPUT).open("ab") as output:
            self._read = output.tell()
            # In a session of its own: Ctrl-C is the demo's, which then stops it.
            child = self._child = subprocess.Popen(
                self._words("start"),
                cwd=self.place,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

        def is_serving() -> bool:
            record = find_daemon(self._state_dir)
            return record is not None and record.pid == child.pid and record.address is not None

        self._wait(is_serving)

    def link(self) -> str:
        """Return a link that logs one browser in."""
        return str(ask_for_link(self._state_dir)["url"])

    def has_login(self) -> bool:
        """Whether a browser is logged in."""
        with closing(open_reader(self._state_dir)) as reader:
            return bool(reader.browser_sessions_of(user_name()))

    def wait_for_login(self, patience_s: float = LOGIN_S) -> bool:
        """Wait until a browser has logged in; False when none has after that time."""
        return self._waits(self.has_login, patience_s)

    def kill_title(self, command: str = "") -> str:
        """What a person would type to do what `kill_when` does."""
        pid = "" if self._child is None else self._child.pid
        return f"{f'{command} & ' if command else ''}kill -9 {pid}    (the daemon)"

    def kill_when(self, is_time: Callable[[], bool], *command: str) -> None:
        """Run `command`, where there is one, and kill the daemon when it is time."""
        self.start()
        asking = self._begin(*command) if command else None
        try:
            self._wait(is_time)
        finally:
            self._kill()
            if asking is not None:
                asking.kill()
                asking.wait()

    def go_on(self, *command: str) -> list[str]:
        """Start it again and wait until nothing is left to do, or run `command`; return what was printed."""
        self.start()
        if command:
            return super().go_on(*command)
        self._wait(self._is_idle)
        return self._printed()

    def go_on_title(self) -> str:
        """What a person would type to do what `go_on` does."""
        return "nightherd start"

    def take_signals(self) -> None:
        """From now on what ends this process ends it like Ctrl-C."""
        for one in ENDING:
            signal.signal(one, interrupt)

    def wait_for_person(self, is_answered: Callable[[], bool], say: Callable[[str], None]) -> bool:
        """Let a person who is logged in answer; False when nobody is or does."""
        self.start()
        if not self.has_login():
            return False
        say(f"approve it in the dashboard; in {APPROVAL_S:.0f} seconds the demo does it itself")
        return self._waits(is_answered, APPROVAL_S)

    def stay(self, span: timedelta | None) -> None:
        """Keep it running for that long, or until Ctrl-C."""
        self.start()
        child = self._running()
        try:
            code = child.wait(None if span is None else span.total_seconds())
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            return
        self._child = None
        raise NightherdError(f"the demo's daemon ended with code {code}: {self._last_line()}")

    def stop(self) -> None:
        """End it with everything that it runs. Ctrl-C does not keep it from that."""
        child, self._child = self._child, None
        if child is None:
            return
        with ignoring_signals():
            for number, patience_s in (
                (signal.SIGTERM, STOPPING_S),
                (signal.SIGTERM, CANCELLING_S),
            ):
                child.send_signal(number)
                try:
                    child.wait(patience_s)
                    return
                except subprocess.TimeoutExpired:
                    continue
            child.kill()
            child.wait()

    def _kill(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise NightherdError("the demo's daemon does not run")
        return self._child

    def _is_idle(self) -> bool:
        with closing(open_reader(self._state_dir)) as reader:
            if any(reader.list_jobs(JobQuery(status=status, limit=1)) for status in AT_WORK):
                return False
            return not any(status in UNDER_WAY for _, status in reader.count_open_runs())

    def _wait(self, is_so: Callable[[], bool]) -> None:
        if not self._waits(is_so, PATIENCE_S):
            raise NightherdError(f"the demo's daemon did not get to work: {self._last_line()}")

    def _waits(self, is_so: Callable[[], bool], patience_s: float) -> bool:
        """Whether it becomes so in that time, while the daemon runs."""
        until = time.monotonic() + patience_s
        while not is_so():
            if self._running().poll() is not None:
                code = self._running().returncode
                raise NightherdError(
                    f"the demo's daemon ended with code {code}: {self._last_line()}"
                )
            if time.monotonic() > until:
                return False
            time.sleep(LOOK_S)
        return True

    def _printed(self) -> list[str]:
        """Return what it printed about jobs since it was started."""
        with (self.place / OUTPUT).open("rb") as output:
            output.seek(self._read)
            lines = output.read().decode(errors="replace").splitlines()
        return [line for line in lines if line.split(" ", 1)[0] in ("rescued", "started", "ended")]

    def _last_line(self) -> str:
        lines = (self.place / OUTPUT).read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it printed nothing")


def interrupt(number: int, frame: FrameType | None) -> None:
    """End what runs as Ctrl-C does."""
    raise KeyboardInterrupt


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """What ends this process ends it like Ctrl-C: its daemon is stopped first."""
    kept = {one: signal.signal(one, interrupt) for one in ENDING}
    try:
        yield
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)


@contextmanager
def ignoring_signals() -> Iterator[None]:
    """Nobody ends this process while it cleans up."""
    kept = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, *ENDING)}
    try:
        yield
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)
