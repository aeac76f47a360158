"""Bash: runs a command in the working directory, in a session of its own, and reports what it printed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import anyio
from anyio.abc import Process

from nightherd.errors import InvalidValueError
from nightherd.model.duration import format_duration, parse_duration
from nightherd.runtimes.tools.arguments import Arguments
from nightherd.runtimes.tools.output import BoundedOutput
from nightherd.runtimes.tools.processes import stop_processes
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome, failed

DEFAULT_TIMEOUT = timedelta(minutes=2)
LONGEST_TIMEOUT = timedelta(minutes=10)
DRAIN_S = 0.5
"""How long output may still come once the shell has ended; a process it left behind may hold the pipe open."""
CHUNK_BYTES = 64 * 1024
CALL_MARK = "NIGHTHERD_TOOL_USE"
"""Tells one call's processes from those that earlier calls of the run left behind."""


@dataclass(frozen=True, slots=True)
class Bash:
    """`command`, optionally `timeout` (milliseconds, or a duration) and `description` (for readers).

    Standard output and error come back as one text in the order they were written. Success is exit code 0.
    A process left running in the background goes on until the run ends, but can print nothing more.
    """

    name: str = "Bash"
    starts_processes: bool = True

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Run the command to its end, its timeout, or the cancelling of this call."""
        try:
            arguments = Arguments(self.name, input, ("command", "timeout", "description"))
            command = arguments.text("command")
            timeout = _timeout(input.get("timeout"))
        except InvalidValueError as error:
            return failed(str(error))
        marks = {**context.marks, CALL_MARK: context.tool_use_id}
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        try:
            try:
                process = await _start(command, context, marks, write_end)
            except (OSError, ValueError) as error:
                return failed(f"the command could not be started: {error}")
            finally:
                os.close(write_end)
            return await _Call(process, read_end, marks, context.grace).finish(timeout)
        finally:
            os.close(read_end)


async def _start(
    command: str, context: ToolContext, marks: Mapping[str, str], output: int
) -> Process:
    shell = "/bin/bash" if await anyio.Path("/bin/bash").exists() else "/bin/sh"
    # Not cancelled half-way: a process that exists but is not known here could not be stopped.
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(
            [shell, "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=context.working_directory,
            env={**context.environment, **marks},
            start_new_session=True,
        )
    return process  # noqa: RET504 a scope could swallow what is returned inside it


class _Call:
    """One command under way."""

    def __init__(
        self, process: Process, pipe: int, marks: Mapping[str, str], grace: timedelta
    ) -> None:
        self._process = process
        self._pipe = pipe
        self._marks = marks
        self._grace_s = grace.total_seconds()
        self._output = BoundedOutput()
        self._closed = anyio.Event()

    async def finish(self, allowed: timedelta) -> ToolOutcome:
        """The outcome; whatever else ends this, nothing of the call is running afterwards."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read)
                with anyio.move_on_after(allowed.total_seconds()) as limit:
                    await self._process.wait()
                if limit.cancelled_caught:
                    await self._stop()
                with anyio.move_on_after(DRAIN_S):
                    await self._closed.wait()
                tasks.cancel_scope.cancel()
        except BaseException:
            await self._stop()
            raise
        text = self._output.text()
        if limit.cancelled_caught:
            return failed(f"stopped: it ran longer than {format_duration(allowed)}", text)
        code = self._process.returncode
        return ToolOutcome(result=text) if code == 0 else failed(_explain(code), text)

    async def _read(self) -> None:
        while True:
            await anyio.wait_readable(self._pipe)
            chunk = os.read(self._pipe, CHUNK_BYTES)
            if not chunk:
                self._closed.set()
                return
            self._output.add(chunk)

    async def _stop(self) -> None:
        # The shell's pid names its group only while the shell has not been reaped.
        root = self._process.pid if self._process.returncode is None else None
        await stop_processes(self._marks, root=root, grace_s=self._grace_s)
        with anyio.CancelScope(shield=True):
            await self._process.wait()


def _timeout(value: object) -> timedelta:
    match value:
        case None:
            return DEFAULT_TIMEOUT
        case str():
            timeout = parse_duration(value)
        case int() | float() if not isinstance(value, bool) and abs(value) < 1e12:
            timeout = timedelta(milliseconds=value)
        case _:
            raise InvalidValueError("Bash: 'timeout' has to be milliseconds or a duration like 90s")
    if not timedelta(0) < timeout <= LONGEST_TIMEOUT:
        longest = format_duration(LONGEST_TIMEOUT)
        raise InvalidValueError(f"Bash: 'timeout' has to be more than 0 and at most {longest}")
    return timeout


def _explain(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    return f"exit code {code}"
