"""The `cli` runtime: runs agents with the user's own `claude`, one process a run, under a keeper."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import anyio

from nightherd.errors import FencedError
from nightherd.model.event import ErrorEvent, Event, SystemEvent, describe, is_terminal
from nightherd.model.system import SystemSubtype, Warned
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.opening import Opening, begin_anew, opening_of
from nightherd.runtimes.claude.options import (
    PROGRAM,
    arguments,
    environment_of,
    user_message,
    write_files,
)
from nightherd.runtimes.claude.outcome import MISSING_CLI, not_started, stalled, vanished
from nightherd.runtimes.claude.translate import Translator
from nightherd.runtimes.keeper.attendant import KilledBy
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import KeptProcess, kept_process
from nightherd.runtimes.tools.output import BoundedOutput

NAME = "cli"
GRACE = timedelta(seconds=5)
IDLE_LIMIT = timedelta(minutes=15)
"""How long Claude may say nothing: longer than the longest command it runs in the foreground."""
LINGER = timedelta(seconds=30)
"""How long it may take to end after its result, when nothing runs in the background."""

LAST_WORDS_S = 5.0
"""How long standard error may stay open after everything has ended; only a stuck process can do that."""


class ClaudeCliRuntime:
    """Implements the `Runtime` port.

    A run whose worker has lost its lease ends with `FencedError`: it is another worker's by now.
    Before the last event is given out, and when the iteration is closed or cancelled, `claude` and
    everything it started have ended.
    """

    def __init__(
        self,
        *,
        keepers: Keepers | None = None,
        grace: timedelta = GRACE,
        idle_limit: timedelta = IDLE_LIMIT,
        linger: timedelta = LINGER,
        gives_partial: bool = False,
    ) -> None:
        self._keepers = keepers if keepers is not None else Keepers()
        self._grace = grace
        self._idle_limit = idle_limit
        self._linger = linger
        self._gives_partial = gives_partial

    async def execute(self, request: RuntimeRequest) -> AsyncGenerator[Event, None]:
        """The events of the run; the last is `system/complete` or an error."""
        refusal = _refusal(request)
        if refusal is not None:
            yield refusal
            return
        keepers = self._keepers.branch()
        try:
            opening = opening_of(request)
            async with aclosing(self._run(request, opening, keepers)) as events:
                async for event in events:
                    if not (opening.may_begin_anew and _is_lost_session(event)):
                        yield event
                        continue
                    text = f"claude has no session {opening.resume} any more; a new one begins"
                    yield describe(Warned(code="session_not_found"), text)
                    break
                else:
                    return
            async with aclosing(self._run(request, begin_anew(request), keepers)) as events:
                async for event in events:
                    yield event
        finally:
            await keepers.stop(self._grace)
            self._keepers.discard(keepers)

    async def _run(
        self, request: RuntimeRequest, opening: Opening, keepers: Keepers
    ) -> AsyncGenerator[Event, None]:
        """One process from its start to its end."""
        if opening.is_continuation:
            yield SystemEvent(
                subtype=SystemSubtype.USER_INPUT, content=opening.text, index=0, end=True
            )
        translator = Translator(
            runtime=NAME,
            first_turn=request.job_turns + 1,
            is_resumed=opening.resume is not None,
            gives_partial=self._gives_partial,
        )
        process = _Claude(request, opening, keepers, self._grace)
        async with aclosing(self._listen(process, translator)) as events:
            async for event in events:
                yield event
                if is_terminal(event):
                    return
        for event in translator.finish():
            yield event
        if not translator.has_result:
            yield process.failure

    async def _listen(
        self, process: _Claude, translator: Translator
    ) -> AsyncGenerator[Event, None]:
        """What the process says, until it has ended or has been silent for too long."""
        async with aclosing(process.lines()) as lines:
            while True:
                is_over = translator.has_result and not translator.has_open_tasks
                limit = (self._linger if is_over else self._idle_limit).total_seconds()
                line: bytes | None = None
                with anyio.move_on_after(limit) as waiting:
                    line = await anext(lines, None)
                if waiting.cancelled_caught:
                    process.failure = stalled(limit)
                    if translator.has_open_tasks:
                        text = (
                            f"what ran in the background was stopped after {limit:g} s of silence"
                        )
                        yield describe(Warned(code="background_stopped"), text)
                if line is None:
                    return
                for event in translator.line(line):
                    yield event


class _Claude:
    """One process, and why it failed if it does."""

    def __init__(
        self, request: RuntimeRequest, opening: Opening, keepers: Keepers, grace: timedelta
    ) -> None:
        self._request = request
        self._opening = opening
        self._keepers = keepers
        self._grace = grace
        self.failure: ErrorEvent = MISSING_CLI

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """Starts it; every line it prints. It has ended, with all it started, when this has."""
        request, agent = self._request, self._request.agent
        program = shutil.which(PROGRAM, path=request.environment.get("PATH", os.defpath))
        if program is None:
            return
        scratch = request.environment.get("TMPDIR")
        with (
            tempfile.TemporaryDirectory(prefix="nightherd-", dir=scratch) as files,
            tempfile.TemporaryFile(dir=files) as first,
            _Ear() as stderr,
        ):
            write_files(agent, Path(files))
            first.write(user_message(self._opening.text))
            first.seek(0)
            turns_left = None if agent.max_turns is None else agent.max_turns - request.job_turns
            argv = arguments(
                agent, files=Path(files), resume=self._opening.resume, turns_left=turns_left
            )
            try:
                async with kept_process(
                    [program, *argv],
                    cwd=agent.working_directory,
                    env=environment_of(request),
                    execution=request.execution,
                    stdin=first.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=stderr.descriptor,
                    grace=self._grace,
                    keepers=self._keepers,
                ) as process:
                    stderr.is_given()
                    async with aclosing(_output(process)) as lines:
                        async for line in lines:
                            yield line
                    ending = await process.wait()
            except (OSError, ValueError) as error:
                self.failure = not_started(error, program, agent.working_directory)
                return
            if ending.killed_by is KilledBy.LEASE:
                # Not how the job ends: it is for the worker that takes it over to say that.
                raise FencedError("claude was stopped because the worker's lease had run out")
            self.failure = vanished(ending, stderr.text())


async def _output(process: KeptProcess) -> AsyncGenerator[bytes, None]:
    if process.stdout is not None:
        async with aclosing(process.stdout.lines()) as lines:
            async for line in lines:
                yield line


class _Ear:
    """Listens to standard error in a thread, and keeps the beginning and the end of what is said."""

    def __init__(self) -> None:
        self._heard = BoundedOutput()
        self._source, self.descriptor = os.pipe()
        self._is_given = False
        self._thread = threading.Thread(target=self._listen, name="claude-stderr", daemon=True)

    def is_given(self) -> None:
        """The process has its copy of the descriptor: from now on its end is the end."""
        if not self._is_given:
            self._is_given = True
            os.close(self.descriptor)

    def text(self) -> str:
        """All of it, once nobody can say more."""
        self._thread.join(LAST_WORDS_S)
        return self._heard.text()

    def __enter__(self) -> _Ear:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_given()
        self._thread.join(LAST_WORDS_S)

    def _listen(self) -> None:
        while chunk := os.read(self._source, 64 * 1024):
            self._heard.add(chunk)
        os.close(self._source)


def _refusal(request: RuntimeRequest) -> ErrorEvent | None:
    """Why the run cannot even begin."""
    agent = request.agent
    if not Path(agent.working_directory).is_dir():
        message = f"there is no directory {agent.working_directory} to work in"
        return ErrorEvent(message=message, code="working_directory")
    if agent.max_turns is not None and request.job_turns >= agent.max_turns:
        message = f"the job has taken its {agent.max_turns} turns"
        return ErrorEvent(message=message, code="max_turns")
    return None


def _is_lost_session(event: Event) -> bool:
    return isinstance(event, ErrorEvent) and event.code == "session_not_found"
