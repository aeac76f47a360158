"""Claude's directories of sessions in containers: retention removes those of sessions that are over, and no other."""

from __future__ import annotations

import fcntl
import gzip
import os
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.checkpoints.test_retention_applied import made
from nightherd.engine.checkpoints.retention import ApplyRetention, apply_retention
from nightherd.engine.sessions.cleanup import expire_sessions
from nightherd.engine.sessions.directories import KEPT_FOR, removable_directories
from nightherd.model.agents.agent import Agent
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.journal.event import ErrorEvent, describe
from nightherd.model.journal.system import Init
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.runtimes.container.session_files import SessionDirectoryFiles, make_directory
from nightherd.testing.runtime import ANSWER, PlayedRuntime

UUID = "0b9f3d3e-5b6c-4a53-9e9b-0f4c52c83c11"
OTHER = "1" * 8 + UUID[8:]
LATER = KEPT_FOR + timedelta(minutes=1)
PERSISTENT = replace(AGENT, session=SessionTerms(mode=SessionMode.PERSISTENT))


def directory_of(bench: Bench, state: Path, job_id: str) -> Path:
    """The directory that a job in a container has had."""
    session = bench.job(job_id).session_id  # type: ignore[arg-type]
    return make_directory(state / "containers", str(session), None)


def transcript(directory: Path, text: str = '{"type": "user"}\n', uuid: str = UUID) -> Path:
    path = directory / "projects" / "-work" / f"{uuid}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def due(bench: Bench, state: Path) -> list[str]:
    files = SessionDirectoryFiles(state)
    return list(removable_directories(bench.reader, files, bench.clock.now()))


def failing(agent: Agent = AGENT) -> Bench:
    return Bench(PlayedRuntime([ErrorEvent(message="it failed")]), agent=agent)


def test_directory_of_a_failed_job_goes_a_day_later(tmp_path: Path) -> None:
    bench = failing()
    directory = directory_of(bench, tmp_path, bench.run().id)

    assert due(bench, tmp_path) == []
    bench.clock.advance(LATER)
    assert due(bench, tmp_path) == [directory.parent.name]


def test_directory_of_a_cancelled_job_goes_too(tmp_path: Path) -> None:
    bench = Bench()
    job = bench.submit().job
    directory = directory_of(bench, tmp_path, job.id)
    bench.clock.advance(LATER)
    assert due(bench, tmp_path) == [], "the job waits"

    anyio.run(bench.store.apply, [CancelJob(job_id=job.id, at=bench.clock.now())])
    bench.clock.advance(LATER)

    assert due(bench, tmp_path) == [directory.parent.name]


def test_directory_of_a_shared_session_stays_until_that_has_expired(tmp_path: Path) -> None:
    bench = failing(PERSISTENT)
    directory = directory_of(bench, tmp_path, bench.run().id)
    bench.clock.advance(timedelta(days=3))
    assert due(bench, tmp_path) == [], "the next job continues it"

    assert anyio.run(expire_sessions, bench.context) == 1

    assert due(bench, tmp_path) == [directory.parent.name]


def test_directory_that_no_row_knows_stays(tmp_path: Path) -> None:
    bench = Bench()
    make_directory(tmp_path / "containers", "sess-unknown", None)
    bench.clock.advance(timedelta(days=300))

    assert due(bench, tmp_path) == []


@pytest.mark.parametrize("copied", [None, "", '{"type"'])
def test_transcript_is_copied_whole_before_its_directory_goes(
    tmp_path: Path, copied: str | None
) -> None:
    files = SessionDirectoryFiles(tmp_path)
    transcript(make_directory(tmp_path / "containers", "sess-1", None))
    if copied is not None:
        (tmp_path / "transcripts").mkdir()
        (tmp_path / "transcripts" / f"{UUID}.jsonl").write_text(copied)

    assert files.remove("sess-1", [UUID])

    assert list((tmp_path / "containers" / "sessions").iterdir()) == []
    (copy,) = (tmp_path / "transcripts").iterdir()
    assert gzip.decompress(copy.read_bytes()) == b'{"type": "user"}\n'
    assert files.names() == []


def test_copy_of_something_else_is_put_aside(tmp_path: Path) -> None:
    transcript(make_directory(tmp_path / "containers", "sess-1", None))
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / f"{UUID}.jsonl").write_text("other\n")

    assert SessionDirectoryFiles(tmp_path).remove("sess-1", [UUID])

    assert (tmp_path / "transcripts" / f"{UUID}.before-1.jsonl").read_text() == "other\n"


def test_directory_stays_while_another_process_writes_the_copy(tmp_path: Path) -> None:
    path = transcript(make_directory(tmp_path / "containers", "sess-1", None))
    (tmp_path / "transcripts").mkdir()
    with (tmp_path / "transcripts" / f"{UUID}.jsonl").open("w") as copy:
        fcntl.flock(copy, fcntl.LOCK_EX)

        assert not SessionDirectoryFiles(tmp_path).remove("sess-1", [UUID])

    assert path.exists()


def test_what_an_agent_wrote_there_is_neither_followed_nor_copied(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    directory = make_directory(tmp_path / "containers", "sess-1", None)
    place = transcript(directory, uuid=OTHER).parent
    (place / f"{UUID}.jsonl").symlink_to(secret)
    os.mkfifo(place / "pipe.jsonl")
    (directory / "up").symlink_to("/")

    assert SessionDirectoryFiles(tmp_path).remove("sess-1", [UUID])

    assert secret.read_text() == "of the host"
    assert not (tmp_path / "transcripts").exists()


def test_retention_removes_them_and_names_one_that_it_cannot_remove(tmp_path: Path) -> None:
    bench, room = made(tmp_path)
    state = tmp_path / "state"
    room = replace(room, session_directories=SessionDirectoryFiles(state))
    second = bench.run()
    bench.runtime = PlayedRuntime([describe(Init(runtime="cli", runtime_session_id=UUID)), *ANSWER])
    first = bench.run()
    kept = directory_of(bench, state, first.id)
    gone = directory_of(bench, state, second.id)
    transcript(kept)
    (state / "transcripts").touch()  # no copy can be made
    bench.clock.advance(LATER)

    applied = anyio.run(apply_retention, ApplyRetention(), room)

    assert applied.session_directories == 1
    assert not gone.exists()
    assert "Not a directory" in applied.failures[kept.parent.name]
