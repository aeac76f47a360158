"""A command's standard descriptors: what the caller asked for as real descriptors, and the worker's ends of pipes."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack

from nightherd.runtimes.keeper.streams import Sink, Source


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
