"""What runs as process 1 of a container: starts keepers for the worker, and ends the container when the worker is gone.

It listens on a unix socket in a directory of the host. Each request is one packet, and may carry descriptors:

    lease DEADLINE MARGIN GRACE   the worker's own connection: as long as it is open and the deadline is not reached, all is
                                  well. `beat DEADLINE` and `release SECONDS` follow on it. Answer: `leased`, or `busy`
    keep                          a keeper with these descriptors as its 0, 1, 2, and so on. Answer: `kept PID`
    end PIDS MARK...              kills the trees of these processes, and all that carry the marks. Answer: `ended KILLED LEFT`
    peek                          whether there is a lease. Answer: `idle`, or `busy`
    listen                        a listening TCP socket on the container's own loopback. Answer: `listening PORT`, with it

Only processes outside of the container are listened to: their pid is 0 in here, also that of who sends a signal. When the lease ends, or its connection
closes without `release`, every process is ended and so is the container. After `release`, every process is ended and the
container waits that many seconds for the next lease. Only modules that are in every Python are loaded.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` loads enum
import ctypes
import os
import select
import socket
import struct
import sys
import time

from nightherd.runtimes.keeper import guard
from nightherd.runtimes.keeper.census import Census, send

SOCKET = "keeper.sock"
FIRST_LEASE_S = 30.0
"""How long a container that nobody has asked for anything stays."""
KILL_WAIT_S = 5.0
POLL_S = 0.02
LONGEST_PACKET = 65_536
MOST_DESCRIPTORS = 16
PR_SET_DUMPABLE = 4
ASKED_TO_END = (signal.SIGTERM, signal.SIGINT)
SIGNAL_SET_BYTES = 128
"""Of a `sigset_t`, in every C library for Linux."""
SIGNAL_INFO = struct.Struct("IiiI112x")
"""A `signalfd_siginfo`, as far as the pid of the sender."""
FOREVER = float("inf")


def main() -> None:
    """Serve until the lease ends. Does not return."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    init = _Init(sys.argv[2])
    try:
        init.serve()
    finally:
        init.close()
        init.end_all()
        os._exit(0)


class _Init:
    """The container's own state: its lease, and the connections that are open."""

    def __init__(self, directory: str) -> None:
        self._wake, wake_in = os.pipe()
        os.set_blocking(wake_in, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _heard)
        self._signals = _open_signals(ASKED_TO_END)
        self._is_over = False
        self._lease: socket.socket | None = None
        self._deadline = time.monotonic() + FIRST_LEASE_S
        self._margin_s = 0.0
        self._grace_s = 0.0
        self._connections: dict[int, socket.socket] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(self._signals, select.POLLIN)
        self._listen(directory)

    def _listen(self, directory: str) -> None:
        """Appear under the final name only once connections are taken: it is what the worker waits for."""
        path = os.path.join(directory, SOCKET)  # noqa: PTH118 the keeper does without pathlib
        self._listener.bind(path + ".new")
        os.chmod(path + ".new", 0o666)  # noqa: PTH101, S103 its directory is what protects it
        self._listener.listen(64)
        os.rename(path + ".new", path)  # noqa: PTH104
        self._poll.register(self._listener, select.POLLIN)

    def serve(self) -> None:
        """Answer until the lease is over."""
        while not self._is_over and time.monotonic() < self._deadline:
            wait_s = max(0.0, min(self._deadline - time.monotonic(), 3600.0))
            for descriptor, _ in self._poll.poll(wait_s * 1000 + 1):
                if descriptor == self._wake:
                    _drain(self._wake)
                    _reap()
                elif descriptor == self._signals:
                    self._take_signals()
                elif descriptor == self._listener.fileno():
                    self._accept()
                elif descriptor in self._connections:
                    self._hear(self._connections[descriptor])

    def _take_signals(self) -> None:
        """The engine may end us, and so may who looks after it; what runs in here may not."""
        taken = os.read(self._signals, SIGNAL_INFO.size * 16)
        for _, _, _, sender in SIGNAL_INFO.iter_unpack(taken):
            if sender == 0 or os.getpid() != 1:
                self._is_over = True

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid, _, _ = struct.unpack("3i", credentials)
        if pid != 0 and os.getpid() == 1:  # a process in here: the agent has nothing to ask of us
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection.fileno()] = connection
        self._poll.register(connection, select.POLLIN)

    def _hear(self, connection: socket.socket) -> None:
        descriptors: list[int] = []
        try:
            packet, descriptors, _, _ = socket.recv_fds(
                connection, LONGEST_PACKET, MOST_DESCRIPTORS
            )
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        try:
            if packet:
                self._answer(connection, packet.split(), descriptors)
            else:
                self._close(connection)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _close(self, connection: socket.socket) -> None:
        if connection is self._lease:
            self._is_over = True
        self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._connections.pop(connection.fileno(), None)
        self._poll.unregister(connection)
        connection.close()

    def _answer(
        self, connection: socket.socket, words: list[bytes], descriptors: list[int]
    ) -> None:
        order, values = words[0], words[1:]
        if order == b"lease" and len(values) == 3:
            self._take_lease(connection, values)
        elif order == b"beat" and connection is self._lease:
            self._deadline = float(values[0]) - self._margin_s
        elif order == b"release" and connection is self._lease:
            self._release(connection, float(values[0]))
        elif order == b"keep" and descriptors:
            self._keep(connection, descriptors)
        elif order == b"end" and values:
            self._end(connection, values)
        elif order == b"peek":
            _reply(connection, b"idle" if self._lease is None else b"busy")
        elif order == b"listen":
            _lend_listener(connection)
        else:
            _reply(connection, b"refused")

    def _take_lease(self, connection: socket.socket, values: list[bytes]) -> None:
        if self._lease is not None:
            _reply(connection, b"busy")
            return
        self._lease = connection
        self._margin_s, self._grace_s = float(values[1]), float(values[2])
        self._deadline = float(values[0]) - self._margin_s
        _reply(connection, b"leased")

    def _release(self, connection: socket.socket, wait_s: float) -> None:
        """The job is done: nothing of it may stay, and the next one may come."""
        self.end_all()
        self._lease = None
        self._deadline = time.monotonic() + wait_s
        _reply(connection, b"released")

    def _keep(self, connection: socket.socket, descriptors: list[int]) -> None:
        """Start a keeper: a fork of this process, which has loaded all that a keeper needs."""
        try:
            pid = os.fork()  # safe: there is one thread
        except OSError as error:  # the agent has as many processes as a container may have
            _reply(connection, b"refused %d" % (error.errno or 0))
            return
        if pid == 0:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, ())
                guard.take_over(descriptors)
            finally:
                os._exit(127)
        _reply(connection, b"kept %d" % pid)

    def _end(self, connection: socket.socket, values: list[bytes]) -> None:
        """In a process of its own: it may take seconds, and the lease must be heard meanwhile."""
        try:
            child = os.fork()
        except OSError:  # there are too many processes; then this one does it
            child = -1
        if child > 0:
            return
        try:
            roots = frozenset(int(pid) for pid in values[0].split(b",") if pid not in (b"", b"0"))
            census = Census(
                marks=frozenset(values[1:]), roots=roots, spared=frozenset({1, os.getpid()})
            )
            killed, left = _kill(census)
            _reply(connection, b"ended %d %d" % (killed, left))
        finally:
            if child == 0:
                os._exit(0)

    def close(self) -> None:
        """Let the worker know: what it sees end from now on ends because the container does."""
        if self._lease is not None:
            self._lease.close()

    def end_all(self) -> None:
        """End every process of the container but this one: SIGTERM, the grace, SIGKILL."""
        if os.getpid() != 1:  # the engine was asked to share the host's processes
            return
        began = time.monotonic()
        number = signal.SIGTERM
        while True:
            passed = time.monotonic() - began
            if passed > self._grace_s:
                number = signal.SIGKILL
            if not send(-1, number) or passed > self._grace_s + KILL_WAIT_S:
                return
            _reap()
            time.sleep(POLL_S)


def _open_signals(numbers: tuple[int, ...]) -> int:
    """A descriptor on which these signals arrive, with who sent them; they do nothing else any more."""
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    mask = sum(1 << (number - 1) for number in numbers).to_bytes(8, sys.byteorder)
    padded = mask + bytes(SIGNAL_SET_BYTES - len(mask))
    opened = ctypes.CDLL(None).signalfd(-1, padded, os.O_CLOEXEC | os.O_NONBLOCK)
    if opened < 0:
        raise OSError("signalfd failed")
    return int(opened)


def _drain(descriptor: int) -> None:
    try:
        os.read(descriptor, 4096)
    except BlockingIOError:
        pass


def _heard(_number: int, _frame: object) -> None:
    """Being woken is all that is wanted."""


def _reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def _reply(connection: socket.socket, packet: bytes) -> None:
    try:
        connection.send(packet)
    except OSError:  # it does not wait for the answer any more
        pass


def _lend_listener(connection: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(("127.0.0.1", 0))
            listener.listen(128)
            packet = b"listening %d" % listener.getsockname()[1]
            socket.send_fds(connection, [packet], [listener.fileno()])
        except OSError:
            _reply(connection, b"refused")


def _kill(census: Census) -> tuple[int, int]:
    """Kill all that the census finds; how many there were, and how many are left after all."""
    killed: set[tuple[int, int]] = set()
    began = time.monotonic()
    while alive := census.find():
        if time.monotonic() - began > KILL_WAIT_S:
            return len(killed), len(alive)
        for process in alive.items():
            send(process[0], signal.SIGKILL)
            killed.add(process)
        time.sleep(POLL_S)
    return len(killed), 0
