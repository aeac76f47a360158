"""The fork server's own process: forks trials and reports their results. `fork_server` is the way to it.

One thread, no state of any trial in it, and nothing it does waits for any one of them. Each line of standard
input is a request; its answer is a line of standard output, in whatever order they become known.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import FrameType
from typing import Any

STOPPED = 1 << 16
"""The status of a process that is stopped; no exit code and no signal is that high."""

Say = Callable[[str], None]
"""Puts a line on record that a kill cannot take back."""

Target = Callable[[Any, Say], None]
"""What a trial runs: its order, and how it reports."""


class _Server:
    """The other side: one thread that never waits for any one trial."""

    def __init__(self) -> None:
        self._statuses: dict[int, int | None] = {}
        self._waiting: dict[int, tuple[int, bool]] = {}

    def serve(self) -> None:
        """Answer requests until there are no more, then end what is left."""
        woken, waker = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(waker, False)
        signal.signal(signal.SIGCHLD, _wake)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        requests = b""
        while True:
            ready, _, _ = select.select([0, woken], [], [])
            if woken in ready:
                os.read(woken, 1 << 10)
                self._look()
            if 0 in ready:
                data = os.read(0, 1 << 16)
                if not data:
                    break
                requests += data
                *whole, requests = requests.split(b"\n")
                for line in whole:
                    self._handle(json.loads(line))
        self._kill(list(self._statuses))

    def _handle(self, request: dict[str, Any]) -> None:
        number = request["number"]
        if "wait" in request:
            if request["wait"] not in self._statuses:
                _answer({"number": number, "failed": "the trial was given up: another one began"})
                return
            self._waiting[request["wait"]] = (number, request["for_stop"])
            self._look()
            return
        if "kill" in request:
            self._kill(request["kill"])
            _answer({"number": number})
            return
        try:
            answer = self._begin(request) if "begin" in request else _load(request["load"])
        except Exception:  # noqa: BLE001 - reported to the test that named it
            answer = {"failed": traceback.format_exc()}
        _answer({"number": number, **answer})

    def _begin(self, request: dict[str, Any]) -> dict[str, Any]:
        target: Target = resolve_name(request["begin"])
        # What is there now stays for good: no trial has to look it through, and copy it by doing so.
        gc.freeze()
        orders = zip(request["orders"], request["records"], strict=True)
        pids = [_fork(target, order, record) for order, record in orders]
        self._statuses.update(dict.fromkeys(pids))
        return {"pids": pids}

    def _look(self) -> None:
        """Find out what became of the trials, and notify the tests that wait for them."""
        for pid, known in self._statuses.items():
            if known is not None and known != STOPPED:
                continue
            found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            while found:
                if os.WIFSTOPPED(status):
                    self._statuses[pid] = STOPPED
                elif os.WIFCONTINUED(status):
                    self._statuses[pid] = None
                else:
                    self._statuses[pid] = os.waitstatus_to_exitcode(status)
                    break
                found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
        for pid, (number, for_stop) in list(self._waiting.items()):
            status_now = self._statuses[pid]
            if status_now is None or (status_now == STOPPED and not for_stop):
                continue
            del self._waiting[pid]
            _answer({"number": number, "status": status_now})

    def _kill(self, pids: Sequence[int]) -> None:
        for pid in pids:
            self._waiting.pop(pid, None)
            status = self._statuses.pop(pid, None)
            if status is None or status == STOPPED:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _wake(number: int, frame: FrameType | None) -> None:
    """Only there so that the signal interrupts the waiting."""


def _load(names: Sequence[str]) -> dict[str, Any]:
    for name in names:
        import_module(name)
    return {}


def _answer(answer: dict[str, object]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def _fork(target: Target, order: object, record: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        # A crash of the interpreter says where.
        faulthandler.enable(Path(record).with_suffix(".error").open("w"))
        said = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        target(order, lambda line: void(os.write(said, line.encode() + b"\n")))
        status = 0
    except BaseException:  # noqa: BLE001 - the end of a process
        Path(record).with_suffix(".error").write_text(traceback.format_exc())
    finally:
        os._exit(status)


def void(_: object) -> None:
    """Nothing to give."""


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])
    # What nearly every trial runs in, and would import by itself.
    import_module("anyio._backends._asyncio")
    _Server().serve()
