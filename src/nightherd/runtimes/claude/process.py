"""One `claude` under a keeper: started, listened to line by line, and ended with everything it started."""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from nightherd.errors import FencedError
from nightherd.model.doctor import version_fault
from nightherd.model.journal.event import ErrorEvent
from nightherd.model.secrets import Secrets
from nightherd.runtimes.claude.installation import version_text
from nightherd.runtimes.claude.launch import Launch
from nightherd.runtimes.claude.outcome import MISSING_CLI, not_started, vanished
from nightherd.runtimes.keeper.attendant import KilledBy
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.launch import LineReader
from nightherd.runtimes.keeper.process import KeptProcess, kept_process
from nightherd.runtimes.tools.output import BoundedOutput

UNEXPLAINED = frozenset({"no_result", "claude_failed"})
"""Failures of which an old version may be the cause."""
LAST_WORDS_S = 5.0
"""How long standard error may stay open after everything has ended; only a stuck process can do that."""


class ClaudeProcess:
    """One process, and why it failed if it does. `close` it in whatever way the run ends."""

    def __init__(self, launch: Launch, keepers: Keepers, grace: timedelta) -> None:
        self._launch = launch
        self._keepers = keepers
        self._grace = grace
        self._opened = AsyncExitStack()
        self._process: KeptProcess | None = None
        self._stderr = _Ear(launch.secrets)
        self._writing = anyio.Lock()
        self.files: Path | None = None
        """Where files for it are, once it has been started."""
        self.failure: ErrorEvent = MISSING_CLI

    @property
    def has_started(self) -> bool:
        """Whether there ever was a process; what became of it, `settle` finds out."""
        return self._process is not None

    async def start(self) -> None:
        """Start it, unless `failure` says why not. It reads what is written."""
        program = self._launch.program
        if program is None:
            return
        try:
            self._process = await self._started(program)
        except (OSError, ValueError) as error:
            self.failure = not_started(error, program, self._launch.directory)
            await self._opened.aclose()

    async def _started(self, program: str) -> KeptProcess:
        # Named by the state directory too: a copy of it has jobs of the same ids.
        scratch = f"nightherd-{self._keepers.directory}-{self._launch.execution}"
        place = self._keepers.place
        folder = place.scratch or self._launch.environment.get("TMPDIR")
        _remove_left_behind(scratch, folder)
        files = self._opened.enter_context(
            tempfile.TemporaryDirectory(
                prefix=f"{scratch}-",
                dir=folder,
                ignore_cleanup_errors=True,  # its keeper may be faster
            )
        )
        self._opened.enter_context(self._stderr)
        real_files = self._write(Path(files))
        process = await self._opened.enter_async_context(
            kept_process(
                [program, *self._launch.arguments(Path(files))],
                cwd=self._launch.directory,
                env=self._launch.environment,
                execution=self._launch.execution,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr.descriptor,
                grace=self._grace,
                # A `claude` whose gate has lost its worker waits on, whatever its version makes of a closed input.
                holds_input=True,
                scratch=files,
                keepers=self._keepers,
            )
        )
        self._stderr.is_given()
        self.files = real_files
        return process

    def _write(self, files: Path) -> Path:
        """Write what it is given into `files`; the path without links, before anything runs that could put one there."""
        real_files = files.resolve()
        self._launch.write_files(files)
        self._keepers.place.give(files)
        return real_files

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Every line it prints, until it has let go of its output."""
        if self._process is not None and self._process.stdout is not None:
            async with aclosing(self._process.stdout.lines()) as lines:
                async for line in lines:
                    yield line

    def reader(self) -> LineReader:
        """What it prints, line by line, for a reader that also has other things to do."""
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("claude has not been started")
        return LineReader(self._process.stdout)

    async def write(self, data: bytes) -> None:
        """It reads `data` next; `BrokenPipeError` when it reads nothing any more."""
        async with self._writing:
            if self._process is None or self._process.stdin is None:
                raise BrokenPipeError("claude is not listening")
            await self._process.stdin.send(data)

    async def end_input(self) -> None:
        """Close its input: it ends when it has processed what it has."""
        async with self._writing:
            if self._process is not None:
                self._process.end_input()

    async def settle(self) -> None:
        """Wait for its end; `failure` then says what a run without a result died of. Also when it was closed.

        `FencedError` when it was ended because the lease had run out: it is for the worker that takes the
        job over to say how that ends.
        """
        if self._process is None:
            return
        ending = await self._process.wait()
        if ending.killed_by is KilledBy.LEASE:
            raise FencedError("claude was stopped because the worker's lease had run out")
        failure = vanished(ending, await anyio.to_thread.run_sync(self._stderr.text))
        self.failure = await anyio.to_thread.run_sync(self._with_version, failure)

    def _with_version(self, failure: ErrorEvent) -> ErrorEvent:
        """The failure; one that nothing else explains names a version that is known not to work."""
        if failure.code not in UNEXPLAINED:
            return failure
        if self._keepers.place.is_container:
            return failure  # the program is another one than that of this machine
        version = version_text(self._launch.program, self._launch.environment)
        fault = version_fault(version) if version is not None else None
        if fault is None:
            return failure
        return replace(failure, message=f"{failure.message} (claude {version}: {fault})")

    async def close(self) -> None:
        """It and everything it started has ended. Cannot be cancelled."""
        with anyio.CancelScope(shield=True):
            await self._opened.aclose()


def _remove_left_behind(scratch: str, place: str | None) -> None:
    """Remove the files of this job's earlier executions whose keeper was killed too. None of them runs any more."""
    job = scratch.rpartition(".")[0] or scratch
    for left in Path(place or tempfile.gettempdir()).glob(f"{glob.escape(job)}.*"):
        shutil.rmtree(left, ignore_errors=True)


class _Ear:
    """Listens to standard error in a thread, and keeps the beginning and the end of what is said."""

    def __init__(self, secrets: Secrets) -> None:
        self._heard = BoundedOutput(secrets=secrets)
        self._source = self.descriptor = -1
        self._is_given = False
        self._thread = threading.Thread(target=self._listen, name="claude-stderr", daemon=True)

    def is_given(self) -> None:
        """The process has its copy of the descriptor: from now on its end is the end."""
        if not self._is_given:
            self._is_given = True
            os.close(self.descriptor)

    def text(self) -> str:
        """Return all of it, once no more can come."""
        self._thread.join(LAST_WORDS_S)
        return self._heard.text()

    def __enter__(self) -> _Ear:
        self._source, self.descriptor = os.pipe()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_given()
        self._thread.join(LAST_WORDS_S)

    def _listen(self) -> None:
        while chunk := os.read(self._source, 64 * 1024):
            self._heard.add(chunk)
        os.close(self._source)


ENVIRONMENT = {
    # Says when nothing more will come, so that its input is not closed too early.
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
}


class Duty:
    """Whether the process still owes an answer: to what it was asked, or to what runs in its background."""

    def __init__(self) -> None:
        self._has_result = False
        self._state: str | None = None
        """Versions that do not report their state are done with their result."""
        self._has_tasks = False
        self._is_deferred = False
        """Whether a call was put off: what runs in the background ends with the process, too."""
        self.owed: set[str] = set()
        """Names of what it was told while it was at work and has not read yet."""
        self.is_held = False
        """Whether somebody is about to tell it something."""
        self.holds_prompt = False
        """Whether it is told something more when it is known what becomes of a call that waited for a person."""

    @property
    def is_done(self) -> bool:
        """Whether its input may be closed."""
        if self._is_deferred:
            return True
        is_idle = not self._has_tasks and self._state in (None, "idle")
        is_told = self.holds_prompt or self.is_held or self.owed
        return self._has_result and is_idle and not is_told

    @property
    def has_result(self) -> bool:
        """Whether it has answered what it read last."""
        return self._has_result

    def release_prompt(self) -> None:
        """It has been told what was held back, and owes an answer to that."""
        self.holds_prompt = self._has_result = False

    def see(self, message: Mapping[str, Any]) -> None:
        """Take note of a message."""
        match message:
            case {"type": "result"}:
                self._has_result = True
                self._is_deferred = message.get("stop_reason") == "tool_deferred"
            case {"type": "user", "isReplay": True, "uuid": str(uuid)} if uuid in self.owed:
                self.owed.discard(uuid)
                self._has_result = False
            case {"type": "system", "subtype": "session_state_changed", "state": str(state)}:
                self._state = state
            case {"type": "system", "subtype": "background_tasks_changed"}:
                self._has_tasks = bool(message.get("tasks"))
            case _:
                pass


def parsed(line: bytes) -> bytes | dict[str, Any]:
    """The message, or the line as it is when it is none."""
    try:
        message = json.loads(line)
    except ValueError:
        return line
    return message if isinstance(message, dict) else line


def begins_turn(said: bytes | Mapping[str, Any]) -> bool:
    """Whether Claude begins another turn with this, for something that it was notified of."""
    match said:
        case {"type": "assistant" | "stream_event"}:
            return True
        case {"type": "system", "subtype": "init"}:
            return True
        case {"type": "system", "subtype": "session_state_changed", "state": "running"}:
            return True
        case _:
            return False
