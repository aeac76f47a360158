"""Launching a keeper: a bare interpreter, the pipes of its command, and nothing secret in its arguments."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import anyio

from nightherd.runtimes.keeper.census import KEEPER

CHUNK_BYTES = 64 * 1024


class _End:
    """This end of a pipe."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._is_closed = False

    def close(self) -> None:
        """Let go; harmless the second time."""
        if not self._is_closed:
            self._is_closed = True
            os.close(self._descriptor)


class Source(_End):
    """What a command prints. One reader at a time; once it is closed, a command that prints on gets SIGPIPE."""

    async def receive(self, limit: int = CHUNK_BYTES) -> bytes:
        """The next bytes, at least one; empty when every process that could print has let go."""
        await anyio.lowlevel.checkpoint()
        while not self._is_closed:
            try:
                return os.read(self._descriptor, limit)
            except BlockingIOError:
                await anyio.wait_readable(self._descriptor)
        return b""

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Every line without its end, whatever its length; the last one also when it is not ended."""
        reader = LineReader(self)
        while (line := await reader.next()) is not None:
            yield line

    async def drain(self, take: Callable[[bytes], object]) -> None:
        """Give everything to `take` until the end: a bounded one keeps the command from filling the pipe."""
        while chunk := await self.receive():
            take(chunk)


class LineReader:
    """Reads lines one by one. A reading that is cancelled loses nothing: the next one continues where it was.

    With `longest`, the lines end where one has more bytes than that.
    """

    def __init__(self, source: Source, longest: int | None = None) -> None:
        self._source = source
        self._longest = longest
        self._held = 0
        self._ready: deque[bytes] = deque()
        self._parts: list[bytes] = []

    async def next(self) -> bytes | None:
        """The next line without its end; None when there is none any more."""
        while not self._ready:
            if self._longest is not None and self._held > self._longest:
                return None
            chunk = await self._source.receive()
            if not chunk:
                last, self._parts = b"".join(self._parts), []
                return last or None
            first, *others = chunk.split(b"\n")
            self._parts.append(first)
            self._held = len(others[-1]) if others else self._held + len(first)
            for other in others:
                self._ready.append(b"".join(self._parts))
                self._parts = [other]
        return self._ready.popleft()


class Sink(_End):
    """What a command reads. One writer at a time; once it is closed, the command finds the end of what was sent."""

    async def send(self, data: bytes) -> None:
        """All of `data` is in the pipe when it returns; `BrokenPipeError` when the reader is gone."""
        await anyio.lowlevel.checkpoint()
        rest = memoryview(data)
        while rest:
            if self._is_closed:
                raise BrokenPipeError("this end has been closed")
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)


PACKAGES = str(Path(__file__).parents[3])
"""Where the keeper finds its modules."""
BOOT = """
import sys
name, place = "", sys.argv[1]
for part in ("nightherd", "runtimes", "keeper"):
    name, place = (name + "." + part).lstrip("."), place + "/" + part
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [place]
from nightherd.runtimes.keeper.guard import main
"""
"""Gives the keeper empty packages to find its modules in: the real ones may load whatever they need."""
LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that an interpreter may need of the worker's environment; its secrets are not among it."""
FIRST_FREE = 10
"""Descriptors from here on are not overwritten while those of the keeper are put in place."""
RESTORED = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD)


def launch(marks: Mapping[str, str], descriptors: Sequence[int]) -> int:
    """The pid of a keeper that has `descriptors` as its 0, 1, 2, and so on; they stay ours to close."""
    environment = {name: os.environ[name] for name in LOADER if name in os.environ}
    keeper, _, itself = KEEPER.decode().partition("=")
    raised = [
        fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for descriptor in descriptors
    ]
    try:
        return os.posix_spawn(
            sys.executable,
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                BOOT + "main()",
                PACKAGES,
                str(os.getpid()),
                str(len(raised)),
            ],
            {**environment, **marks, keeper: itself},
            file_actions=[(os.POSIX_SPAWN_DUP2, one, at) for at, one in enumerate(raised)],
            setsigmask=(),
            setsigdef=RESTORED,
        )
    finally:
        for one in raised:
            os.close(one)


class Pipes:
    """`given` goes to the command; the streams are the worker's ends, where there is a pipe."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.held: int | None = None
        """Our end of its input, for a keeper that holds it open; closed with `stdin`."""
        self.stdin: Sink | None = None
        self.stdout: Source | None = None
        self.stderr: Source | None = None
        self._opened = ExitStack()

    def give(self, descriptor: int, *, is_ours: bool) -> None:
        """The command's next descriptor; closed with the others when it was opened for the command."""
        self.given.append(descriptor)
        if is_ours:
            self._opened.callback(os.close, descriptor)

    def close_given(self) -> None:
        """The command has them now: ours would keep its pipes open when it has ended."""
        self._opened.close()

    def close(self) -> None:
        """Let go of every end."""
        self.close_given()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def open_pipes(stdin: int, stdout: int, stderr: int) -> Pipes:
    """The descriptors for a command; PIPE, DEVNULL and STDOUT mean what they mean to `subprocess`."""
    pipes = Pipes()
    try:
        if stdin == subprocess.PIPE:
            theirs, ours = os.pipe()
            pipes.give(theirs, is_ours=True)
            pipes.stdin, pipes.held = Sink(ours), ours
        else:
            _give_file(pipes, stdin, os.O_RDONLY)
        pipes.stdout = _give_output(pipes, stdout)
        if stderr == subprocess.STDOUT:
            pipes.give(pipes.given[1], is_ours=False)
        else:
            pipes.stderr = _give_output(pipes, stderr)
    except BaseException:
        pipes.close()
        raise
    return pipes


def _give_output(pipes: Pipes, wanted: int) -> Source | None:
    if wanted != subprocess.PIPE:
        _give_file(pipes, wanted, os.O_WRONLY)
        return None
    ours, theirs = os.pipe()
    pipes.give(theirs, is_ours=True)
    return Source(ours)


def _give_file(pipes: Pipes, wanted: int, mode: int) -> None:
    is_ours = wanted == subprocess.DEVNULL
    pipes.give(os.open(os.devnull, mode) if is_ours else wanted, is_ours=is_ours)
