"""Programs of ours that need nothing but an interpreter, run where the agent's commands run."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio

from nightherd.runtimes.keeper.attendant import EXECUTION_MARK, Ending
from nightherd.runtimes.keeper.process import KeptProcess, kept_process
from nightherd.runtimes.tools.bash import outcome_of
from nightherd.runtimes.tools.output import BoundedOutput
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome, failed

ANSWER_LIMIT_BYTES = 1024 * 1024
"""An answer with the most that is read of a file is less than half as long."""
ERROR_LIMIT_BYTES = 4 * 1024
TIME_LIMIT = timedelta(minutes=2)
PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where an interpreter is found that is given by its name; images of Python have it in the first."""


@asynccontextmanager
async def started(
    program: str, request: Mapping[str, Any], context: ToolContext
) -> AsyncIterator[KeptProcess]:
    """The program, started with `request` as its standard input; `OSError` or `ValueError` when it cannot be."""
    place = context.keepers.place
    with tempfile.TemporaryFile() as stdin:
        stdin.write(json.dumps(request).encode())
        stdin.seek(0)
        async with kept_process(
            [place.python, "-I", "-S", f"{place.programs}/{program}"],
            cwd=context.working_directory,
            env={"PATH": PATH},
            execution=context.marks.get(EXECUTION_MARK, ""),
            marks=context.marks,
            stdin=stdin.fileno(),
            stderr=subprocess.STDOUT,
            grace=context.grace,
            keepers=context.keepers,
        ) as process:
            yield process


class ProgramFailedError(Exception):
    """The program gave no answer; `outcome` is that of the call it ran for."""

    def __init__(self, outcome: ToolOutcome) -> None:
        super().__init__(outcome.error)
        self.outcome = outcome


async def run_program(program: str, request: Mapping[str, Any], context: ToolContext) -> Any:
    """What the program answers, which may be any JSON value; `ProgramFailedError` when there is no answer."""
    printed = bytearray()
    output = BoundedOutput(ERROR_LIMIT_BYTES, context.secrets)

    def take(chunk: bytes) -> None:
        output.add(chunk)
        printed.extend(chunk[: ANSWER_LIMIT_BYTES + 1 - len(printed)])

    ending: Ending | None = None
    try:
        async with started(program, request, context) as process:
            with anyio.move_on_after(TIME_LIMIT.total_seconds()):
                if process.stdout is not None:
                    await process.stdout.drain(take)
                ending = await process.wait()
    except (OSError, ValueError) as error:
        raise ProgramFailedError(failed(f"{program} could not be started: {error}")) from error
    if ending is None:
        raise ProgramFailedError(failed("stopped: it took too long"))
    outcome = outcome_of(ending, "")
    if not outcome.success:
        reason = f"{program}: {output.text().strip() or outcome.error}"
        raise ProgramFailedError(failed(reason, is_killed=outcome.is_killed))
    try:
        if len(printed) > ANSWER_LIMIT_BYTES:
            raise ValueError("it is too long")
        return json.loads(printed)
    except (ValueError, RecursionError) as error:
        reason = f"{program} gave an answer that cannot be read: {error}"
        raise ProgramFailedError(failed(reason)) from error
