"""Workers killed, frozen and woken again: every job goes on, no call is made twice, none is left out."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.jobs.test_run_processes import is_alive
from crash.herds import CALLS, QUICK_LEASE, QUICK_LOOKS, Herd, every_call_of
from nightherd.model.change import EndWorker
from nightherd.model.jobs.job import ExecutionStatus, ExitReason, JobStatus
from nightherd.model.journal.event import SystemEvent, ToolResultEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.worker import WorkerStatus

MakeHerd = Callable[..., Herd]

QUICK_KILL = "cancel_grace: 1s\n"
"""What does not end when it is asked to is killed soon."""


@pytest.fixture
def make_herd(tmp_path: Path) -> Iterator[MakeHerd]:
    made: list[Herd] = []

    def make(settings: str = "", at_once: int = 4) -> Herd:
        made.append(Herd(tmp_path, settings, at_once))
        return made[-1]

    yield make
    for herd in made:
        herd.shell.close()


def test_job_of_a_killed_worker_goes_on_with_nothing_twice_and_nothing_missing(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd()
    (job_id,) = herd.submit("counter", "a")
    herd.hold("a-3")
    worker = herd.worker()
    herd.wait_for_call("a-3")

    worker.kill()
    worker.wait()
    herd.let_go("a-3")
    herd.work_until_idle()

    job = herd.job(job_id)
    assert herd.counted() == every_call_of("a")
    assert (job.status, job.turns, job.cost_microusd) == (JobStatus.COMPLETED, CALLS, CALLS * 1_000)
    assert (job.restart_count, job.epoch, job.input_tokens) == (1, 2, CALLS * 10)
    lost, finished = herd.executions(job_id)
    assert (lost.status, lost.turns, lost.cost_microusd) == (ExecutionStatus.LOST, 2, 3_000)
    assert (finished.status, finished.turns, finished.cost_microusd) == (
        ExecutionStatus.FINISHED,
        CALLS - 2,
        3_000,
    )
    results = [event for event in herd.journal(job_id) if isinstance(event, ToolResultEvent)]
    assert [event.success for event in results] == [True, True, False, True, True, True]


def test_job_that_loses_every_worker_is_given_up_with_what_its_record_holds(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd("max_restarts: 2\n")
    (job_id,) = herd.submit("counter", "a")
    for place in ("a-1", "a-2", "a-3"):
        herd.hold(place)
        worker = herd.worker()
        herd.wait_for_call(place)
        worker.kill()
        worker.wait()
        herd.let_go(place)

    herd.work_until_idle()

    job = herd.job(job_id)
    assert (job.status, job.exit_reason, job.error_code) == (
        JobStatus.FAILED,
        ExitReason.ERROR,
        "interrupted",
    )
    assert job.error == (
        "interrupted: its worker is gone; it was lost 3 times, and max_restarts is 2"
    )
    assert (job.restart_count, job.turns, job.cost_microusd) == (2, 2, 3_000)
    assert herd.counted() == {"a-1": 1, "a-2": 1, "a-3": 1}
    assert herd.findings(job_id).last_seq == job.last_seq


def test_workers_that_rescue_at_the_same_time_rescue_a_job_once(make_herd: MakeHerd) -> None:
    herd = make_herd()
    tags = ("a", "b", "c")
    ids = herd.submit("counter", *tags)
    herd.hold(*(f"{tag}-2" for tag in tags))
    worker = herd.worker()
    for tag in tags:
        herd.wait_for_call(f"{tag}-2")
    worker.kill()
    worker.wait()
    herd.let_go(*(f"{tag}-2" for tag in tags))

    rescuers = [herd.shell.start("worker", "--until-idle") for _ in range(2)]

    assert [rescuer.wait() for rescuer in rescuers] == [0, 0]
    # One of them may have left while the other still had work.
    assert herd.counted() == every_call_of(*tags)
    for job_id in ids:
        job = herd.job(job_id)
        assert (job.status, job.restart_count, job.epoch) == (JobStatus.COMPLETED, 1, 2)


def test_frozen_worker_that_wakes_after_it_was_replaced_does_no_harm(make_herd: MakeHerd) -> None:
    herd = make_herd(QUICK_LEASE)
    (job_id,) = herd.submit("counter", "a")
    herd.hold("a-3", "a-5")
    frozen = herd.worker()
    herd.wait_for_call("a-3")
    herd.stop(frozen)
    successor = herd.worker()
    herd.wait_for_call("a-5")
    herd.let_go("a-3")

    frozen.send_signal(signal.SIGCONT)
    _, talk = frozen.communicate()
    herd.let_go("a-5")
    job = herd.wait_for(job_id, JobStatus.COMPLETED)
    successor.terminate()

    assert (frozen.returncode, successor.wait()) == (5, 0)
    assert b"was replaced" in talk
    assert herd.counted() == every_call_of("a")
    assert (job.epoch, job.restart_count, job.turns) == (2, 1, CALLS)
    found = herd.findings(job_id)
    assert (found.missing, found.bad_lines, found.last_seq) == (0, (), job.last_seq)
    assert [event.seq for event in herd.journal(job_id)] == list(range(1, job.last_seq + 1))
    ends = [
        event
        for event in herd.journal(job_id)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.END
    ]
    assert [event.epoch for event in ends] == [2]
    assert herd.live_workers() == []


def test_worker_that_was_given_up_by_hand_stops_and_its_job_goes_on(make_herd: MakeHerd) -> None:
    herd = make_herd(QUICK_LOOKS)
    (job_id,) = herd.submit("counter", "a")
    herd.hold("a-2")
    worker = herd.worker()
    herd.wait_for_call("a-2")
    (row,) = herd.live_workers()

    herd.apply(EndWorker(worker_id=row.id, status=WorkerStatus.LOST, at=datetime.now(UTC)))

    worker.communicate()
    assert worker.returncode == 5
    herd.let_go("a-2")
    herd.work_until_idle()
    assert herd.job(job_id).status is JobStatus.COMPLETED
    assert herd.counted() == every_call_of("a")


def test_one_of_three_workers_is_killed_and_the_others_finish_everything(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd(QUICK_LOOKS, at_once=6)
    tags = tuple("abcdef")
    ids = herd.submit("counter", *tags)
    herd.hold(*(f"{tag}-2" for tag in tags))
    workers = [herd.worker() for _ in range(3)]
    for tag in tags:
        herd.wait_for_call(f"{tag}-2")
    busy = {herd.job(job_id).worker for job_id in ids}
    (victim,) = (row for row in herd.live_workers() if row.id == min(busy, key=str))
    (killed,) = (worker for worker in workers if worker.pid == victim.pid)

    killed.kill()
    herd.let_go(*(f"{tag}-2" for tag in tags))
    for job_id in ids:
        herd.wait_for(job_id, JobStatus.COMPLETED)
    for worker in workers:
        worker.terminate()

    assert sorted(worker.wait() for worker in workers) == [-signal.SIGKILL, 0, 0]
    assert herd.counted() == every_call_of(*tags)
    assert {herd.job(job_id).cost_microusd for job_id in ids} == {CALLS * 1_000}


def test_many_jobs_over_three_workers_run_once_each(make_herd: MakeHerd) -> None:
    herd = make_herd()
    ids = herd.submit("quick", count=200)

    workers = [herd.shell.start("worker", "--until-idle", stdout=-3) for _ in range(3)]

    assert [worker.wait() for worker in workers] == [0, 0, 0]
    jobs = {job.id: job for job in herd.jobs()}
    assert set(jobs) == set(ids)
    assert {(job.status, job.epoch, job.restart_count) for job in jobs.values()} == {
        (JobStatus.COMPLETED, 1, 0)
    }
    assert herd.read(lambda reader: [len(reader.list_executions(one)) for one in ids]) == [1] * 200


def test_cancelled_job_is_stopped_with_everything_it_started(make_herd: MakeHerd) -> None:
    herd = make_herd(QUICK_KILL)
    (job_id,) = herd.submit("tree")
    worker = herd.worker()
    herd.wait_until(lambda: len(herd.pids()) == 2)

    asked = herd.shell.run("jobs", "cancel", job_id)

    assert (asked.code, asked.out) == (0, f"{job_id} is being stopped by its worker\n")
    job = herd.wait_for(job_id, JobStatus.CANCELLED)
    assert job.exit_reason is ExitReason.CANCELLED
    assert [pid for pid in herd.pids() if is_alive(pid)] == []
    worker.terminate()
    assert worker.wait() == 0


def test_cancelled_job_of_a_dead_worker_is_not_run_again(make_herd: MakeHerd) -> None:
    herd = make_herd()
    first, second = herd.submit("counter", "a", "b")
    herd.hold("a-2", "b-2")
    worker = herd.worker()
    herd.wait_for_call("a-2")
    herd.wait_for_call("b-2")
    herd.stop(worker)  # it hears of nothing any more
    asked = herd.shell.run("jobs", "cancel", first)
    worker.kill()
    worker.wait()

    at_once = herd.shell.run("jobs", "cancel", second)
    herd.work_until_idle()

    assert (asked.code, asked.out) == (0, f"{first} is being stopped by its worker\n")
    assert (at_once.code, at_once.out) == (0, f"cancelled {second}\n")
    assert {herd.job(first).status, herd.job(second).status} == {JobStatus.CANCELLED}
    assert herd.counted() == {"a-1": 1, "a-2": 1, "b-1": 1, "b-2": 1}


def test_drained_worker_finishes_what_it_runs_and_takes_nothing_new(make_herd: MakeHerd) -> None:
    herd = make_herd(at_once=1)
    running, waiting = herd.submit("counter", "a", "b")
    herd.hold("a-2")
    worker = herd.worker()
    herd.wait_for_call("a-2")

    worker.terminate()
    assert worker.stderr is not None
    assert b"finishing running jobs" in worker.stderr.readline()
    herd.let_go("a-2")

    assert worker.wait() == 0
    assert herd.job(running).status is JobStatus.COMPLETED
    assert herd.job(waiting).status is JobStatus.PENDING


def test_second_signal_cancels_what_a_draining_worker_runs(make_herd: MakeHerd) -> None:
    herd = make_herd(QUICK_KILL)
    (job_id,) = herd.submit("tree")
    worker = herd.worker()
    herd.wait_until(lambda: len(herd.pids()) == 2)

    worker.terminate()
    assert worker.stderr is not None
    assert b"finishing running jobs" in worker.stderr.readline()
    worker.terminate()

    assert worker.wait() == 0
    assert herd.job(job_id).status is JobStatus.CANCELLED
    assert [pid for pid in herd.pids() if is_alive(pid)] == []
