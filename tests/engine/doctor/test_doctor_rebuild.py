"""`doctor --rebuild`: the database made again answers as before, and nothing can happen twice because of it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from engine.doctor.ward import Ward, killed, lines, running
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, Submitted, record_job
from nightherd.mirror.position import MirrorLock
from nightherd.model.change import (
    AdoptRows,
    Answer,
    Applied,
    Change,
    EndWorker,
    Refused,
    RegisterWorker,
    Why,
)
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import JobQuery
from nightherd.model.worker import WorkerStatus
from nightherd.state.reader import SqliteReader
from nightherd.testing.state_values import BEGINNING, checkpoint, fire, job_id, start, worker
from nightherd.testing.state_values import submit as submitted
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_repair
from surfaces.drivers import Shell, submit_pending

WORKER = "worker-00000001"


def apply(ward: Ward, *changes: Change) -> Sequence[Answer]:
    async def work() -> Sequence[Answer]:
        async with open_repair(ward.root) as record:
            return await record.state.apply(changes)

    return anyio.run(work)


def deliver(ward: Ward, key: str) -> Submitted:
    """Run a job that stands for the delivery `key`, unless it was delivered before."""

    async def work() -> Submitted:
        directory = ward.root.parent
        fleet = load_fleet(directory / "nightherd.yaml", environ={}, cwd=directory).fleet
        async with open_worker(ward.root, fleet, {}) as context:
            agent = fleet.agents["hello"]
            done = await record_job(JobDraft(agent=agent, dedupe_key=key), context)
            if done.is_new:
                await run_job(done.job.id, agent, context, on_event=lambda event: None)
            return done

    return anyio.run(work)


@pytest.fixture
def mixed(ward: Ward, shell: Shell) -> Ward:
    """A directory with some of everything there is in one."""
    ward.run("hello")
    ward.run("failing")
    ward.run("memory")
    ward.run("memory")
    deliver(ward, "delivery-1")
    apply(ward, CancelJob(job_id=submit_pending(ward.root.parent), at=BEGINNING))
    submit_pending(ward.root.parent)
    foreign = submitted(3)
    changes: list[Change] = [
        RegisterWorker(worker=worker(WORKER)),
        fire(1, minute=1),
        fire(None, minute=2, reason="busy"),
        start(1),
        checkpoint(1, header={"limit": 5}),
        AdoptRows(rows=(foreign.session, foreign.job, foreign.texts), source="elsewhere"),
        EndWorker(worker_id=WorkerId(WORKER), status=WorkerStatus.LEFT, at=BEGINNING),
    ]
    assert all(isinstance(answer, Applied) for answer in apply(ward, *changes))
    killed(shell, "slow", ward.root.parent / "started")
    return ward


def answers(ward: Ward) -> dict[str, Any]:
    """Everything that lists and shows say, by job, in the order of the list."""
    return {job["id"]: (job, ward.show(job["id"])) for job in ward.jobs()}


def test_rebuilt_database_answers_every_list_and_show_as_before(mixed: Ward) -> None:
    before, rows = answers(mixed), mixed.rows()
    assert {job["status"] for job, _ in before.values()} == {
        "pending",
        "running",
        "completed",
        "failed",
        "cancelled",
    }
    mixed.delete_database()

    rebuilt = mixed.doctor("--rebuild")

    assert rebuilt.result.code == 0
    # The slot's job was started by hand above, and nothing of it was ever recorded.
    assert [one["job_id"] for one in rebuilt.all] == [job_id(1)]
    after = answers(mixed)
    assert list(after) == list(before)
    for name, (job, shown) in before.items():
        if job["status"] != "running":
            assert after[name] == (job, shown)
        else:
            now = after[name][1]
            assert (now["status"], now["exit_reason"]) == ("failed", "error")
            assert now["error"]["code"] == "interrupted"
    now_rows = mixed.rows()
    for table in ("job_texts", "slots"):
        assert now_rows[table] == rows[table]
    # Jobs that were running have ended as interrupted, each with the checkpoint of a failure.
    running = {name for name, (job, _) in before.items() if job["status"] == "running"}
    more = [row for row in now_rows["checkpoints"] if row not in rows["checkpoints"]]
    assert sorted((row[1], row[5]) for row in more) == sorted(
        (name, "on_error") for name in running
    )
    assert all(row in now_rows["checkpoints"] for row in rows["checkpoints"])
    assert len(now_rows["sessions"]) == len(rows["sessions"])
    # The job that ended as interrupted has no state.json yet: the doctor writes it.
    mixed.doctor("--fix", "--verify")
    assert mixed.doctor("--verify").checks == ["record"]


def test_nothing_that_happened_can_happen_again_after_a_rebuild(mixed: Ward) -> None:
    mixed.delete_database()
    mixed.doctor("--rebuild")

    again = apply(mixed, fire(1, minute=1), fire(2, minute=2))

    assert [answer.why for answer in again if isinstance(answer, Refused)] == [Why.DUPLICATE] * 2
    assert not deliver(mixed, "delivery-1").is_new
    (later,) = apply(mixed, fire(2, minute=3))
    assert isinstance(later, Applied)


def test_numbers_go_on_after_a_rebuild(mixed: Ward) -> None:
    count = len(mixed.jobs())
    mixed.delete_database()
    mixed.doctor("--rebuild")

    mixed.run("hello")

    reader = SqliteReader(mixed.root)
    numbers = [job.number for job in reader.list_jobs(JobQuery(limit=100))]
    reader.close()
    assert (numbers[0], sorted(numbers)) == (count + 1, list(range(1, count + 2)))


def test_without_the_ledger_the_journals_alone_give_the_jobs_again(mixed: Ward) -> None:
    before = answers(mixed)
    ran = [name for name, (job, _) in before.items() if mixed.journal(name).exists()]
    sessions = {name: before[name][1]["session_id"] for name in ran}
    mixed.delete_database()
    shutil.rmtree(mixed.root / "ledger")

    rebuilt = mixed.doctor("--rebuild")

    assert (rebuilt.result.code, rebuilt.all) == (0, [])
    assert [job["id"] for job in mixed.jobs()] == ran
    told = ("agent", "status", "exit_reason", "prompt", "turns", "cost_usd", "summary", "usage")
    for name in ran:
        was, now = before[name][1], mixed.show(name)
        if was["status"] == "running":
            assert (now["status"], now["error"]["code"]) == ("failed", "interrupted")
        else:
            assert {key: now[key] for key in told} == {key: was[key] for key in told}
        assert now["session_id"] == sessions[name]
    assert not deliver(mixed, "delivery-1").is_new
    mixed.clean("--verify")


def test_session_that_several_jobs_shared_goes_on_after_the_ledger_was_lost(ward: Ward) -> None:
    first = ward.show(ward.run("memory"))
    ward.run("memory")
    ward.run("hello")
    ward.delete_database()
    shutil.rmtree(ward.root / "ledger")

    ward.doctor("--rebuild")

    reader = SqliteReader(ward.root)
    session = reader.find_session(first["session_id"])
    agents = {agent.name: agent.status.value for agent in reader.list_agents()}
    reader.close()
    assert session is not None
    assert (session.mode.value, session.status.value) == ("persistent", "paused")
    assert session.job_count == 2
    assert agents == {"memory": "error", "hello": "idle"}
    assert ward.show(ward.run("memory"))["session_id"] == first["session_id"]


def test_readable_files_are_right_after_everything_but_the_journals_was_lost(ward: Ward) -> None:
    for _ in range(3):
        ward.run("hello")
    ward.run("failing")
    ward.delete_database()
    shutil.rmtree(ward.root / "ledger")

    assert ward.doctor("--fix").result.code == 0

    assert len(ward.jobs()) == 4
    ward.run("hello")
    state = (ward.root / "state.yaml").read_text()
    assert f"last_job: {ward.jobs()[0]['id']}" in state
    assert f"last_job: {ward.jobs()[1]['id']}" in state
    assert len(list((ward.root / "jobs").glob("*.yaml"))) == 5
    ward.clean("--verify")


def test_readable_files_that_another_process_keeps_do_not_stop_a_rebuild(ward: Ward) -> None:
    ward.run("hello")
    ward.delete_database()
    keeper = MirrorLock(ward.root / "mirror.lock")
    assert keeper.acquire()
    try:
        rebuilt = ward.doctor("--rebuild")
    finally:
        keeper.release()

    assert rebuilt.result.code == 0
    assert "another process keeps the mirror" in rebuilt.result.err


def test_rebuild_is_refused_while_a_worker_is_at_work(ward: Ward, shell: Shell) -> None:
    ward.run("hello")
    with running(shell, "slow", ward.root.parent / "started") as process:
        before = ward.database.read_bytes()

        refused = ward.cli("doctor", "--rebuild")
        assert (refused.code, ward.database.read_bytes()) == (5, before)
        assert str(process.pid) in refused.err

        # Not even a deleted database hides the worker: the ledger knows it.
        ward.delete_database()
        assert ward.cli("doctor", "--rebuild").code == 5
        assert not ward.database.exists()

    assert ward.doctor("--rebuild").result.code == 0
    assert not list(ward.root.glob("nightherd.db.rebuilt*"))


KILLED = """
import os, signal, sys
from pathlib import Path
from nightherd.state.rebuild import rebuild_database
from nightherd.testing.determinism import START

def probe(point):
    if point == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)

rebuild_database(Path(".nightherd"), at=START, is_there=lambda worker: False, probe=probe)
"""


@pytest.mark.parametrize(
    "point", ["rebuild.replayed", "rebuild.kept-wal", "rebuild.kept-shm", "rebuild.kept"]
)
def test_rebuild_killed_anywhere_is_finished_by_the_next(
    point: str, used: Ward, shell: Shell
) -> None:
    rows = used.rows()
    program = KILLED.replace("sys.argv[1]", repr(point))

    assert shell.python(program).code == -9

    again = used.doctor("--rebuild", "--verify")
    assert (again.result.code, again.all) == (0, [])
    assert used.rows() == rows
    assert not list(used.root.glob("nightherd.db.rebuilt*"))


@pytest.mark.parametrize("point", ["ledger.drafted", "ledger.kept"])
def test_fresh_ledger_killed_anywhere_is_begun_again_by_the_next(
    point: str, used: Ward, shell: Shell
) -> None:
    used.alter("DELETE FROM outbox WHERE change < (SELECT max(change) FROM outbox)")
    rows = used.rows()
    damaged = used.ledger.read_bytes()[:-20] + b"?" * 19 + b"\n"
    used.ledger.write_bytes(damaged)
    program = (
        KILLED.replace("sys.argv[1]", repr(point))
        .replace("state.rebuild import rebuild_database", "state.fresh_ledger import begin_ledger")
        .replace("rebuild_database(", "begin_ledger(")
        .replace("is_there=lambda worker: False, ", "")
    )

    assert shell.python(program).code == -9

    assert used.doctor("--fix").result.code == 0
    assert used.rows() == rows
    assert damaged in [path.read_bytes() for path in (used.root / "ledger").glob("*.corrupt-*")]
    used.delete_database()
    assert used.doctor("--rebuild", "--verify").result.code == 0
    assert used.rows() == rows


def test_snapshot_ledger_is_numbered_so_that_the_next_change_follows(used: Ward) -> None:
    last = lines(used.ledger)[-1]["change"]
    used.alter("DELETE FROM outbox WHERE change < (SELECT max(change) FROM outbox)")
    used.ledger.unlink()
    used.doctor("--fix")
    assert [line["change"] for line in lines(used.ledger)] == [last]

    used.run("hello")

    changes = [line["change"] for line in lines(used.ledger)]
    assert changes == list(range(last, last + len(changes)))
    assert len(changes) > 3
