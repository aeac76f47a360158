"""The worker's end of a container: keepers are started, kept alive and ended through the socket of its process 1."""

from __future__ import annotations

import os
import posixpath
import socket
import struct
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from anyio import to_thread

from nightherd.errors import NightherdError
from nightherd.model.containers.policy import Mount
from nightherd.model.containers.user import Ids
from nightherd.runtimes.container.init import LONGEST_PACKET, SOCKET
from nightherd.runtimes.container.library import LIBRARY
from nightherd.runtimes.container.ownership import give_tree

ANSWER_S = 10.0
"""How long process 1 may take to answer; it does next to nothing itself."""
END_S = 20.0
"""How long it may take to kill what it was asked to."""
PROGRAMS = f"{LIBRARY}/nightherd/runtimes/tools"


class ContainerGoneError(ConnectionError):
    """Raised when process 1 of a container does not answer, so nothing runs in it."""


class ContainerPlace:
    """A container that runs, leased by this worker until `release` or `close`."""

    is_container = True
    python = "python3"
    programs = PROGRAMS

    def __init__(  # noqa: PLR0913 what is known about a container
        self,
        *,
        directory: Path,
        init_pid: int,
        owner: Ids | None = None,
        mounts: Sequence[Mount] = (),
        hidden: Collection[str] = (),
        scratch: str | None = None,
        destroy: Callable[[], object] = lambda: None,
        margin_s: float = 1.0,
        grace_s: float = 2.0,
    ) -> None:
        """`directory` has the socket, `init_pid` is what the engine says the pid of process 1 is.

        `owner` is whom files of the container's user belong to out here, if anybody. `hidden` are directories inside that are in memory, whatever they are mounted over. `destroy` has the engine remove
        the container, from any thread: for one that does not answer any more.
        """
        self._mounts = {mount.target: os.path.realpath(mount.source) for mount in mounts}
        self._hidden = frozenset(hidden)
        self.scratch = scratch
        self.directory = directory
        self._init_pid = init_pid
        self._owner = owner
        self._destroy = destroy
        self._margin_s = margin_s
        self._grace_s = grace_s
        self._lock = threading.Lock()
        self._lease: socket.socket | None = None

    def lease(self, deadline: float) -> bool:
        """Have it live until `deadline` on the monotonic clock; False when another worker has it.

        `ContainerGoneError` when it does not answer.
        """
        connection = self._connect()
        terms = (deadline, self._margin_s, self._grace_s)
        try:
            answer, _ = _ask(connection, b"lease " + b" ".join(repr(one).encode() for one in terms))
        except BaseException:
            connection.close()
            raise
        if answer != [b"leased"]:
            connection.close()
            return False
        connection.setblocking(False)
        with self._lock:
            self._lease = connection
        return True

    def is_idle(self) -> bool:
        """Whether no worker has it leased now; `ContainerGoneError` when it does not answer."""
        with self._connection() as connection:
            answer, _ = _ask(connection, b"peek")
        return answer == [b"idle"]

    @property
    def is_gone(self) -> bool:
        """Whether the container has ended under us: its end of the lease is closed."""
        with self._lock:
            if self._lease is None:
                return True
            try:
                return not self._lease.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                return True

    def send_heartbeat(self, deadline: float) -> None:
        """The lease now ends at `deadline`. May be called from any thread."""
        with self._lock:
            if self._lease is not None:
                # A frozen container reads nothing; it must not hold up the worker.
                with suppress(OSError):
                    self._lease.send(b"beat " + repr(deadline).encode())

    async def stop(self, grace: timedelta | None = None) -> None:
        """End the container: its process 1 ends everything when it loses its worker."""
        self.close()

    def close(self) -> None:
        """Give up the lease without a word: the container ends itself and all in it."""
        with self._lock:
            lease, self._lease = self._lease, None
        if lease is not None:
            lease.close()

    async def release(self, wait: timedelta) -> bool:
        """End everything in it and leave it for the next job, for as long as `wait`; False when it is gone."""
        return await to_thread.run_sync(self._release, wait.total_seconds())

    def _release(self, wait_s: float) -> bool:
        with self._lock:
            lease, self._lease = self._lease, None
        if lease is None:
            return False
        with lease:
            lease.settimeout(END_S)
            try:
                answer, _ = _ask(lease, b"release " + repr(wait_s).encode())
            except ContainerGoneError:
                return False
        return answer == [b"released"]

    def launch(self, marks: Mapping[str, str], descriptors: Sequence[int]) -> int:
        """The pid inside of a keeper with these descriptors; what it runs carries the marks."""
        with self._connection() as connection:
            answer, _ = _ask(connection, b"keep", descriptors)
        match answer:
            case [b"kept", pid]:
                return int(pid)
            case [b"refused", number] if int(number):
                raise OSError(int(number), os.strerror(int(number)), "a process in the container")
            case _:
                raise ContainerGoneError("the container refused to start a process")

    def reap(self, pid: int) -> None:
        """Process 1 does that."""

    def end(self, marks: frozenset[bytes], roots: frozenset[int]) -> tuple[int, int]:
        """Kill them inside. A container that does not answer, because it is paused or worse, is removed with all in it."""
        pids = b",".join(str(pid).encode() for pid in sorted(roots)) or b"0"
        try:
            with self._connection() as connection:
                connection.settimeout(END_S)
                answer, _ = _ask(connection, b" ".join((b"end", pids, *sorted(marks))))
        except ContainerGoneError:
            try:
                self._destroy()
            except (
                NightherdError,
                RuntimeError,
            ):  # the engine does not answer, or our event loop has ended
                return 0, 1
            return 0, 0
        match answer:
            case [b"ended", killed, left]:
                return int(killed), int(left)
            case _:
                return 0, 1

    def listen(self) -> socket.socket:
        """A socket that accepts connections on the container's own loopback interface, for a server out here."""
        with self._connection() as connection:
            answer, descriptors = _ask(connection, b"listen")
        match answer, descriptors:
            case [b"listening", _], [descriptor]:
                return socket.socket(fileno=descriptor)
            case _:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise ContainerGoneError("the container has no loopback interface to listen on")

    def host_path(self, path: str) -> str | None:
        """The path out here of what is at `path` inside; None for what only the container has."""
        rest = path
        while True:
            if rest in self._hidden:
                return None
            source = self._mounts.get(rest)
            if source is not None:
                return source + path.removeprefix(rest)
            if rest in ("/", ""):
                return None
            rest = posixpath.dirname(rest)

    def give(self, path: Path) -> None:
        """Make the container's user the owner, where that is another one than this worker's."""
        owner = self._owner
        if os.geteuid() != 0 or owner is None or owner.uid == 0:
            return
        give_tree(path, owner)

    @contextmanager
    def _connection(self) -> Iterator[socket.socket]:
        with self._connect() as connection:
            yield connection

    def _connect(self) -> socket.socket:
        """A connection to process 1, and to no other process: one inside could have replaced the socket."""
        connection = connect(self.directory)
        try:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            pid, _, _ = struct.unpack("3i", credentials)
            if pid != self._init_pid:
                raise ContainerGoneError(
                    f"process {pid} answers in the place of the container's process 1 ({self._init_pid})"
                )
        except BaseException:
            connection.close()
            raise
        return connection


def connect(directory: Path) -> socket.socket:
    """A connection to whatever listens in `directory`; `ContainerGoneError` when nothing does.

    The path of a socket may have 107 bytes, and that of a state directory may have more.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(ANSWER_S)
    folder = -1
    try:
        folder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
    except OSError as error:
        connection.close()
        raise ContainerGoneError(f"the container does not answer: {error}") from error
    finally:
        if folder >= 0:
            os.close(folder)
    return connection


def _ask(
    connection: socket.socket, packet: bytes, descriptors: Sequence[int] = ()
) -> tuple[list[bytes], list[int]]:
    """The words of the answer, and the descriptors that came with it."""
    try:
        socket.send_fds(connection, [packet], list(descriptors))
        answer, received, _, _ = socket.recv_fds(connection, LONGEST_PACKET, 1)
    except OSError as error:
        raise ContainerGoneError(f"the container does not answer: {error}") from error
    if not answer:
        raise ContainerGoneError("the container has ended")
    return answer.split(), received
