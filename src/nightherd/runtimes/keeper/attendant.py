"""Supervising and ending processes from the worker's side: one thread per keeper notes its end, and ends its processes if it was killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import anyio
from anyio import to_thread

from nightherd.errors import RefusedError
from nightherd.runtimes.keeper.census import Census, processes
from nightherd.runtimes.keeper.ending import end_processes
from nightherd.runtimes.keeper.instructions import Instructions, encode
from nightherd.runtimes.keeper.place import Place

EXECUTION_MARK = "NIGHTHERD_EXECUTION"
"""In the environment of every process an execution starts, keepers too: `execution_mark()`."""


async def stop_processes(marks: Mapping[str, str], *, grace_s: float) -> None:
    """End every process that carries all `marks`, and its descendants: SIGTERM, `grace_s` to go, then SIGKILL.

    Cannot be cancelled: when it returns, they are gone.
    """
    census = Census(marks=_entries(marks), spared=_own_line())
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(end_processes, census, grace_s)


def execution_mark(execution: str, directory: str) -> str:
    """Return the mark of an execution of the state directory with this identity.

    Execution ids alone do not do: a copy of a state directory has the same ones, and a worker that
    rescues the copied jobs must not kill the processes of the original.
    """
    return f"{execution}@{directory}" if directory else execution


async def kill_marked(mark: str) -> int:
    """Kill every process that carries this execution mark, whichever process started it; return how many there were.

    None is left when it returns. This is what makes it safe to start the job again: the worker and the
    keeper of the old execution may have been killed at once, and then nothing else ends what they started.
    `RefusedError` when one of them cannot be killed. Cannot be cancelled.
    """
    census = Census(marks=_entries({EXECUTION_MARK: mark}), spared=_own_line())
    with anyio.CancelScope(shield=True):
        killed, left = await to_thread.run_sync(end_processes, census, 0.0)
    if left:
        pids = ", ".join(str(pid) for pid in sorted(left))
        raise RefusedError(
            f"processes of execution {mark} cannot be killed: {pids}",
            hint="end them, or restart the machine; the job can be started again after that",
        )
    return killed


def _entries(marks: Mapping[str, str]) -> frozenset[bytes]:
    if not marks:
        raise ValueError("without a mark no process can be identified")
    return frozenset(os.fsencode(f"{name}={value}") for name, value in marks.items())


def _own_line() -> frozenset[int]:
    """This process and those above it, which an agent's command that runs nightherd must not end."""
    parents = {entry.pid: entry.parent for entry in processes()}
    pid = os.getpid()
    line = {pid}
    while (pid := parents.get(pid, 0)) > 0 and pid not in line:
        line.add(pid)
    return frozenset(line)


UNSEEN_S = 0.05
"""A program that has just begun does not show its marks yet."""


class KilledBy(StrEnum):
    """Why the keeper ended a command, if it did."""

    NONE = "none"
    STOP = "stop"
    LEASE = "lease"
    WORKER_GONE = "worker_gone"
    KEEPER_GONE = "keeper_gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended."""

    returncode: int | None
    """Its exit code, or minus the signal that ended it; None when its keeper was killed and cannot say."""
    killed_by: KilledBy = KilledBy.NONE
    killed: int = 0
    """How many processes got the signal to end, including the command itself."""
    left: int = 0
    """Not 0 while something that the command started is still running."""


def returncode_text(code: int | None) -> str:
    """How a command ended by its exit code, or by minus the signal that ended it."""
    if code is None or code >= 0:
        return f"exit code {code}"
    return f"ended by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """The name of a signal, as `kill -l` has it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Attendant:
    """Starts a keeper and hears it out. `changed` is called, in the thread, each time there is news."""

    def __init__(
        self,
        instructions: Instructions,
        marks: Mapping[str, str],
        standard: Sequence[int],
        place: Place,
        held: int | None = None,
    ) -> None:
        """`held` is what the keeper keeps open until it is ordered to release it, or has ended everything."""
        self._place = place
        self._message = encode(instructions)
        self._instructions = instructions
        control, self._control = os.pipe()
        self._status, status = os.pipe()
        try:
            more = [] if held is None else [held]
            self.keeper_pid = place.launch(marks, [*standard, control, status, *more])
        except BaseException:
            os.close(self._control)
            os.close(self._status)
            raise
        finally:
            os.close(control)
            os.close(status)
        self._lock = threading.Lock()
        self._is_open = True
        self._held_back: list[str] | None = []
        """Orders that came before the keeper had its instructions, which are the first it has to hear."""
        self.pid = 0
        self.refusal: OSError | None = None
        self.ending: Ending | None = None
        self.is_gone = False

    def attend(self, changed: Callable[[], None]) -> None:
        """From now on, in a thread of its own, until the keeper has ended."""
        name = f"keeper-{self.keeper_pid}"
        threading.Thread(target=self._attend, args=(changed,), name=name, daemon=True).start()

    def order(self, line: str) -> None:
        """Send it to the keeper, unless that has ended."""
        with self._lock:
            if self._held_back is not None:
                self._held_back.append(line)
            else:
                self._send_line(line)

    def force(self) -> None:
        """End the tree and the keeper with SIGKILL, because the keeper does not answer."""
        self._place.end(self._marks, frozenset({self.keeper_pid}))

    @property
    def _marks(self) -> frozenset[bytes]:
        return frozenset({self._instructions.mark})

    def _send_line(self, line: str) -> None:
        if self._is_open:
            try:
                os.write(self._control, line.encode() + b"\n")
            except (BrokenPipeError, BlockingIOError):
                pass

    def _attend(self, changed: Callable[[], None]) -> None:
        self._instruct()
        heard = b""
        while chunk := os.read(self._status, 4096):
            *lines, heard = (heard + chunk).split(b"\n")
            for line in lines:
                self._hear(line.decode().split())
            changed()
        self._place.reap(self.keeper_pid)
        if self._has_lost_track:
            self._stand_in()
        with self._lock:
            self._is_open = False
            os.close(self._control)
            os.close(self._status)
        self.is_gone = True
        changed()

    def _instruct(self) -> None:
        rest = memoryview(self._message)
        try:
            while rest:
                rest = rest[os.write(self._control, rest) :]
        except BrokenPipeError:  # it has died; its output, or the lack of it, says the rest
            pass
        self._message = b""
        # A keeper that is stopped reads nothing; signs of life must not wait for it.
        os.set_blocking(self._control, False)
        with self._lock:
            held_back, self._held_back = self._held_back or [], None
            for line in held_back:
                self._send_line(line)

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["started", pid]:
                self.pid = int(pid)
            case ["refused", number, "cwd"]:
                place = os.fsdecode(self._instructions.cwd)
                self.refusal = OSError(int(number), os.strerror(int(number)), place)
            case ["refused", number, _]:
                place = os.fsdecode(self._instructions.argv[0])
                self.refusal = OSError(int(number), os.strerror(int(number)), place)
            case ["ended", code, why, killed, left]:
                self.ending = Ending(
                    returncode=int(code),
                    killed_by=KilledBy(why),
                    killed=int(killed),
                    left=int(left),
                )
            case _:
                pass

    @property
    def _has_lost_track(self) -> bool:
        return self.refusal is None and (self.ending is None or self.ending.left > 0)

    def _stand_in(self) -> None:
        """The keeper was killed: end what it kept, without grace; nothing else would."""
        if not self.pid:
            time.sleep(UNSEEN_S)
        has_child = self.pid and self.ending is None
        roots = frozenset({self.pid}) if has_child else frozenset()
        killed, left = self._place.end(self._marks, roots)
        code = self.ending.returncode if self.ending is not None else None
        self.ending = Ending(
            returncode=code, killed_by=KilledBy.KEEPER_GONE, killed=killed, left=left
        )
