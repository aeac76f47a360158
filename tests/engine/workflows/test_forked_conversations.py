"""Runs that keep phases of the same run: each continues the whole conversation, and none hears the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from engine.workflows.test_kept_conversations import job_of, said_before, work
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.inbox import answer_item
from nightherd.engine.operations.requests import Answer
from nightherd.engine.operations.run_again import fork_run, retry_run
from nightherd.engine.operations.run_requests import ForkRun, RetryRun, StartWorkflow
from nightherd.engine.operations.runs import get_run, start_workflow
from nightherd.model.agents.agent import Fleet
from nightherd.model.inbox.item import Verdict
from nightherd.model.sessions.session import SessionQuery
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker

FLEET = """\
agents:
  - name: talker
    runtime: scripted
    script: [{repeat: 50, steps: [{say: "I did ${prompt}"}, {end: true}]}]
workflows:
  three:
    phases:
      - {name: plan, agent: talker, prompt: plan}
      - {name: build, agent: talker, prompt: build, session: plan}
      - {name: check, agent: talker, prompt: check, session: plan, output: {type: object}}
  gated:
    phases:
      - {name: plan, agent: talker, prompt: plan}
      - {name: ok, gate: {summary: Go on?}}
      - {name: build, agent: talker, prompt: build, session: plan}
  looped:
    phases:
      - name: talk
        agent: talker
        prompt: talk
        loop: {max_iterations: 9, until: loop.iteration == 9}
      - {name: bad, bash: exit 3}
"""
Scenario = Callable[[Fleet, WorkerContext], Awaitable[None]]


def run_scenario(directory: Path, scenario: Scenario) -> None:
    (directory / "nightherd.yaml").write_text(FLEET)
    fleet = load_fleet(directory / "nightherd.yaml", environ={}, cwd=directory).fleet

    async def main() -> None:
        async with open_worker(directory / ".nightherd", fleet, {}) as context:
            await scenario(fleet, context)

    anyio.run(main)


async def start(workflow: str, fleet: Fleet, context: WorkerContext) -> RunId:
    run = (await start_workflow(StartWorkflow(workflow=workflow), context)).run
    await work(fleet, context)
    return run.id


async def approve(run_id: RunId, fleet: Fleet, context: WorkerContext) -> None:
    (item,) = [item for item in context.reader.items_of_run(run_id) if item.is_pending]
    answer = Answer(item_id=item.id, verdict=Verdict.APPROVE, by="me", via="cli")
    await answer_item(answer, agents_of(context), context)
    await work(fleet, context)


def test_phase_that_is_done_again_hears_every_kept_phase_of_its_session(tmp_path: Path) -> None:
    async def scenario(fleet: Fleet, context: WorkerContext) -> None:
        first = await start("three", fleet, context)
        assert get_run(context.reader, first).status is RunStatus.FAILED
        heard = said_before(context, job_of(context, first, "check"))

        again = (await retry_run(RetryRun(run_id=first, by="me"), context)).run
        await work(fleet, context)
        last = (await retry_run(RetryRun(run_id=again.id, by="me"), context)).run
        await work(fleet, context)

        assert heard == 4
        assert said_before(context, job_of(context, again.id, "check")) == heard
        assert said_before(context, job_of(context, last.id, "check")) == heard

    run_scenario(tmp_path, scenario)


def test_forks_of_a_run_that_waits_do_not_hear_each_other(tmp_path: Path) -> None:
    async def scenario(fleet: Fleet, context: WorkerContext) -> None:
        first = await start("gated", fleet, context)
        fork = ForkRun(run_id=first, at_phase="ok", by="me")
        forks = [(await fork_run(fork, context)).run.id for _ in range(2)]
        of_fork = ForkRun(run_id=forks[0], at_phase="ok", by="me")
        forks += [(await fork_run(of_fork, context)).run.id]

        for run_id in (*forks, first):
            await approve(run_id, fleet, context)

        builds = [job_of(context, run_id, "build") for run_id in (*forks, first)]
        assert [said_before(context, job) for job in builds] == [2, 2, 2, 2]
        assert len({job.session_id for job in builds}) == 4

    run_scenario(tmp_path, scenario)


def test_session_that_nothing_continues_is_not_forked(tmp_path: Path) -> None:
    async def scenario(fleet: Fleet, context: WorkerContext) -> None:
        first = await start("looped", fleet, context)
        before = len(context.reader.list_sessions(SessionQuery(limit=100)))

        await retry_run(RetryRun(run_id=first, by="me"), context)

        after = context.reader.list_sessions(SessionQuery(limit=100))
        assert [one.id for one in after if one.parent_session_id is not None] == []
        assert len(after) == before + 1, "the session of the command"

    run_scenario(tmp_path, scenario)
