"""The worker's eye on one keeper: a thread that hears it out, takes note of its end, and does its work if it was killed.

A thread, not a task: a keeper's death is answered also while the event loop is busy, and a command that is
left running in the background is attended to after the call that started it has returned.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nightherd.runtimes.keeper.census import Census
from nightherd.runtimes.keeper.ending import end_processes
from nightherd.runtimes.keeper.instructions import Instructions, encode
from nightherd.runtimes.keeper.launch import launch

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
    """How many processes were told to end, the command's own included."""
    left: int = 0
    """Not 0 while something that the command started is still running."""


class Attendant:
    """Starts a keeper and hears it out. `changed` is called, in the thread, each time there is news."""

    def __init__(
        self,
        told: Instructions,
        marks: Mapping[str, str],
        standard: Sequence[int],
        held: int | None = None,
    ) -> None:
        """`held` is what the keeper keeps open until it is ordered to release it, or has ended everything."""
        self._message = encode(told)
        self._told = told
        control, self._control = os.pipe()
        self._status, status = os.pipe()
        try:
            more = [] if held is None else [held]
            self.keeper_pid = launch(marks, [*standard, control, status, *more])
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
        """Tell the keeper; one that has ended needs no telling."""
        with self._lock:
            if self._held_back is not None:
                self._held_back.append(line)
            else:
                self._tell(line)

    def force(self) -> None:
        """End the tree and the keeper with SIGKILL, because the keeper does not answer."""
        end_processes(Census(marks=self._marks, roots=frozenset({self.keeper_pid})), 0.0)

    @property
    def _marks(self) -> frozenset[bytes]:
        return frozenset({self._told.mark})

    def _tell(self, line: str) -> None:
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
        os.waitpid(self.keeper_pid, 0)
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
        except BrokenPipeError:  # it has died; what it says, or does not say, tells the rest
            pass
        self._message = b""
        # A keeper that is stopped reads nothing; signs of life must not wait for it.
        os.set_blocking(self._control, False)
        with self._lock:
            held_back, self._held_back = self._held_back or [], None
            for line in held_back:
                self._tell(line)

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["started", pid]:
                self.pid = int(pid)
            case ["refused", number, "cwd"]:
                place = os.fsdecode(self._told.cwd)
                self.refusal = OSError(int(number), os.strerror(int(number)), place)
            case ["refused", number, _]:
                place = os.fsdecode(self._told.argv[0])
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
        """The keeper was killed: end what it kept, without grace, for nobody else would."""
        if not self.pid:
            time.sleep(UNSEEN_S)
        has_child = self.pid and self.ending is None
        roots = frozenset({self.pid}) if has_child else frozenset()
        killed, left = end_processes(Census(marks=self._marks, roots=roots), 0.0)
        code = self.ending.returncode if self.ending is not None else None
        self.ending = Ending(
            returncode=code, killed_by=KilledBy.KEEPER_GONE, killed=killed, left=len(left)
        )
