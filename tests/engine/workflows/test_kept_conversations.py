"""A retried run continues the conversation of a phase that it keeps as it was when that phase had ended."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.run_again import fork_run, retry_run
from nightherd.engine.operations.run_requests import ForkRun, RetryRun, StartWorkflow
from nightherd.engine.operations.runs import get_run, start_workflow
from nightherd.engine.workers.worker import WorkerReports
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.job import Job
from nightherd.model.journal.recollection import rebuilt_rows, recollect
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.views.sessions.conversation import count_messages, segments_of
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker

FLEET = """\
agents:
  - name: talker
    runtime: scripted
    script:
      - say: the plan
      - end: true
      - say: on my way
      - fail: {code: bad_luck, message: it rains}
workflows:
  talk:
    phases:
      - {name: plan, agent: talker, prompt: plan it}
      - {name: work, agent: talker, prompt: do it, session: plan, depends_on: [plan]}
"""


def silent() -> WorkerReports:
    def nothing(*_: object) -> None:
        """Nobody watches."""

    return WorkerReports(
        on_start=nothing, on_event=nothing, on_end=nothing, on_rescue=nothing, on_trouble=nothing
    )


async def work(fleet: Fleet, context: WorkerContext) -> None:
    await make_worker_loop(fleet, context, silent(), leaves_when_idle=True).work()


def said_before(context: WorkerContext, job: Job) -> int:
    """How many messages the job's session had when the job began."""
    session = context.reader.find_session(job.session_id or job.id)  # type: ignore[arg-type]
    assert session is not None
    parts = segments_of(context.reader, context.journals, session)
    return count_messages([part for part in parts if part.job.id != job.id])


def job_of(context: WorkerContext, run_id: RunId, phase: str) -> Job:
    node = context.reader.find_node(f"{run_id}/{phase}")
    assert node is not None
    assert node.job_id is not None
    job = context.reader.find_job(node.job_id)
    assert job is not None
    return job


@pytest.mark.parametrize("verb", ["retry", "fork"])
def test_a_phase_that_is_done_again_hears_nothing_of_what_was_said_after_the_phase_before_it(
    tmp_path: Path, verb: str
) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    fleet = load_fleet(tmp_path / "nightherd.yaml", environ={}, cwd=tmp_path).fleet

    async def scenario() -> None:
        async with open_worker(tmp_path / ".nightherd", fleet, {}) as context:
            first = (await start_workflow(StartWorkflow(workflow="talk"), context)).run
            await work(fleet, context)
            assert get_run(context.reader, first.id).status is RunStatus.FAILED
            before = said_before(context, job_of(context, first.id, "work"))
            again = (
                await retry_run(RetryRun(run_id=first.id, by="me"), context)
                if verb == "retry"
                else await fork_run(ForkRun(run_id=first.id, at_phase="work", by="me"), context)
            ).run
            await work(fleet, context)

            assert job_of(context, again.id, "plan").id == job_of(context, first.id, "plan").id
            done_again = job_of(context, again.id, "work")
            assert done_again.session_id != job_of(context, first.id, "work").session_id
            assert said_before(context, done_again) == before

    anyio.run(scenario)


def test_a_phase_that_only_its_journal_knows_is_of_its_run_and_node(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    fleet = load_fleet(tmp_path / "nightherd.yaml", environ={}, cwd=tmp_path).fleet

    async def scenario() -> None:
        async with open_worker(tmp_path / ".nightherd", fleet, {}) as context:
            run = (await start_workflow(StartWorkflow(workflow="talk"), context)).run
            await work(fleet, context)
            job = job_of(context, run.id, "plan")

            rebuilt = rebuilt_rows(recollect(context.journals.read(job.id)))

            assert rebuilt is not None
            assert rebuilt.job.workflow_run_id == run.id
            assert rebuilt.job.node_id == f"{run.id}/plan"

    anyio.run(scenario)
