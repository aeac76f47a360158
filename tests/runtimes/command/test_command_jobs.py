"""Commands as jobs: what rows say of them, how they are cancelled and timed out, and what a lost keeper leads to."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import anyio
import pytest

from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.jobs.runner import run_job
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, SuspendReason
from nightherd.model.jobs.options import JobOptions
from nightherd.model.workflows.command import COMMANDS_AGENT, exit_code_of
from nightherd.model.workflows.definition import OnInterrupt
from nightherd.wiring.running import open_worker
from runtimes.command.command_stage import (
    ENVIRONMENT,
    CommandJobs,
    bash,
    calls_in,
    commands_fleet,
    python,
    results_in,
)
from runtimes.stage import is_running, is_written, until

ENDLESS = "trap '' TERM; echo begun; setsid sleep 1000 & echo $! > it.pid; wait"


def stopped_by(jobs: CommandJobs, job_id: JobId, stop: Callable[[Stopper], None]) -> Job:
    """The job as it is after `stop` was called while its command ran."""

    async def go() -> Job:
        fleet, stopper = commands_fleet(jobs.folder), Stopper()

        async def stop_when_begun() -> None:
            await until(lambda: is_written(jobs.folder / "it.pid"))
            stop(stopper)

        async with (
            open_worker(jobs.state, fleet, ENVIRONMENT) as context,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(stop_when_begun)
            agent = fleet.agents[COMMANDS_AGENT]
            await run_job(job_id, agent, context, on_event=lambda event: None, stopper=stopper)
        return jobs.job()

    return anyio.run(go)


def is_left(jobs: CommandJobs) -> bool:
    return is_running(int((jobs.folder / "it.pid").read_text()))


def test_a_command_that_succeeds_completes_its_job(jobs: CommandJobs) -> None:
    job = jobs.run(bash("printf 'one\\ntwo\\n\\n'"))

    assert (job.status, job.turns, job.cost_microusd) == (JobStatus.COMPLETED, 0, 0)
    assert jobs.summary(job.id) == "one\ntwo"
    (execution,) = jobs.executions(job.id)
    assert (execution.success, exit_code_of(execution.stop_reason)) == (True, 0)


def test_a_command_that_fails_fails_its_job_and_the_execution_has_its_exit_code(
    jobs: CommandJobs,
) -> None:
    job = jobs.run(bash("echo broken >&2; exit 3"))

    assert (job.status, job.error_code) == (JobStatus.FAILED, "command_failed")
    assert job.error == "exit code 3: broken"
    (execution,) = jobs.executions(job.id)
    assert (execution.success, exit_code_of(execution.stop_reason)) == (False, 3)


def test_a_condition_that_says_no_completes_its_job(jobs: CommandJobs) -> None:
    job = jobs.run(bash("exit 1", is_condition=True))

    assert job.status is JobStatus.COMPLETED
    assert exit_code_of(jobs.executions(job.id)[0].stop_reason) == 1


def test_large_json_and_binary_output_reach_the_rows_unchanged(jobs: CommandJobs) -> None:
    large = jobs.run(
        python("import json; print(json.dumps(['é' * 80] * 6_000, ensure_ascii=False))")
    )
    binary = jobs.run(bash(r"printf 'a\000b\377\n'"))

    assert json.loads(jobs.summary(large.id) or "") == ["é" * 80] * 6_000
    assert len(large.summary or "") <= 500
    assert jobs.summary(binary.id) == "a\0b\ufffd"
    (result,) = results_in(jobs.journal(large.id))
    assert json.loads(str(result.result)) == ["é" * 80] * 6_000


def test_the_whole_of_a_long_output_is_stored_beside_the_journal(jobs: CommandJobs) -> None:
    job = jobs.run(python("print('x' * 3_000_000)"))

    (result,) = results_in(jobs.journal(job.id))
    assert result.full_output is not None
    assert result.full_output.size == 3_000_001
    assert (jobs.state / "blobs" / result.full_output.sha256).stat().st_size == 3_000_001


def test_a_command_without_its_program_fails_and_has_no_exit_code(jobs: CommandJobs) -> None:
    (jobs.folder / "bin").mkdir()

    job = jobs.run(bash("true", env={"PATH": str(jobs.folder / "bin")}))

    assert (job.status, job.error_code) == (JobStatus.FAILED, "missing_program")
    assert exit_code_of(jobs.executions(job.id)[0].stop_reason) is None


def test_a_command_that_runs_too_long_is_killed_with_all_it_started(jobs: CommandJobs) -> None:
    options = JobOptions(job_timeout=timedelta(seconds=2))

    job = jobs.run(bash(ENDLESS), options)

    assert (job.status, job.exit_reason) == (JobStatus.FAILED, ExitReason.TIMEOUT)
    assert not is_left(jobs)
    (result,) = results_in(jobs.journal(job.id))
    assert result.result == "begun\n", "what it printed is on record"


def test_a_cancelled_command_is_killed_with_all_it_started(jobs: CommandJobs) -> None:
    job_id = jobs.submit(bash(ENDLESS))

    job = stopped_by(jobs, job_id, lambda stopper: stopper.stop(ExitReason.CANCELLED))

    assert job.status is JobStatus.CANCELLED
    assert not is_left(jobs)


def test_a_command_cancelled_while_it_waits_for_a_person_never_runs(jobs: CommandJobs) -> None:
    job_id = jobs.submit(bash(ENDLESS))
    stopped_by(jobs, job_id, Stopper.hand_over)
    assert jobs.execute(job_id).status is JobStatus.SUSPENDED

    async def cancel() -> None:
        async with open_worker(jobs.state, commands_fleet(jobs.folder), ENVIRONMENT) as context:
            await context.state.apply([CancelJob(job_id=job_id, at=context.clock.now())])

    anyio.run(cancel)

    assert jobs.job().status is JobStatus.CANCELLED
    assert jobs.waiting() == []
    assert len(results_in(jobs.journal(job_id))) == 1


def test_a_command_whose_worker_hands_it_over_is_interrupted(jobs: CommandJobs) -> None:
    job_id = jobs.submit(bash(ENDLESS, on_interrupt=OnInterrupt.FAIL))

    waiting = stopped_by(jobs, job_id, Stopper.hand_over)
    assert waiting.status is JobStatus.PENDING
    assert not is_left(jobs)
    job = jobs.execute(job_id)

    assert (job.status, job.error_code) == (JobStatus.FAILED, "interrupted")


KEEPER_KILLER = "echo made >> counter; [ -e spared ] || { touch spared; kill -9 $PPID; sleep 600; }"


@pytest.mark.parametrize(
    ("on_interrupt", "status", "made"),
    [
        (OnInterrupt.RERUN, JobStatus.COMPLETED, 2),
        (OnInterrupt.FAIL, JobStatus.FAILED, 1),
        (OnInterrupt.ASK, JobStatus.SUSPENDED, 1),
    ],
)
def test_a_command_whose_keeper_was_killed_is_interrupted(
    jobs: CommandJobs, on_interrupt: OnInterrupt, status: JobStatus, made: int
) -> None:
    job = jobs.run(bash(KEEPER_KILLER, on_interrupt=on_interrupt))

    assert job.status is status
    assert len((jobs.folder / "counter").read_text().split()) == made
    if status is JobStatus.FAILED:
        assert job.error_code == "interrupted"
    if status is JobStatus.SUSPENDED:
        assert job.suspend_reason is SuspendReason.APPROVAL


def test_the_values_of_a_command_are_on_record_in_its_inputs_only(jobs: CommandJobs) -> None:
    job = jobs.run(bash('echo "$WORD" | wc -c', env={"WORD": "a word"}, stdin="some text"))

    (call,) = calls_in(jobs.journal(job.id))
    assert call.input == {"command": 'echo "$WORD" | wc -c'}
    assert jobs.summary(job.id) == "7"
