"""A hook's command: under a keeper of its own, the context on its standard input, its time limited.

The command and everything it started are gone when it returns, whatever they do about signals.
"""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from datetime import timedelta

import anyio

from nightherd.errors import FencedError
from nightherd.model.duration import format_duration
from nightherd.model.hook import ShellCommand
from nightherd.ports import HookCall, HookResult
from nightherd.runtimes.keeper.attendant import Ending, KilledBy
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import KeptProcess, kept_process
from nightherd.runtimes.tools.output import BoundedOutput

OUTPUT_LIMIT = 8 * 1024
"""Bytes of its output that are kept."""
DRAIN_S = 0.5
GRACE = timedelta(seconds=2)
SHELL = "/bin/sh"


async def run_command(command: ShellCommand, call: HookCall, keepers: Keepers) -> HookResult:
    """Run the command to its end or its timeout. Success is exit code 0."""
    output = BoundedOutput(OUTPUT_LIMIT)
    marks = {"NIGHTHERD_JOB": call.job_id, "NIGHTHERD_HOOK_EVENT": call.event}
    try:
        async with kept_process(
            [SHELL, "-c", command.command],
            cwd=call.working_directory,
            env=call.environment,
            execution=call.execution,
            marks=marks,
            stdin=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            grace=GRACE,
            keepers=keepers,
        ) as process:
            ending = await _finish(process, call.body, output, command.timeout)
    except (OSError, ValueError) as error:
        return HookResult(success=False, error=f"the command could not be started: {error}")
    text = output.text()
    if ending is None:
        limit = format_duration(command.timeout)
        return HookResult(success=False, output=text, error=f"it ran longer than {limit}")
    if ending.killed_by is KilledBy.LEASE:
        raise FencedError("the hook was stopped because the worker's lease had run out")
    if ending.returncode == 0 and ending.killed_by is KilledBy.NONE:
        return HookResult(success=True, output=text)
    return HookResult(success=False, output=text, error=_explain(ending))


async def _finish(
    process: KeptProcess, body: bytes, output: BoundedOutput, allowed: timedelta
) -> Ending | None:
    """How the command ended, or None when it was stopped because its time was up."""
    ending: Ending | None = None
    closed = anyio.Event()

    async def write() -> None:
        if process.stdin is not None:
            with suppress(BrokenPipeError):  # a command need not read what it is told
                await process.stdin.send(body)
            process.stdin.close()

    async def read() -> None:
        if process.stdout is not None:
            await process.stdout.drain(output.add)
        closed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        tasks.start_soon(read)
        with anyio.move_on_after(allowed.total_seconds()):
            ending = await process.wait()
        await process.stop()
        with anyio.move_on_after(DRAIN_S):
            await closed.wait()
        tasks.cancel_scope.cancel()
    return ending


def _explain(ending: Ending) -> str:
    code = ending.returncode
    if ending.killed_by is KilledBy.KEEPER_GONE or code is None:
        return "the process that guards the command died"
    if code < 0:
        known = {one.value: one.name for one in signal.Signals}
        return f"ended by {known.get(-code, f'signal {-code}')}"
    return f"exit code {code}"
