"""The doctor of this fleet in a process of its own: it reads much, and nothing it does delays or endangers the daemon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import anyio
import msgspec
from anyio.abc import Process

from nightherd.decoding import decode_json
from nightherd.errors import StateError
from nightherd.views.health.doctor import DoctorDocument

FOUND = (0, 1)
"""Exit codes of a doctor that examined everything: without a problem, and with one."""
SHOWN = 500
"""Characters of what it says when it fails."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What the doctor found, and when."""

    as_of: datetime
    data: DoctorDocument


async def run_doctor(
    fleet_file: Path, state_dir: Path, environ: Mapping[str, str], *, is_deep: bool
) -> Diagnosis:
    """What the doctor finds now; `StateError` when it fails. It repairs nothing. Cancelled, it is killed."""
    # -P: a file that an agent puts into a directory is never taken for a module.
    command = [sys.executable, "-P", "-m", "nightherd", "--config", str(fleet_file)]
    command += ["--state-dir", str(state_dir), "doctor", "--json", *(["--verify"] * is_deep)]
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        cwd=state_dir,
        env=dict(environ),
        start_new_session=True,
    )
    output: dict[str, bytes] = {}

    async def read(name: str) -> None:
        stream = process.stdout if name == "stdout" else process.stderr
        assert stream is not None  # noqa: S101 (both are pipes)
        output[name] = b"".join([chunk async for chunk in stream])

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, "stdout")
            tasks.start_soon(read, "stderr")
            await process.wait()
    finally:
        await _end(process)
    why = f"the doctor failed: {_last_words(output['stderr'], process.returncode)}"
    if process.returncode not in FOUND:
        raise StateError(why)
    try:
        return decode_json(output["stdout"], Diagnosis)
    except msgspec.MsgspecError as error:
        raise StateError(why) from error


async def _end(process: Process) -> None:
    """Kill it with all it started, if it has not ended."""
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await process.aclose()


def _last_words(said: bytes, code: int | None) -> str:
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:SHOWN] if lines else f"it ended with exit code {code}"
