"""A hook's command: under a keeper of its own, the context on its standard input, its time limited.

The command and everything it started are gone when it returns, whatever they do about signals.
"""

from __future__ import annotations

import signal
import subprocess
from datetime import timedelta

from nightherd.errors import FencedError
from nightherd.model.duration import format_duration
from nightherd.model.hook import ShellCommand
from nightherd.ports import HookCall, HookResult
from nightherd.runtimes.keeper.attendant import Ending, KilledBy
from nightherd.runtimes.keeper.finish import finish
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import kept_process
from nightherd.runtimes.tools.output import BoundedOutput

OUTPUT_LIMIT = 8 * 1024
"""Bytes of its output that are kept."""
GRACE = timedelta(seconds=2)
SHELL = "/bin/sh"


async def run_command(command: ShellCommand, call: HookCall, keepers: Keepers) -> HookResult:
    """Run the command to its end or its timeout. Success is exit code 0."""
    output = BoundedOutput(OUTPUT_LIMIT, call.secrets)
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
            ending = await finish(
                process, output.add, command.timeout, body=call.body, is_alone=True
            )
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


def _explain(ending: Ending) -> str:
    code = ending.returncode
    if ending.killed_by is KilledBy.KEEPER_GONE or code is None:
        return "the process that guards the command died"
    if code < 0:
        known = {one.value: one.name for one in signal.Signals}
        return f"ended by {known.get(-code, f'signal {-code}')}"
    return f"exit code {code}"
