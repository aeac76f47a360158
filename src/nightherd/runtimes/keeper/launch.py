"""Launching a keeper: a bare interpreter, a few descriptors, and nothing secret in its arguments."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from nightherd.runtimes.keeper.census import KEEPER
from nightherd.runtimes.keeper.streams import Sink, Source

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
    raised = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for one in descriptors]
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
