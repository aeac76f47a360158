"""What runs inside the keeper: starts the command, watches the worker, and leaves nothing behind (INV-KEEPER).

Single-threaded, and only modules that load in microseconds: it is paid for on every command an agent runs.
It leads a session of its own and is child subreaper, so that whatever loses its parent below it becomes its
child: as long as it has no child, nothing of the command runs.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` loads enum: 5 ms
import ctypes
import errno
import os
import select
import sys
import time

from nightherd.runtimes.keeper.census import Census, send
from nightherd.runtimes.keeper.instructions import FOREVER, Instructions, decode

CONTROL, STATUS, HELD = 3, 4, 5
"""Where orders come from and answers go to; and, if it is given, the command's input, held open for the worker."""
OUT_OF_THE_WAY = 512
"""Descriptors from here on are not overwritten while those of the keeper are put in place."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_WAIT_S = 5.0
"""After this long a process that survives SIGKILL is stuck in the kernel, and waiting does not help."""
POLL_S = 0.02
PARENT_POLL_S = 0.2
"""How often to look who the parent is where the system cannot tell us when it ends."""
DEAF = (signal.SIGHUP, signal.SIGPIPE)
FORWARDED = (signal.SIGINT, signal.SIGTERM)
NOT_HERE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)


def main() -> None:
    """Keep one command from its start to the end of everything it started. Does not return."""
    _guard(worker=int(sys.argv[2]), given=int(sys.argv[3]))


def take_over(descriptors: list[int]) -> None:
    """Do the same in a process that was forked for it, with `descriptors` as its 0, 1, 2, and so on."""
    for at, descriptor in enumerate(descriptors):
        os.dup2(descriptor, OUT_OF_THE_WAY + at, inheritable=False)
    for at in range(len(descriptors)):
        os.dup2(OUT_OF_THE_WAY + at, at)
    _guard(worker=os.getppid(), given=len(descriptors))


def _guard(*, worker: int, given: int) -> None:
    _close_strays(given)
    for descriptor in range(CONTROL, given):
        os.set_inheritable(descriptor, False)
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os._exit(_Guard(_Ears(worker), holds_input=given > HELD).run())


def _close_strays(given: int) -> None:
    """Let go of what the worker left open without meaning to; closing a whole range can take minutes."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 the keeper does without pathlib
        if int(name) >= given:
            try:
                os.close(int(name))
            except OSError:  # what the list itself was read from
                pass


class _Ears:
    """Everything the keeper hears: orders, signals, and the end of the worker."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self.signals: set[int] = set()
        self.orders = b""
        self._wake, wake_in = os.pipe()
        os.set_blocking(wake_in, False)
        signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)
        for number in (*FORWARDED, signal.SIGCHLD):
            signal.signal(number, _heard)
        for number in DEAF:
            signal.signal(number, signal.SIG_IGN)
        self._exit = _exit_descriptor(worker)
        self._poll = select.poll()
        for descriptor in (CONTROL, self._wake, self._exit):
            if descriptor is not None:
                self._poll.register(descriptor, select.POLLIN)
        # Asked after the watch began, so that an end before it is seen too.
        self.is_worker_gone = os.getppid() != worker

    def listen(self, until: float) -> None:
        """Wait for something, at most until this time."""
        wait_s = max(0.0, min(until - time.monotonic(), 3600.0))
        if self._exit is None:
            wait_s = min(wait_s, PARENT_POLL_S)
        for descriptor, _ in self._poll.poll(wait_s * 1000):
            if descriptor == self._wake:
                self.signals.update(os.read(self._wake, 4096))
            elif descriptor == CONTROL:
                self._take_orders()
            else:
                self._poll.unregister(descriptor)
                self.is_worker_gone = True
        self.is_worker_gone = self.is_worker_gone or os.getppid() != self._worker

    def _take_orders(self) -> None:
        data = os.read(CONTROL, 65536)
        if not data:  # closed without a message: no process is left that could end the command
            self._poll.unregister(CONTROL)
            self.is_worker_gone = True
        self.orders += data


def _heard(_number: int, _frame: object) -> None:
    """Being woken is all that is wanted; which signal it was stands in the wake-up pipe."""


def _exit_descriptor(pid: int) -> int | None:
    """Readable when the process has ended; None where the system has no such thing."""
    try:
        if sys.platform == "linux":
            return os.pidfd_open(pid)
        else:  # noqa: RET505 the type checker leaves out a branch, not what follows one
            watch = select.kqueue()
            flags = select.KQ_EV_ADD | select.KQ_EV_ONESHOT
            end = select.kevent(pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)
            watch.control([end], 0)
            return os.dup(watch.fileno())
    except (AttributeError, OSError):
        return None


def _remove(directory: bytes) -> None:
    """Remove the files that only the command needed; what cannot be removed stays."""
    if not directory:
        return
    try:
        for name in os.listdir(directory):  # noqa: PTH208 the keeper does without pathlib
            os.unlink(directory + b"/" + name)  # noqa: PTH108
        os.rmdir(directory)  # noqa: PTH106
    except OSError:  # the worker was faster, or it is not ours any more
        pass


class _Guard:
    """One command under guard."""

    def __init__(self, ears: _Ears, *, holds_input: bool) -> None:
        self._ears = ears
        self._holds_input = holds_input
        self._child = 0
        self._status: int | None = None
        """The command's, once it has ended."""
        self._has_children = True
        self._why = b"none"
        self._killed: dict[tuple[int, int], int] = {}

    def run(self) -> int:
        """Start what we are told to and guard it; the exit code is the command's, 128 + n for signal n."""
        instructions = self._receive()
        if instructions is None:
            return 127
        try:
            return self._keep(instructions)
        finally:
            _remove(instructions.scratch)

    def _keep(self, instructions: Instructions) -> int:
        if not self._start(instructions):
            return 127
        self._grace_s = instructions.grace_s
        self._margin_s = instructions.margin_s
        self._beat(instructions.deadline)
        self._census = Census(
            marks=frozenset({instructions.mark}),
            roots=frozenset({os.getpid()}),
            spared=frozenset({os.getpid()}),
        )
        is_reported = False
        while self._is_kept(instructions):
            if self._status is not None and not is_reported:
                self._report(left=1)
                is_reported = True
            self._ears.listen(self._deadline)
        left = self._end_all() if self._has_children or self._why != b"none" else 0
        self._report(left=left)
        return code if (code := self._returncode()) >= 0 else 128 - code

    def _receive(self) -> Instructions | None:
        while not self._ears.is_worker_gone:
            if (decoded := decode(self._ears.orders)) is not None:
                instructions, self._ears.orders = decoded
                return instructions
            self._ears.listen(FOREVER)
        return None

    def _start(self, instructions: Instructions) -> bool:
        what = b"cwd"
        try:
            os.chdir(instructions.cwd)
            what = b"argv"
            self._child = _spawn(instructions, tied=self._holds_input)
        except OSError as error:
            _say(b"refused %d %s" % (error.errno or 0, what))
            return False
        # The command's output ends when the command lets go of it, not when we do.
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor, inheritable=False)
        _say(b"started %d" % self._child)
        return True

    def _is_kept(self, instructions: Instructions) -> bool:
        """Whether to continue; when not, `_why` says what ends it."""
        self._obey()
        self._reap()
        if self._ears.is_worker_gone:
            self._end_because(b"worker_gone", self._grace_s)
        elif time.monotonic() >= self._deadline:
            self._end_because(b"lease", min(self._grace_s, self._margin_s))
        ended = self._status is not None
        if not self._has_children or self._why != b"none":
            return False
        return not ended or instructions.may_outlive

    def _obey(self) -> None:
        *lines, self._ears.orders = self._ears.orders.split(b"\n")
        for line in lines:
            order, _, value = line.partition(b" ")
            if order == b"beat":
                self._beat(float(value))
            elif order == b"stop":
                self._end_because(b"stop", float(value))
            elif order == b"release":
                self._release()
        for number in FORWARDED:
            if number in self._ears.signals:
                self._forward(number)
        self._ears.signals.clear()

    def _release(self) -> None:
        """Let go of the command's input, for the worker means it to end. Without one, that number is of something else."""
        if self._holds_input:
            self._holds_input = False
            os.close(HELD)

    def _forward(self, number: int) -> None:
        if self._status is None:
            send(-self._child, number)
        else:  # the command has gone; what it left still has to get this signal
            self._end_because(b"stop", self._grace_s)

    def _end_because(self, why: bytes, grace_s: float) -> None:
        """The first reason is the one reported; a later one can only shorten the grace."""
        is_first = self._why == b"none"
        self._why = why if is_first else self._why
        self._grace_s = grace_s if is_first else min(grace_s, self._grace_s)

    def _beat(self, deadline: float) -> None:
        """The worker lives, and may be silent until then. We keep a little ahead of it."""
        self._deadline = deadline - self._margin_s

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._has_children = False
                return
            if pid == 0:
                self._has_children = True
                return
            if pid == self._child:
                self._status = status

    def _end_all(self) -> int:
        """End the whole tree: SIGTERM, the grace, SIGKILL until none is left. How many are left after all."""
        began = time.monotonic()
        while True:
            alive = self._census.find()
            self._reap()
            passed = time.monotonic() - began
            if not alive and not self._has_children:
                return 0
            if passed > self._grace_s + KILL_WAIT_S:
                return max(len(alive), 1)
            self._signal(alive, is_over=passed >= self._grace_s)
            self._ears.listen(time.monotonic() + POLL_S)
            self._obey()

    def _signal(self, alive: dict[int, int], *, is_over: bool) -> None:
        number = signal.SIGKILL if is_over else signal.SIGTERM
        for process in alive.items():
            if is_over or process not in self._killed:
                send(process[0], number)
                self._killed[process] = number
            if is_over:
                _kill_group(process[0])

    def _returncode(self) -> int:
        if self._status is None:  # it has not even ended by being killed
            return -int(signal.SIGKILL)
        return os.waitstatus_to_exitcode(self._status)

    def _report(self, *, left: int) -> None:
        ended = (self._returncode(), self._why, len(self._killed), left)
        _say(b"ended %d %s %d %d" % ended)


def _kill_group(pid: int) -> None:
    """Kill the whole group of one of ours: unlike one process after another, none can fork away from that."""
    try:
        group = os.getpgid(pid)
    except OSError:
        return
    if group != os.getpgrp():
        send(-group, signal.SIGKILL)


def _spawn(instructions: Instructions, *, tied: bool) -> int:
    """Start the command in a process group of its own, with the signals as a fresh process has them.

    `tied`: where the system can do that, it kills the command when the keeper ends.
    """
    # All of them: a worker that a shell put into the background ignores SIGINT and SIGQUIT, and so would the command.
    restored = [one for one in range(1, 32) if one not in (signal.SIGKILL, signal.SIGSTOP)]
    name = instructions.argv[0]
    path = instructions.environment.get(b"PATH", os.fsencode(os.defpath))
    folders = [b""] if b"/" in name else path.split(b":")
    refusal: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for folder in folders:
        program = folder + b"/" + name if folder else name
        try:
            if tied and sys.platform == "linux":
                return _spawn_tied(program, instructions, restored)
            return os.posix_spawn(
                program,
                instructions.argv,
                instructions.environment,
                setpgroup=0,
                setsigmask=(),
                setsigdef=restored,
            )
        except OSError as error:
            if error.errno not in NOT_HERE:
                raise
            # One that is there and may not be run is the better answer than the many where there is none.
            if os.access(program, os.F_OK):
                refusal = error
    raise refusal


def _spawn_tied(program: bytes, instructions: Instructions, restored: list[int]) -> int:
    """Start the command so that the kernel kills it the moment the keeper ends, even by SIGKILL.

    A `claude` whose input ends may start a call that waits; without its keeper that input is not held open.
    """
    keeper, libc = os.getpid(), ctypes.CDLL(None)
    failure, failure_in = os.pipe()
    child = os.fork()  # safe: the keeper has one thread
    if child == 0:
        try:
            os.setpgid(0, 0)
            for number in restored:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == keeper:  # else it ended before it could be tied to
                os.execve(program, instructions.argv, instructions.environment)  # noqa: S606
        except OSError as error:
            os.write(failure_in, b"%d" % (error.errno or errno.EINVAL))
        finally:
            os._exit(127)
    os.close(failure_in)
    code = os.read(failure, 16)
    os.close(failure)
    if code:
        os.waitpid(child, 0)
        raise OSError(int(code), os.strerror(int(code)))
    return child


def _say(line: bytes) -> None:
    try:
        os.write(STATUS, line + b"\n")
    except OSError:  # a worker that is gone needs no answer
        pass
