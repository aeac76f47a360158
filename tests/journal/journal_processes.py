"""Writers in processes of their own that die, freeze or run out of room exactly where a test says.

Run as a script this is a fork server: imports are paid once, a writer costs milliseconds. `Processes` is
the test's side of it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from nightherd.errors import NightherdError
from nightherd.host.clock import SystemClock
from nightherd.journal.files import JournalFiles
from nightherd.model.agent import Durability
from nightherd.model.event import AssistantEvent, Event, ToolResultEvent
from nightherd.ports import Probe
from nightherd.testing.journal_contract import begin

LARGE = "z" * 100_000


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


def write(orders: Orders) -> None:
    """The writer's whole life."""
    folder = Path(orders.folder)
    report = os.open(folder / f"report-{orders.epoch}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    passed = 0

    def probe(point: str) -> None:
        nonlocal passed
        if point == orders.at:
            passed += 1
            if passed == orders.pass_by + 1:
                os.kill(os.getpid(), orders.signal)

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


def serve() -> None:
    """Fork a writer per line of orders; a line with a pid waits for that writer to stop or end."""
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            _, status = os.waitpid(request, os.WUNTRACED)
            answer = "stopped" if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                code = 1
                try:
                    write(Orders(**request))
                    code = 0
                except BaseException:  # noqa: BLE001 (the end of a process)
                    traceback.print_exc()
                finally:
                    os._exit(code)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


class Processes:
    """Starts writers, waits for them, and leaves none behind."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._running: set[int] = set()

    def start(self, orders: Orders) -> int:
        """The pid of a writer that has these orders."""
        pid = self._ask(asdict(orders))
        assert isinstance(pid, int)
        self._running.add(pid)
        return pid

    def wait(self, pid: int) -> int | str:
        """How the writer ended (exit code, or minus the signal), or `stopped`."""
        answer = self._ask(pid)
        if answer != "stopped":
            self._running.discard(pid)
        assert isinstance(answer, int | str)
        return answer

    def run(self, orders: Orders) -> int | str:
        """Start and wait."""
        return self.wait(self.start(orders))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
        self._server.communicate()

    def _ask(self, request: object) -> object:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())


if __name__ == "__main__":
    serve()
