"""Fork server: code tried in processes of its own, milliseconds each, that may be killed at any point.

For tests of crashes. A fresh interpreter costs some 300 ms before it does anything; a fork of one that has
imported everything costs about 12. A trial is a function that can be imported by name; it gets an order
(any JSON value) and a way to say what it has been promised so far:

    def write(order: Any, say: Say) -> None:  # Say, Ending: nightherd.testing.fork_process, .ending
        journals = MyJournals(order["folder"], probe=Ending("journal.after_write", nth=3))
        for number in range(10):
            event = journals.open(...).append(...)
            say(f"{event.seq}")

    def test_nothing_acknowledged_is_lost(tmp_path):
        with ForkServer() as server:
            ended = server.run("my_trials:write", {"folder": str(tmp_path)})
        assert ended.status == -signal.SIGKILL
        assert len(list(MyJournals(tmp_path).read(JOB))) >= len(ended.said)

What was said before a kill is never lost. No trial outlives its test, unless it is begun to stay: what is still
running or stopped is killed when the next one begins and when the server is closed; one that takes longer than `patience_s` is
killed and reported. When the test run itself is killed, the server kills its trials and ends.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from nightherd.testing import fork_process
from nightherd.testing.fork_process import STOPPED

PATIENCE_S = 60.0
"""How long a trial may take before it counts as hanging."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a trial ended: its exit code, or minus the signal; what it had said; its traceback if it raised."""

    status: int
    said: list[str]
    error: str


class Trial:
    """A process that was begun. Ask it from the thread that began it."""

    def __init__(self, server: ForkServer, pid: int, record: Path) -> None:
        self.pid = pid
        self._server = server
        self._record = record

    def said(self) -> list[str]:
        """What it has said so far; a line that is not whole yet is left out."""
        return self._record.read_text().split("\n")[:-1]

    def wait(self, patience_s: float | None = None) -> Ended:
        """Wait for its end; `TimeoutError` when that takes too long: longer than the server's patience, or this."""
        status = self._server.wait(self.pid, for_stop=False, patience_s=patience_s)
        error = self._record.with_suffix(".error")
        return Ended(
            status=status, said=self.said(), error=error.read_text() if error.exists() else ""
        )

    def wait_until_stopped(self) -> None:
        """Wait until it stands still; `RuntimeError` when it ends instead."""
        status = self._server.wait(self.pid, for_stop=True)
        if status != STOPPED:
            raise RuntimeError(f"the trial ended with {status} instead of stopping")

    def send(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


class ForkServer:
    """A process that has everything imported and forks trials. A context manager."""

    def __init__(self, *, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._folder = tempfile.TemporaryDirectory(prefix="trials-")
        self._begun: dict[int, Trial] = {}
        self._number = 0
        self._unread = b""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", fork_process.__name__, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            )
        except BaseException:
            self._folder.cleanup()
            raise
        assert self._process.stdout is not None
        self._answers = selectors.DefaultSelector()
        self._answers.register(self._process.stdout, selectors.EVENT_READ)

    def load(self, *modules: str) -> None:
        """Import these once, so that no trial has to. They may do nothing that must not be in every trial."""
        self._ask({"load": modules})

    def begin(self, target: str, *orders: object, stays: bool = False) -> list[Trial]:
        """Begin `target` (`module:function`) once per order, all at the same time.

        Whatever is left of trials begun earlier is killed first, but for those that stay: `end` ends them.
        """
        if not stays:
            self._kill_all()
        records = [str(Path(self._folder.name) / f"{self._number}-{n}") for n in range(len(orders))]
        for record in records:
            Path(record).touch()
        answer = self._ask({"begin": target, "orders": orders, "records": records})
        pids = list(answer["pids"])
        trials = [Trial(self, pid, Path(name)) for pid, name in zip(pids, records, strict=True)]
        if not stays:
            self._begun = dict(zip(pids, trials, strict=True))
        return trials

    def end(self, trial: Trial) -> None:
        """Kill a trial, if it still runs; it cannot be waited for any more."""
        self._ask({"kill": [trial.pid]})

    def run(self, target: str, order: object = None) -> Ended:
        """Begin one and wait for its end."""
        (trial,) = self.begin(target, order)
        return trial.wait()

    def run_all(self, target: str, orders: Sequence[object]) -> list[Ended]:
        """Begin one per order, and wait for all."""
        return [trial.wait() for trial in self.begin(target, *orders)]

    def wait(self, pid: int, *, for_stop: bool, patience_s: float | None = None) -> int:
        """The status a trial ended with, or `STOPPED`; `TimeoutError`, and its end, when it takes too long."""
        try:
            answer = self._ask({"wait": pid, "for_stop": for_stop}, patience_s)
        except TimeoutError:
            self._kill_all()
            raise
        return int(answer["status"])

    def close(self) -> None:
        """End every trial and the server."""
        self._answers.close()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        # It kills what is left when its input ends, and then ends itself.
        try:
            self._process.wait(self._patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _kill_all(self) -> None:
        if self._begun:
            self._ask({"kill": list(self._begun)})
            self._begun = {}

    def _ask(self, request: dict[str, object], patience_s: float | None = None) -> dict[str, Any]:
        """The answer to this request; skips answers to earlier requests."""
        patience_s = self._patience_s if patience_s is None else patience_s
        self._number += 1
        line = json.dumps({**request, "number": self._number}).encode() + b"\n"
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        deadline = time.monotonic() + patience_s
        while True:
            try:
                answer = json.loads(self._line(deadline))
            except TimeoutError as error:
                raise TimeoutError(f"nothing came of it within {patience_s:g} s") from error
            if answer["number"] == self._number:
                if "failed" in answer:
                    raise RuntimeError(answer["failed"])
                return dict(answer)

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not self._answers.select(left):
                raise TimeoutError
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise RuntimeError("the fork server is gone")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line
