"""Ending the containers of executions that lost their worker. Their process 1 does that too, when its lease has run out."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
from anyio import to_thread

from nightherd.decoding import decode_json
from nightherd.errors import ContainerEngineError, NightherdError
from nightherd.model.ids import ExecutionId
from nightherd.runtimes.container.engine import Engine
from nightherd.runtimes.container.place import ContainerGoneError, connect

RECORD = "container.json"
CALL_S = 20.0
"""How long the engine may take for each: jobs wait for it, and process 1 ends by itself when the lease has run out."""


class ContainerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Which container a directory belongs to, and which execution has it now."""

    name: str
    """What the engine knows it by."""
    socket: str
    """Where that engine listens."""
    execution: str
    """The last that used it."""


def write_record(folder: Path, record: ContainerRecord) -> None:
    """Put it on record, before the container exists or is used again."""
    made = folder / f".{RECORD}"
    made.write_bytes(msgspec.json.encode(record))
    made.replace(folder / RECORD)


def read_records(root: Path) -> Iterator[tuple[Path, ContainerRecord]]:
    """The containers that have a directory below `root`."""
    for path in sorted(root.glob(f"*/{RECORD}")):
        try:
            yield path.parent, decode_json(path.read_bytes(), ContainerRecord)
        except (OSError, msgspec.DecodeError):
            continue


def remove_folders(root: Path, socket: str, containers: Collection[str], oldest_s: float) -> None:
    """Remove directories below `root` whose container is none of those that the engine at `socket` has.

    One that was put on record less than `oldest_s` before the last may still get its container.
    """
    newest, left = 0.0, list[tuple[Path, float]]()
    for folder, record in read_records(root):
        with suppress(OSError):
            changed = (folder / RECORD).stat().st_mtime
            newest = max(newest, changed)
            if record.socket == socket and record.name not in containers:
                left.append((folder, changed))
    for folder, changed in left:
        if newest - changed > oldest_s:
            shutil.rmtree(folder, ignore_errors=True)


async def end_containers(
    root: Path, executions: Collection[ExecutionId]
) -> Mapping[ExecutionId, str]:
    """Remove the containers of these executions; those that may still run, and why."""
    left: dict[ExecutionId, str] = {}
    silent: dict[str, ContainerEngineError] = {}
    """Engines that cannot be reached, by socket: each holds up a rescue once, however many containers it has."""
    for folder, record in await to_thread.run_sync(lambda: list(read_records(root))):
        execution = ExecutionId(record.execution)
        if execution not in executions:
            continue
        try:
            if record.socket in silent:
                raise silent[record.socket]
            async with Engine(record.socket, call_s=CALL_S) as engine:
                await engine.remove(record.name, force=True)
        except NightherdError as error:
            if isinstance(error, ContainerEngineError):
                silent[record.socket] = error
            if await to_thread.run_sync(_answers, folder / "run"):
                left[execution] = f"container {record.name} cannot be ended: {error.message}"
            continue
        await to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))
    return left


def _answers(directory: Path) -> bool:
    """Whether process 1 of the container is there; without it nothing runs inside."""
    try:
        connect(directory).close()
    except ContainerGoneError:
        return False
    return True
