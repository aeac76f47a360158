"""A command under a keeper, as the worker sees it (INV-KEEPER): its pipes, its end, and that nothing outlives it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial

import anyio
from anyio import from_thread, lowlevel, to_thread

from nightherd.runtimes.keeper.attendant import (
    EXECUTION_MARK,
    Attendant,
    Ending,
    execution_mark,
)
from nightherd.runtimes.keeper.ending import KILL_WAIT_S
from nightherd.runtimes.keeper.instructions import Instructions
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.launch import Pipes, Sink, Source, open_pipes

GRACE = timedelta(seconds=2)
ANSWER_S = 10.0
"""How long beyond the grace a keeper may take to end its tree before it is taken for stuck."""
OWN_MARK = "NIGHTHERD_KEEPER"


class KeptProcess:
    """A command that has started. Its keeper ends it when this worker dies or its lease runs out."""

    def __init__(self, attendant: Attendant, pipes: Pipes, grace: timedelta) -> None:
        self._attendant = attendant
        self._grace = grace
        self._loop = lowlevel.current_token()
        self._started = anyio.Event()
        self._ended = anyio.Event()
        self._gone = anyio.Event()
        self.stdin: Sink | None = pipes.stdin
        self.stdout: Source | None = pipes.stdout
        self.stderr: Source | None = pipes.stderr

    @property
    def pid(self) -> int:
        """The command's, which is also that of its process group; 0 when its keeper died before it could say."""
        return self._attendant.pid

    @property
    def keeper_pid(self) -> int:
        """The keeper's."""
        return self._attendant.keeper_pid

    @property
    def ending(self) -> Ending | None:
        """How it ended; None while it runs."""
        return self._attendant.ending

    async def wait(self) -> Ending:
        """How the command ended, once it has; what it left running, if it may, is not waited for."""
        await self._ended.wait()
        return self._end()

    async def stop(self, grace: timedelta | None = None) -> Ending:
        """End the whole tree: SIGTERM, the grace, SIGKILL. Cannot be cancelled: nothing is left when it returns."""
        grace_s = (self._grace if grace is None else grace).total_seconds()
        with anyio.CancelScope(shield=True):
            self._attendant.order(f"stop {grace_s}")
            with anyio.move_on_after(grace_s + KILL_WAIT_S + ANSWER_S):
                await self._gone.wait()
            if not self._gone.is_set():
                await to_thread.run_sync(self._attendant.force)
                await self._gone.wait()
        return self._end()

    def send_heartbeat(self, deadline: float) -> None:
        """The lease now ends at `deadline` on the monotonic clock. May be called from any thread."""
        self._attendant.order(f"beat {deadline}")

    def end_input(self) -> None:
        """Let the command find the end of its input, also where its keeper holds it open."""
        if self.stdin is not None:
            self.stdin.close()
            self._attendant.order("release")

    def close(self) -> None:
        """Let go of the pipes."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    async def begin(self, keepers: Keepers) -> None:
        """Have it started; `OSError` when it cannot be. It is among `keepers` until nothing of it is left.

        A keeper that dies before it has said so may have started it: that is an ending, not a refusal.
        """
        keepers.add(self)

        def changed() -> None:
            if self._attendant.is_gone:
                keepers.discard(self)
            try:
                from_thread.run_sync(self._take_note, token=self._loop)
            except RuntimeError:  # that event loop has ended, and nothing waits any more
                pass

        self._attendant.attend(changed)
        await self._started.wait()
        if self._attendant.refusal is not None:
            await self._gone.wait()
            raise self._attendant.refusal

    def _take_note(self) -> None:
        is_gone = self._attendant.is_gone
        if self._attendant.pid or self._attendant.refusal or is_gone:
            self._started.set()
        if self._attendant.ending or is_gone:
            self._ended.set()
        if is_gone:
            self._gone.set()

    def _end(self) -> Ending:
        return self._attendant.ending or Ending(returncode=None)


@asynccontextmanager
async def kept_process(  # noqa: PLR0913 what `subprocess` takes too, and what is the keeper's
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    execution: str,
    marks: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    grace: timedelta = GRACE,
    lease: float | None = None,
    may_outlive: bool = False,
    holds_input: bool = False,
    keepers: Keepers | None = None,
    scratch: str | None = None,
) -> AsyncIterator[KeptProcess]:
    """The command, running under a keeper; `OSError` or `ValueError` when it cannot be started.

    `env` is its whole environment, to which the marks are added. `stdin`, `stdout` and `stderr` are
    descriptors, or PIPE, DEVNULL and (for `stderr`) STDOUT as `subprocess` has them. `lease` is until when
    the worker may be silent, on the monotonic clock: SIGTERM comes a margin before, SIGKILL at the latest
    when it is reached, unless a heartbeat moves it; without one, the last heartbeat to `keepers` counts. Leaving the block, in
    whatever way, ends everything the command started. Only with `may_outlive`, when the command itself
    has ended and the block was left in peace, what it left in the background continues under its keeper
    until `keepers` are stopped. The directory `scratch` is removed in the end, also when the worker is gone.

    With `holds_input` and PIPE as `stdin`, the death of this worker is no end of the command's input: the
    command finds that end only by `end_input`, and so does nothing on account of it while it is being ended.
    """
    owner = keepers if keepers is not None else Keepers()
    every_mark = {EXECUTION_MARK: execution_mark(execution, owner.directory), **(marks or {})}
    # A name, not a time: no two keepers of this process ever start in the same nanosecond.
    own = f"{os.getpid()}-{time.monotonic_ns()}"
    order = Instructions(
        argv=[os.fsencode(argument) for argument in argv],
        cwd=os.fsencode(cwd),
        environment=_encoded({**env, **every_mark, OWN_MARK: own}),
        mark=f"{OWN_MARK}={own}".encode(),
        grace_s=grace.total_seconds(),
        deadline=lease if lease is not None else owner.deadline,
        margin_s=owner.margin_s,
        may_outlive=may_outlive,
        scratch=os.fsencode(scratch or ""),
    )
    async with owner.starts:
        # Not cancelled half-way: a process that exists but is not known here could not be stopped.
        with anyio.CancelScope(shield=True):
            standard = (stdin, stdout, stderr)
            process = await _start(order, every_mark, standard, owner, holds_input=holds_input)
    try:
        yield process
    except BaseException:
        await process.stop()
        raise
    else:
        if not (may_outlive and process.ending is not None and process.ending.left):
            await process.stop()
    finally:
        process.close()


async def _start(
    instructions: Instructions,
    marks: Mapping[str, str],
    standard: tuple[int, int, int],
    owner: Keepers,
    *,
    holds_input: bool,
) -> KeptProcess:
    pipes = open_pipes(*standard)
    try:
        try:
            held = pipes.held if holds_input else None
            make = partial(Attendant, instructions, marks, pipes.given, owner.place, held)
            # A container is asked for a keeper and may be slow to answer; a process of our own is there at once.
            attendant = await to_thread.run_sync(make) if owner.place.is_container else make()
        finally:
            pipes.close_given()
        process = KeptProcess(attendant, pipes, timedelta(seconds=instructions.grace_s))
        await process.begin(owner)
    except BaseException:
        pipes.close()
        raise
    return process


def _encoded(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


DRAIN_S = 0.5
"""How long output may still come once the command has ended; a process it left behind may hold the pipe open."""


async def finish(
    process: KeptProcess,
    take: Callable[[bytes], object],
    allowed: timedelta,
    *,
    body: bytes = b"",
    is_alone: bool = False,
) -> Ending | None:
    """How the command ended, or None when it was stopped because its time was up.

    What it prints is given to `take`, and `body` is what it reads. With `is_alone`, what it left in the
    background ends with it.
    """
    ending: Ending | None = None
    closed = anyio.Event()

    async def write() -> None:
        if process.stdin is not None:
            with suppress(BrokenPipeError):  # a command need not read its input
                await process.stdin.send(body)
            process.stdin.close()

    async def read() -> None:
        if process.stdout is not None:
            await process.stdout.drain(take)
        closed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(read)
        with anyio.move_on_after(allowed.total_seconds()):
            ending = await process.wait()
        if ending is None or is_alone:
            await process.stop()
        with anyio.move_on_after(DRAIN_S):
            await closed.wait()
        tasks.cancel_scope.cancel()
    return ending
