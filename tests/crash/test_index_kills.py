"""An index killed at any moment has lost nothing and has nothing twice once the next one has caught up."""

from __future__ import annotations

import shutil
import signal
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from crash.index_trials import CATCH_UP, indexer_in
from nightherd.index.file import open_index_for_reading
from nightherd.index.indexer import EVENTS
from nightherd.journal.files import JournalFiles
from nightherd.model.ids import generate_execution_id
from nightherd.model.index.fold import extend
from nightherd.model.index.outline import EMPTY, decode_outline
from nightherd.model.journal.event import AssistantEvent, SystemEvent, describe
from nightherd.model.journal.system import ExecutionStarted, SystemSubtype
from nightherd.model.usage import Usage
from nightherd.state.directory import init_state_directory
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.state_values import GRAZED, job_id, settle, start, submit
from soak import often

JOBS = 2
ANSWERS = 3 * EVENTS + 100
POINTS = ("index.begin", "index.outline_written", "index.before_commit", "index.after_commit")
KILLS = 30
"""At least: at each point of each transaction."""
USED = Usage(output_tokens=1)
FROM_OUTSIDE = often(6, soak=300)


async def fill(root: Path) -> None:
    """Several jobs, each longer than three steps; the last still running."""
    store = SqliteStore(root, FakeClock())
    journals = JournalFiles(root / "jobs", root / "blobs", clock=FakeClock())
    for number in range(1, JOBS + 1):
        await store.apply([submit(number), start(number)])
        job = job_id(number)
        journal = journals.open(job, epoch=1, execution=generate_execution_id(job, 1))
        journal.append(describe(ExecutionStarted(worker="worker-00000001")))
        journal.append(SystemEvent(subtype=SystemSubtype.USER_INPUT, content="Graze."))
        for message in range(ANSWERS):
            answer = AssistantEvent(content=f"moo{message}", message=message, usage=USED, end=True)
            journal.append(answer)
        journal.close()
        if number < JOBS:
            await store.apply([settle(number)])
    await store.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = init_state_directory(tmp_path_factory.mktemp("fleet") / ".nightherd").root
    anyio.run(fill, root)
    return root


def assert_whole(root: Path) -> None:
    """Every event is in the outline of its job, can be found, and is counted, once."""
    journals = JournalFiles(root / "jobs", root / "blobs", clock=FakeClock())
    database = open_index_for_reading(root)
    assert database is not None
    with closing(database):
        for number in range(1, JOBS + 1):
            ((place, data),) = database.execute(
                "SELECT number, outline FROM jobs WHERE job_id = ?", (job_id(number),)
            )
            assert decode_outline(data) == extend(EMPTY, journals.read(job_id(number)))
            found = database.execute("SELECT seq FROM texts WHERE job = ? ORDER BY seq", (place,))
            assert [seq for (seq,) in found] == list(range(2, ANSWERS + 3))
            used = database.execute("SELECT sum(output_tokens) FROM costs WHERE job = ?", (place,))
            expected = GRAZED.usage.output_tokens if number < JOBS else ANSWERS
            assert used == [(expected,)]
        for word in ("moo0", f"moo{EVENTS}", f"moo{ANSWERS - 1}"):
            hits = database.execute("SELECT rowid FROM search WHERE search MATCH ?", (word,))
            assert len(hits) == JOBS
        assert database.execute("SELECT count(*) FROM search") == [(JOBS * (ANSWERS + 1),)]
        assert database.execute("PRAGMA integrity_check") == [("ok",)]


def finish(root: Path) -> None:
    indexer = indexer_in(root)
    indexer.catch_up()
    indexer.close()
    assert indexer.notices == []


def test_an_indexer_killed_at_any_point_is_continued_by_the_next(
    filled: Path, fork_server: ForkServer, quick_path: Path
) -> None:
    whole = shutil.copytree(filled, quick_path / "whole")
    points = fork_server.run(CATCH_UP, {"root": str(whole), "nth": 0})
    assert (points.status, points.error) == (0, "")
    assert set(points.said) == set(POINTS)
    assert len(points.said) >= KILLS
    assert_whole(whole)

    for nth in range(1, len(points.said) + 1):
        root = shutil.copytree(filled, quick_path / str(nth))
        ended = fork_server.run(CATCH_UP, {"root": str(root), "nth": nth})
        assert ended.status == -signal.SIGKILL, (nth, ended)
        finish(root)
        assert_whole(root)
        shutil.rmtree(root)


def test_an_indexer_killed_from_outside_is_continued_by_the_next(
    filled: Path, fork_server: ForkServer, quick_path: Path
) -> None:
    for trial_number in range(FROM_OUTSIDE):
        root = shutil.copytree(filled, quick_path / str(trial_number))
        (trial,) = fork_server.begin(CATCH_UP, {"root": str(root), "nth": 0})
        while len(trial.said()) <= trial_number:
            pass
        trial.send(signal.SIGKILL)
        trial.wait()
        finish(root)
        assert_whole(root)
        shutil.rmtree(root)


def test_indexers_that_work_at_once_while_one_is_killed_count_nothing_twice(
    filled: Path, fork_server: ForkServer, quick_path: Path
) -> None:
    root = shutil.copytree(filled, quick_path / "crowd")
    orders = [{"root": str(root), "nth": nth} for nth in (0, 5, 0)]
    ended = fork_server.run_all(CATCH_UP, orders)
    assert [one.status for one in ended] == [0, -signal.SIGKILL, 0], ended
    finish(root)
    assert_whole(root)
