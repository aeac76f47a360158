"""A mirror killed at any of its system calls is made right by the next one, and nothing else is touched."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import anyio
import pytest

from crash.mirror_trials import CATCH_UP, follower_in
from nightherd.files.atomic import TEMP_NAME
from nightherd.journal.files import JournalFiles
from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.changes import RecordRuntimeSession
from nightherd.model.journal.event import (
    AssistantEvent,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import End, ExecutionStarted, Init, SystemSubtype
from nightherd.model.sessions.session import SessionMode
from nightherd.state.directory import init_state_directory
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

JOBS = 6
KILLS = 100
"""At least: once before and once after every call that a mirror makes when it catches up."""


def write_record(journals: JournalFiles, number: int) -> None:
    """What happened in a job, with an answer long enough to be cut for display."""
    job = job_id(number)
    journal = journals.open(job, epoch=1, execution=generate_execution_id(job, 1))
    for event in (
        describe(ExecutionStarted(worker="worker-00000001")),
        SystemEvent(subtype=SystemSubtype.USER_INPUT, content="Graze.", message=1, end=True),
        describe(Init(runtime="scripted", runtime_session_id=f"runtime-{number}")),
        AssistantEvent(content="chewing " * 2_000, message=2, index=0),
        ToolUseEvent(tool_name="Bash", tool_use_id="t1", input={}, message=2, end=True),
        ToolResultEvent(tool_use_id="t1", result="grass", success=True, message=3, end=True),
        AssistantEvent(content="Grazed.", message=4, end=True, turn=1),
        describe(End(status="completed", exit_reason="success")),
    ):
        journal.append(event)
    journal.close()


async def fill(root: Path) -> None:
    """Several jobs: some settled, the last still running."""
    store = SqliteStore(root, FakeClock())
    journals = JournalFiles(root / "jobs", root / "blobs", clock=FakeClock())
    for number in range(1, JOBS + 1):
        await store.apply([submit(number, mode=SessionMode.PERSISTENT), start(number)])
        name = f"runtime-{number}"
        named = RecordRuntimeSession(
            job_id=job_id(number), epoch=1, runtime_session_id=name, at=BEGINNING
        )
        await store.apply([named])
        write_record(journals, number)
        if number < JOBS:
            await store.apply([settle(number)])
    await store.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = init_state_directory(tmp_path_factory.mktemp("fleet") / ".nightherd").root
    anyio.run(fill, root)
    return root


def files_in(root: Path) -> dict[str, bytes]:
    """Every file, but locks, the mirror's own memory, the database's helpers, and temporary ones left behind."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
        and not path.name.endswith((".lock", "-shm", "-wal"))
        and not TEMP_NAME.fullmatch(path.name)
        and path.name != "mirror.json"
    }


def test_killed_mirror_is_made_right_by_the_next(
    filled: Path, fork_server: ForkServer, quick_path: Path
) -> None:
    whole = shutil.copytree(filled, quick_path / "whole")
    points = fork_server.run(CATCH_UP, {"root": str(whole), "nth": 0})
    assert (points.status, points.error) == (0, "")
    expected, before = files_in(whole), files_in(filled)
    assert len(points.said) >= KILLS, len(points.said)
    assert expected.keys() > before.keys()

    for nth in range(1, len(points.said) + 1):
        root = shutil.copytree(filled, quick_path / str(nth))
        ended = fork_server.run(CATCH_UP, {"root": str(root), "nth": nth})
        assert ended.status == -signal.SIGKILL, (nth, ended)
        standing = follower_in(root).catch_up()

        assert (standing.is_ours, standing.unwritten) == (True, {}), nth
        assert files_in(root) == expected, (nth, points.said[nth - 1])
        shutil.rmtree(root)
