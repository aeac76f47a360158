"""One command as a process under a keeper: how it is called, started, heard and ended."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta

import anyio

from nightherd.errors import FencedError
from nightherd.model.jobs.repeat import interrupted_call
from nightherd.model.jobs.retry import can_pass
from nightherd.model.journal.event import ToolResultEvent
from nightherd.model.workflows.command import CommandSpec
from nightherd.model.workflows.definition import Language
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.command.output import CommandOutput
from nightherd.runtimes.command.past import NOT_STARTED
from nightherd.runtimes.keeper.attendant import Ending, KilledBy, returncode_text
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.launch import Source
from nightherd.runtimes.keeper.process import KeptProcess, kept_process

ARGUMENTS: Mapping[Language, tuple[str, ...]] = {
    Language.BASH: ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", "--"),
    Language.PYTHON: ("python3", "-c"),
}
"""What stands before the text of a command. The programs are those on its PATH."""
TOOLS: Mapping[Language, str] = {Language.BASH: "Bash", Language.PYTHON: "Python"}
"""What the call is named on record."""
EXIT_CODE = "exit_code"
"""In `extra` of the result of a command that came to its end."""
BEHIND_S = 2.0
"""How long what the command left in the background may still print; then it is stopped."""
REST_S = 10.0
"""How long the rest of the output may take to be read once every process that could print has ended."""


class CommandProcess:
    """Runs a command once. `result` says how that ended, or how far it is known when the run is stopped."""

    def __init__(
        self,
        request: RuntimeRequest,
        spec: CommandSpec,
        output: CommandOutput,
        keepers: Keepers,
        grace: timedelta,
    ) -> None:
        self._request = request
        self._spec = spec
        self._output = output
        self._keepers = keepers
        self._grace = grace
        self._has_started = False

    async def run(self, call: str) -> ToolResultEvent:
        """Run the command to its end; return the result of `call`. Cancelling ends everything that it started.

        `FencedError` when the worker's lease ran out.
        """
        spec, request = self._spec, self._request
        try:
            async with kept_process(
                [*ARGUMENTS[spec.language], spec.command],
                cwd=request.agent.working_directory,
                env={**request.environment, **spec.env},
                execution=request.execution,
                marks={"NIGHTHERD_WORKER_PID": str(os.getpid())},
                stdin=subprocess.DEVNULL if spec.stdin is None else subprocess.PIPE,
                grace=self._grace,
                keepers=self._keepers,
                may_outlive=True,  # until its output is read: then it is stopped
                # A command that found the end of half its input would take it for all of it.
                holds_input=spec.stdin is not None,
            ) as process:
                self._has_started = True
                try:
                    ending = await self._attend(process)
                except anyio.get_cancelled_exc_class():
                    await self._read_rest(process)
                    raise
        except (OSError, ValueError) as error:
            if self._has_started:
                raise
            return _not_started(call, error, spec)
        result = self._output.put_into(self._ended(call, ending))
        return await self._output.stored(result)

    def stopped(self, call: str) -> ToolResultEvent:
        """Return the result of a call whose run is stopped: with what was printed so far."""
        if not self._has_started:
            return not_started(call)
        error = interrupted_call("the run was stopped")
        return self._output.put_into(_failed(call, error))

    def _ended(self, call: str, ending: Ending) -> ToolResultEvent:
        if ending.killed_by is KilledBy.LEASE:
            # No result: the call was cut off with its worker, and the next execution records that.
            raise FencedError("the command was stopped because the worker's lease had run out")
        code = ending.returncode
        if ending.killed_by is not KilledBy.NONE or code is None:
            is_stopped = ending.killed_by is KilledBy.STOP
            cause = "it was stopped" if is_stopped else "the process that guards it died"
            return _failed(call, interrupted_call(cause))
        exit_code = code if code >= 0 else 128 - code
        if exit_code == 0 or self._spec.is_condition:
            return ToolResultEvent(
                tool_use_id=call, success=True, index=0, end=True, extra={EXIT_CODE: exit_code}
            )
        last = self._output.last_lines()
        error = returncode_text(code) + (f": {last}" if last else "")
        return _failed(call, error, {EXIT_CODE: exit_code})

    async def _attend(self, process: KeptProcess) -> Ending:
        """Give the command its input and take its output; what it left in the background ends with it."""
        closed = anyio.Event()
        waiting = 2

        async def write() -> None:
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # a command need not read its input
                    await process.stdin.send((self._spec.stdin or "").encode(errors="replace"))
                process.end_input()

        async def read(source: Source | None, take: Callable[[bytes], object]) -> None:
            nonlocal waiting
            if source is not None:
                await source.drain(take)
            waiting -= 1
            if not waiting:
                closed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            tasks.start_soon(read, process.stdout, self._output.stdout.add)
            tasks.start_soon(read, process.stderr, self._output.stderr.add)
            ending = await process.wait()
            # A process behind it, as the `tee` of `> >(tee log)`, may still pass on what the command printed.
            with anyio.move_on_after(BEHIND_S):
                await closed.wait()
            await process.stop()
            with anyio.move_on_after(REST_S):
                await closed.wait()
            tasks.cancel_scope.cancel()
        return ending

    async def _read_rest(self, process: KeptProcess) -> None:
        """End the command, and take what it printed last: it says most about a command that is stopped."""
        await process.stop()
        with anyio.move_on_after(REST_S, shield=True):
            for source, stream in (
                (process.stdout, self._output.stdout),
                (process.stderr, self._output.stderr),
            ):
                if source is not None:
                    await source.drain(stream.add)


def not_started(
    call: str, error: str = "the command was not started", **facts: object
) -> ToolResultEvent:
    """Return the result of a call that did nothing; `facts` say why, for the error that follows."""
    return _failed(call, error, {NOT_STARTED: facts})


def _failed(call: str, error: str, extra: dict[str, object] | None = None) -> ToolResultEvent:
    return ToolResultEvent(
        tool_use_id=call, success=False, error=error, index=0, end=True, extra=extra
    )


def _not_started(call: str, error: OSError | ValueError, spec: CommandSpec) -> ToolResultEvent:
    program = ARGUMENTS[spec.language][0]
    code, why = "start_failed", str(error)
    if isinstance(error, OSError):
        is_missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        if is_missing and error.filename == program:
            code, why = "missing_program", f"there is no {program} on the PATH"
        elif is_missing:
            code, why = "working_directory", f"there is no directory {error.filename}"
        elif error.errno == errno.E2BIG:
            code = "invalid_command"
            why = "its text or a value of env is too long; give long values by stdin"
    message = f"the command could not be started: {why}"
    return not_started(call, message, code=code, recoverable=can_pass(error))
