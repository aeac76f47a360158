"""Retention carried out on real files: archived first, tombstones left, done again after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from engine.limits.resuming import resume
from nightherd.config.persistence import load_persistence
from nightherd.engine.checkpoints.retention import RetentionContext, apply_plan, plans
from nightherd.engine.operations.fork import AtMessage
from nightherd.engine.operations.requests import Fork
from nightherd.engine.operations.sessions import fork
from nightherd.errors import NotFoundError, RefusedError
from nightherd.mirror.threads import ThreadArchive, ThreadStateFiles
from nightherd.model.agents.script import Say, compile_script
from nightherd.model.change import Refused
from nightherd.model.checkpoints.checkpoint import Checkpoint, RemoveCheckpoints
from nightherd.model.checkpoints.persistence import OnCompletion, Persistence, Retention
from nightherd.model.checkpoints.retention import JobPlan, Needed, Reason
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.limits.limits import Limits
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.views.jobs.checkpoints import (
    TakenAway,
    find_checkpoint,
    list_bookmarks,
    taken_away,
    thread_state,
)


def made(
    tmp_path: Path, *, turns: int = 9, retention: Retention | None = None
) -> tuple[Bench, RetentionContext]:
    """A bench whose jobs say three things, and the storeroom beside it."""
    agent = replace(
        AGENT,
        script=compile_script([Say("one"), Say("two"), Say("three")]),
        limits=Limits(turns=turns),
        working_directory=str(tmp_path),
    )
    bench = Bench(ScriptedRuntime(), agent=agent)  # type: ignore[arg-type]  # any runtime does
    persistence: Persistence = load_persistence(tmp_path / "state")
    if retention is not None:
        persistence = replace(persistence, retention=retention)
    files = ThreadStateFiles(tmp_path / "state", persistence, pause=lambda seconds: None)
    bench.context = replace(bench.context, persistence=persistence, threads=files)
    room = RetentionContext(
        state=bench.store,
        reader=bench.reader,
        journals=bench.context.journals,
        clock=bench.clock,
        persistence=persistence,
        archive=ThreadArchive(tmp_path / "state", files),
    )
    return bench, room


def all_plans(room: RetentionContext) -> list[JobPlan]:
    return list(plans(room.reader, room.journals, room.persistence, room.clock.now()))


def bookmarks(bench: Bench, job: Job) -> list[Checkpoint]:
    return list_bookmarks(bench.reader, bench.context.journals, job.id)


def carry_out(room: RetentionContext) -> None:
    for one in all_plans(room):
        anyio.run(apply_plan, one, room)


def folder(tmp_path: Path, job: Job) -> Path:
    return tmp_path / "state" / "threads" / job.id


def test_a_job_that_is_over_is_archived_and_its_bookmarks_go(tmp_path: Path) -> None:
    bench, room = made(tmp_path)
    job = bench.run()
    before = bookmarks(bench, job)
    assert (folder(tmp_path, job) / "state.json").exists()

    carry_out(room)

    archive = folder(tmp_path, job) / "archive"
    lines = (archive / "checkpoints.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [one.number for one in before]
    assert json.loads((archive / "state.json").read_text())["status"] == "completed"
    assert not (folder(tmp_path, job) / "state.json").exists()
    assert bookmarks(bench, job) == []
    assert all_plans(room) == []
    assert bench.journal(job.id), "the record itself stays"


def test_killed_between_archive_and_rows_it_is_done_again_and_nothing_is_doubled(
    tmp_path: Path,
) -> None:
    bench, room = made(tmp_path)
    job = bench.run()
    (found,) = all_plans(room)

    class Gone(Exception):
        """The process is killed."""

    class Dying:
        async def apply(self, changes: object) -> object:
            raise Gone

    with pytest.raises(Gone):
        anyio.run(apply_plan, found, replace(room, state=Dying()))
    assert bookmarks(bench, job)

    carry_out(room)

    lines = (folder(tmp_path, job) / "archive" / "checkpoints.jsonl").read_text().splitlines()
    assert len(lines) == len(set(lines)) == len(found.numbers)
    assert (folder(tmp_path, job) / "archive" / "state.json").exists()


@pytest.mark.parametrize("action", [OnCompletion.ARCHIVE, OnCompletion.DELETE])
def test_killed_before_the_document_went_it_goes_the_next_time(
    tmp_path: Path, action: OnCompletion
) -> None:
    bench, room = made(tmp_path, retention=Retention(action=action))
    job = bench.run()
    (found,) = all_plans(room)

    class Gone(Exception):
        """The process is killed."""

    class Dying(ThreadArchive):
        def delete(self, job_id: str) -> None:
            raise Gone

    dying = Dying(tmp_path / "state", bench.context.threads)  # type: ignore[arg-type]  # the bench has it
    with pytest.raises(Gone):
        anyio.run(apply_plan, found, replace(room, archive=dying))

    carry_out(room)

    assert not (folder(tmp_path, job) / "state.json").exists()
    assert bookmarks(bench, job) == []


def test_deleting_leaves_no_document_and_no_archive(tmp_path: Path) -> None:
    bench, room = made(tmp_path, retention=Retention(action=OnCompletion.DELETE))
    job = bench.run()

    carry_out(room)

    assert list(folder(tmp_path, job).iterdir()) == []
    assert bookmarks(bench, job) == []


def test_of_a_kept_job_the_first_go_and_the_last_stay(tmp_path: Path) -> None:
    kept = Retention(max_checkpoints=2, action=OnCompletion.KEEP)
    bench, room = made(tmp_path, retention=kept)
    job = bench.run()
    before = [one.number for one in bookmarks(bench, job)]
    assert len(before) > 2

    carry_out(room)

    found = bookmarks(bench, job)
    assert [one.number for one in found] == before[-2:]
    assert [one.header for one in found] == [{"limits": {"turns": 9}}] * 2
    assert all_plans(room) == []

    again = replace(room.persistence, retention=replace(kept, max_checkpoints=1))
    carry_out(replace(room, persistence=again))
    assert [one.number for one in bookmarks(bench, job)] == before[-1:]
    gone = taken_away(bench.reader, bench.context.journals, job.id)
    assert gone.count == len(before) - 1


def test_all_that_went_is_told_from_none_that_were(tmp_path: Path) -> None:
    bench, room = made(tmp_path, retention=Retention(action=OnCompletion.DELETE))
    job = bench.run()
    journals = bench.context.journals
    there = len(bookmarks(bench, job))
    assert taken_away(bench.reader, journals, job.id) == TakenAway()

    carry_out(room)

    gone = taken_away(bench.reader, journals, job.id)
    assert (gone.count, gone.at is not None) == (there, True)
    with pytest.raises(NotFoundError, match="were deleted by retention"):
        find_checkpoint(bench.reader, journals, job.id, None)


def test_numbers_are_not_given_again(tmp_path: Path) -> None:
    bench, room = made(tmp_path, turns=1, retention=Retention(max_checkpoints=1))
    job = bench.run()
    last = bookmarks(bench, job)[-1].number

    carry_out(room)
    again = resume(bench, job, turns=9)

    assert again.status is JobStatus.COMPLETED
    numbers = [one.number for one in bookmarks(bench, job)]
    assert numbers == list(range(last, last + len(numbers)))


def test_a_live_job_keeps_its_last_also_from_a_plan_made_before(tmp_path: Path) -> None:
    bench, room = made(tmp_path, turns=1)
    job = bench.run()
    last = bookmarks(bench, job)[-1].number
    stale = JobPlan(job_id=job.id, going=((last, Reason.TOO_OLD),))

    with pytest.raises(RefusedError, match="can be resumed from its last checkpoint"):
        anyio.run(apply_plan, stale, room)
    change = RemoveCheckpoints(job_id=job.id, numbers=(last,), at=bench.clock.now())
    (answer,) = anyio.run(bench.store.apply, [change])

    assert isinstance(answer, Refused)
    assert bookmarks(bench, job)[-1].number == last


def test_the_place_of_a_branch_of_a_branch_stays(tmp_path: Path) -> None:
    bench, room = made(tmp_path)
    job = bench.run()
    session_id = job.session_id
    assert session_id is not None

    async def branches() -> None:
        first = Fork(session_id=session_id, at=AtMessage(number=3))
        second = (await fork(first, bench.context)).session
        await fork(Fork(session_id=second.id, at=AtMessage(number=2)), bench.context)

    anyio.run(branches)

    (found,) = all_plans(room)
    known = {one.number: one.seq for one in bookmarks(bench, job)}
    kept = [known[number] for number, why in found.needed if why is Needed.FORK]
    lines = [bench.context.journals.seq_of_message(job.id, number) or 0 for number in (2, 3)]
    assert len(kept) == 2
    assert all(line <= seq for line, seq in zip(lines, sorted(kept), strict=True))


def test_limits_are_known_after_all_bookmarks_went(tmp_path: Path) -> None:
    bench, room = made(tmp_path)
    job = bench.run()
    carry_out(room)
    assert bookmarks(bench, job) == []

    document = thread_state(bench.reader, room.journals, job.id, now=bench.clock.now())

    assert document["limits"]["turns"] == 9
