"""Bash: runs a command in the working directory, under a keeper of its own, and reports what it printed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import anyio
import msgspec

from nightherd.errors import FencedError, InvalidValueError
from nightherd.model.permissions.shell_command import LONGEST
from nightherd.model.units import format_duration, parse_duration
from nightherd.runtimes.keeper.attendant import EXECUTION_MARK, Ending, KilledBy, returncode_text
from nightherd.runtimes.keeper.place import FilesThere
from nightherd.runtimes.keeper.process import KeptProcess, finish, kept_process
from nightherd.runtimes.tools.output import WholeOutput
from nightherd.runtimes.tools.tool import Arguments, ToolContext, ToolOutcome, failed

DEFAULT_TIMEOUT = timedelta(minutes=2)
LONGEST_TIMEOUT = timedelta(minutes=10)
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""The shell was killed, or the last command in it was: by the system for lack of memory, or by hand."""


class Bash(msgspec.Struct, frozen=True):
    """`command`, optionally `timeout` (milliseconds, or a duration) and `description` (for readers).

    Standard output and error come back as one text in the order they were written; of a long one the
    beginning and the end, and all of it is stored. Success is exit code 0.
    A process left running in the background continues until the run ends, but can print nothing more.
    Nothing the command started outlives the worker (INV-KEEPER); a call that ends because the worker's
    lease ran out has no outcome and raises `FencedError`.
    """

    name: str = "Bash"
    starts_processes: bool = True
    is_read_only: bool = False

    async def run(self, input: Mapping[str, Any], context: ToolContext) -> ToolOutcome:
        """Run the command to its end, its timeout, or the cancelling of this call."""
        try:
            arguments = Arguments(self.name, input, ("command", "timeout", "description"))
            command = arguments.text("command")
            timeout = _timeout(input.get("timeout"))
        except InvalidValueError as error:
            return failed(str(error))
        size = len(command.encode(errors="replace"))
        if size >= LONGEST:
            return failed(
                f"the command is too long: {size:,} bytes, and a shell takes fewer than {LONGEST:,}; "
                "write it to a file and run that"
            )
        with WholeOutput(context) as output:
            try:
                argv = await _argv(command, context.keepers.place)
                async with _kept(argv, context) as process:
                    ending = await finish(process, output.add, timeout)
            except (OSError, ValueError) as error:
                return failed(f"the command could not be started: {error}")
            if ending is None:
                reason = f"stopped: it ran longer than {format_duration(timeout)}"
                return await output.stored(failed(reason, output.text()))
            return await output.stored(outcome_of(ending, output.text()))


BEST_SHELL = 'if [ -x /bin/bash ]; then exec /bin/bash -c "$1"; fi; exec /bin/sh -c "$1"'


async def _argv(command: str, place: FilesThere) -> list[str]:
    """The command for bash, or for sh where there is no bash."""
    if place.is_container:  # what is there is only known inside
        return ["/bin/sh", "-c", BEST_SHELL, "sh", command]
    shell = "/bin/bash" if await anyio.Path("/bin/bash").exists() else "/bin/sh"
    return [shell, "-c", command]


def _kept(argv: list[str], context: ToolContext) -> AbstractAsyncContextManager[KeptProcess]:
    return kept_process(
        argv,
        cwd=context.working_directory,
        env=context.environment,
        execution=context.marks.get(EXECUTION_MARK, ""),
        marks=context.marks,
        stderr=subprocess.STDOUT,
        grace=context.grace,
        may_outlive=True,
        keepers=context.keepers,
    )


def outcome_of(ending: Ending, text: str) -> ToolOutcome:
    """What a command that ended so, and printed `text`, came to."""
    match ending.killed_by:
        case KilledBy.LEASE:
            # No result: the call was cut off with its worker, and the next execution records that.
            raise FencedError("the command was stopped because the worker's lease had run out")
        case KilledBy.KEEPER_GONE:
            message = "stopped: the process that guards the command died"
            return failed(message, text, is_killed=True)
        case KilledBy.NONE | KilledBy.STOP | KilledBy.WORKER_GONE:
            code = ending.returncode
            if code == 0:
                return ToolOutcome(result=text)
            is_killed = ending.killed_by is KilledBy.NONE and code in KILLED
            return failed(returncode_text(code), text, is_killed=is_killed)


def _timeout(value: object) -> timedelta:
    match value:
        case None:
            return DEFAULT_TIMEOUT
        case str():
            timeout = parse_duration(value)
        case int() | float() if not isinstance(value, bool) and abs(value) < 1e12:
            timeout = timedelta(milliseconds=value)
        case _:
            raise InvalidValueError("Bash: 'timeout' must be milliseconds or a duration like 90s")
    if not timedelta(0) < timeout <= LONGEST_TIMEOUT:
        longest = format_duration(LONGEST_TIMEOUT)
        raise InvalidValueError(f"Bash: 'timeout' must be greater than 0 and at most {longest}")
    return timeout
