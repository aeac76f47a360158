"""A worker that is killed with its command: the command runs again only where that is wanted, and never unasked."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from crash.ground import Place, is_killed, places
from nightherd.model.inbox.item import ItemKind, Verdict
from nightherd.model.jobs.job import JobStatus, SuspendReason
from nightherd.model.journal.event import SystemEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.workflows.command import exit_code_of
from nightherd.model.workflows.definition import OnInterrupt
from nightherd.runtimes.command.runtime import RUN_AGAIN
from nightherd.testing.fork_server import Ended, ForkServer
from nightherd.views.people.inbox import asked_blocks
from runtimes.command.command_stage import CommandJobs, bash, calls_in, results_in
from runtimes.command.command_trials import WORK
from runtimes.stage import is_running, is_written, until

DEADLY = """\
echo made >> counter
if [ $(wc -l < counter) -le ${KILLS} ]; then kill -9 $NIGHTHERD_WORKER_PID; sleep 600; fi
echo finished
"""
"""Kills its worker so many times, and counts how often it was begun."""
COUNTED = "echo made >> counter; echo finished"


def made(folder: Path) -> int:
    counter = folder / "counter"
    return len(counter.read_text().splitlines()) if counter.exists() else 0


def work(server: ForkServer, jobs: CommandJobs, place: Place | None = None) -> Ended:
    where = {} if place is None else {"point": place.point, "nth": place.nth}
    ended = server.run(WORK, {"folder": str(jobs.folder), **where})
    assert not ended.error, ended.error
    return ended


def submit_deadly(jobs: CommandJobs, on_interrupt: OnInterrupt, kills: int = 1) -> None:
    jobs.submit(bash(DEADLY, env={"KILLS": str(kills)}, on_interrupt=on_interrupt))


def test_an_interrupted_command_that_may_run_again_runs_as_a_new_call(
    jobs: CommandJobs, fork_server: ForkServer
) -> None:
    submit_deadly(jobs, OnInterrupt.RERUN, kills=2)

    ended = [work(fork_server, jobs) for _ in range(3)]

    assert [one.status for one in ended] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    job = jobs.job()
    assert (job.status, jobs.summary(job.id)) == (JobStatus.COMPLETED, "finished")
    assert made(jobs.folder) == 3
    events = jobs.journal(job.id)
    assert len({call.tool_use_id for call in calls_in(events)}) == 3
    assert [result.success for result in results_in(events)] == [False, False, True]


def test_an_interrupted_command_that_may_not_run_again_fails(
    jobs: CommandJobs, fork_server: ForkServer
) -> None:
    submit_deadly(jobs, OnInterrupt.FAIL)

    work(fork_server, jobs)
    work(fork_server, jobs)

    job = jobs.job()
    assert (job.status, job.error_code) == (JobStatus.FAILED, "interrupted")
    assert "nobody knows how far it came" in (job.error or "")
    assert made(jobs.folder) == 1
    assert exit_code_of(jobs.executions(job.id)[-1].stop_reason) is None


def test_an_interrupted_command_waits_for_a_person_and_is_run_again_once_when_approved(
    jobs: CommandJobs, fork_server: ForkServer
) -> None:
    submit_deadly(jobs, OnInterrupt.ASK)
    work(fork_server, jobs)
    work(fork_server, jobs)

    waiting = jobs.job()
    assert (waiting.status, waiting.suspend_reason) == (
        JobStatus.SUSPENDED,
        SuspendReason.APPROVAL,
    )
    assert waiting.worker is None
    (item,) = jobs.waiting()
    assert (item.kind, item.tool, item.job_id) == (ItemKind.APPROVAL, "Bash", waiting.id)
    assert jobs.asked().body["input"] == {"command": DEADLY}
    assert jobs.asked().body["note"] == RUN_AGAIN
    assert item.title.startswith(f"{RUN_AGAIN} Bash: echo made")
    assert asked_blocks(jobs.asked()) == [("why", RUN_AGAIN), ("Bash would run", DEADLY)]
    work(fork_server, jobs)
    assert made(jobs.folder) == 1, "nothing runs unasked"
    assert len(jobs.waiting()) == 1

    jobs.answer(Verdict.APPROVE)
    work(fork_server, jobs)
    work(fork_server, jobs)

    job = jobs.job()
    assert (job.status, jobs.summary(job.id)) == (JobStatus.COMPLETED, "finished")
    assert made(jobs.folder) == 2
    assert jobs.waiting() == []


def test_a_rejected_command_fails_with_the_reason(
    jobs: CommandJobs, fork_server: ForkServer
) -> None:
    submit_deadly(jobs, OnInterrupt.ASK)
    work(fork_server, jobs)
    work(fork_server, jobs)

    jobs.answer(Verdict.REJECT, text="it was half done")
    work(fork_server, jobs)

    job = jobs.job()
    assert (job.status, job.error_code) == (JobStatus.FAILED, "rejected")
    assert "rejected by ada: it was half done" in (job.error or "")
    assert made(jobs.folder) == 1


def test_a_command_killed_again_after_its_approval_asks_again(
    jobs: CommandJobs, fork_server: ForkServer
) -> None:
    submit_deadly(jobs, OnInterrupt.ASK, kills=2)
    work(fork_server, jobs)
    work(fork_server, jobs)
    (first,) = jobs.waiting()
    jobs.answer(Verdict.APPROVE)

    killed = work(fork_server, jobs)
    assert (killed.status, made(jobs.folder)) == (-signal.SIGKILL, 2)
    work(fork_server, jobs)
    work(fork_server, jobs)

    assert jobs.job().status is JobStatus.SUSPENDED
    assert made(jobs.folder) == 2
    (second,) = jobs.waiting()
    assert second.id != first.id
    jobs.answer(Verdict.APPROVE)
    work(fork_server, jobs)
    assert jobs.job().status is JobStatus.COMPLETED
    assert made(jobs.folder) == 3


def test_a_person_can_have_another_command_run_instead(
    jobs: CommandJobs, fork_server: ForkServer
) -> None:
    submit_deadly(jobs, OnInterrupt.ASK)
    work(fork_server, jobs)
    work(fork_server, jobs)

    jobs.answer(Verdict.APPROVE, input={"command": "echo only the rest"})
    work(fork_server, jobs)

    job = jobs.job()
    assert (job.status, jobs.summary(job.id)) == (JobStatus.COMPLETED, "only the rest")
    assert made(jobs.folder) == 1


def test_nothing_of_a_command_outlives_its_killed_worker(
    jobs: CommandJobs, fork_server: ForkServer
) -> None:
    deaf = 'trap "" TERM; echo $$ > it.pid; while :; do sleep 0.02; done'
    command = f"setsid sh -c '{deaf}' & echo $$ > sh.pid; sleep 1000"
    jobs.submit(bash(command, on_interrupt=OnInterrupt.FAIL))
    (trial,) = fork_server.begin(WORK, {"folder": str(jobs.folder)})
    pids = [jobs.folder / name for name in ("it.pid", "sh.pid")]
    anyio.run(until, lambda: all(map(is_written, pids)))

    trial.send(signal.SIGKILL)
    trial.wait()

    anyio.run(until, lambda: not any(is_running(int(path.read_text())) for path in pids))


def test_half_an_input_is_never_taken_for_all_of_it(
    jobs: CommandJobs, fork_server: ForkServer
) -> None:
    alone = "while kill -0 $NIGHTHERD_WORKER_PID 2> /dev/null; do sleep 0.01; done"
    command = f"trap '' TERM; echo $$ > sh.pid; {alone}; cat > /dev/null; touch all-read"
    jobs.submit(bash(command, stdin="x" * 10_000_000))
    (trial,) = fork_server.begin(WORK, {"folder": str(jobs.folder)})
    anyio.run(until, lambda: is_written(jobs.folder / "sh.pid"))

    trial.send(signal.SIGKILL)
    trial.wait()

    shell = int((jobs.folder / "sh.pid").read_text())
    anyio.run(until, lambda: not is_running(shell))
    assert not (jobs.folder / "all-read").exists()


@contextmanager
def copied(jobs: CommandJobs) -> Iterator[CommandJobs]:
    """The same state directory once more, for one trial."""
    folder = jobs.folder.with_name("trial")
    shutil.copytree(jobs.folder, folder)
    try:
        yield CommandJobs(folder)
    finally:
        shutil.rmtree(folder)


def has_call(jobs: CommandJobs) -> bool:
    return bool(calls_in(jobs.journal(jobs.job().id)))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("on_interrupt", list(OnInterrupt))
def test_killed_at_any_place_a_command_runs_unasked_only_when_it_cannot_have_begun(
    tmp_path: Path, fork_server: ForkServer, on_interrupt: OnInterrupt
) -> None:
    (tmp_path / "ground").mkdir()
    ground = CommandJobs(tmp_path / "ground")
    ground.submit(bash(COUNTED, on_interrupt=on_interrupt))
    with copied(ground) as trial:
        passed = places(work(fork_server, trial).said)
        assert trial.job().status is JobStatus.COMPLETED
    kills = 0
    for place in passed:
        print(f"killed at {place}")
        with copied(ground) as trial:
            kills += is_killed(work(fork_server, trial, place))
            before, had_call = made(trial.folder), has_call(trial)
            has_result = bool(results_in(trial.journal(trial.job().id)))
            work(fork_server, trial)
            job = trial.job()
            if not had_call:
                assert (before, made(trial.folder)) == (0, 1)
                assert job.status is JobStatus.COMPLETED
            elif has_result:
                assert (before, made(trial.folder)) == (1, 1), "what is on record is not repeated"
                assert (job.status, trial.summary(job.id)) == (JobStatus.COMPLETED, "finished")
            elif on_interrupt is OnInterrupt.RERUN:
                assert made(trial.folder) == before + 1
                assert job.status is JobStatus.COMPLETED
            elif on_interrupt is OnInterrupt.FAIL:
                assert made(trial.folder) == before
                assert (job.status, job.error_code) == (JobStatus.FAILED, "interrupted")
            else:
                assert made(trial.folder) == before
                assert job.status is JobStatus.SUSPENDED
                assert len(trial.waiting()) == 1
    assert kills > 0


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.REJECT])
def test_killed_at_any_place_after_the_answer_a_command_never_runs_twice_for_one_approval(
    tmp_path: Path, fork_server: ForkServer, verdict: Verdict
) -> None:
    (tmp_path / "ground").mkdir()
    ground = CommandJobs(tmp_path / "ground")
    submit_deadly(ground, OnInterrupt.ASK)
    work(fork_server, ground)
    work(fork_server, ground)
    ground.answer(verdict)
    ends = JobStatus.COMPLETED if verdict is Verdict.APPROVE else JobStatus.FAILED
    with copied(ground) as trial:
        passed = places(work(fork_server, trial).said)
        assert trial.job().status is ends
    kills, most = 0, 2 if verdict is Verdict.APPROVE else 1
    for place in passed:
        print(f"killed at {place}")
        with copied(ground) as trial:
            kills += is_killed(work(fork_server, trial, place))
            work(fork_server, trial)
            job = trial.job()
            assert made(trial.folder) <= most
            if job.status is JobStatus.SUSPENDED:
                # The approval was used, and what came of it is unknown: it asks anew.
                assert verdict is Verdict.APPROVE
                assert "approved" in reviewed(trial)
                assert len(trial.waiting()) == 1
                trial.answer(Verdict.APPROVE)
                work(fork_server, trial)
                assert made(trial.folder) <= most + 1
            assert trial.job().status is ends
    assert kills > 0


def reviewed(jobs: CommandJobs) -> list[str]:
    """What the journal says about answers."""
    return [
        str((event.extra or {})["status"])
        for event in jobs.journal(jobs.job().id)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.REVIEW
    ]
