"""The worker of a caller that waits for a run: what it leaves, another worker can continue."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.run_requests import StartWorkflow
from nightherd.engine.operations.runs import start_workflow
from nightherd.engine.workers.run_worker import RunWorker
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import AssistantEvent, Event
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import make_worker_loop, open_worker
from web.web_world import until

FLEET = """\
agents:
  - name: sleeper
    runtime: scripted
    script: [{say: sleeping}, {sleep: 600s}]
workflows:
  commands:
    phases: [{name: hold, bash: "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo held"}]
  agents:
    phases: [{name: nap, agent: sleeper, prompt: go}]
  both:
    phases:
      - {name: nap, agent: sleeper, prompt: go, depends_on: []}
      - {name: hold, bash: "touch begun; while [ ! -e go ]; do sleep 0.02; done", depends_on: []}
"""


@pytest.mark.parametrize(
    ("workflow", "ends"),
    [
        ("commands", {"hold": JobStatus.COMPLETED}),
        ("agents", {"nap": JobStatus.PENDING}),
        ("both", {"hold": JobStatus.COMPLETED, "nap": JobStatus.PENDING}),
    ],
)
def test_a_worker_that_leaves_finishes_commands_and_hands_agents_over(
    tmp_path: Path, workflow: str, ends: dict[str, JobStatus]
) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    fleet = load_fleet(tmp_path / "nightherd.yaml", environ={}, cwd=tmp_path).fleet
    said: list[Event] = []

    async def main() -> None:
        environ = {"PATH": os.environ["PATH"]}

        async def is_busy() -> bool:
            has_begun = "hold" not in ends or (tmp_path / "begun").exists()
            naps = any(isinstance(event, AssistantEvent) for event in said)
            return has_begun and ("nap" not in ends or naps)

        def ignore(*_: object) -> None:
            """Nothing is shown."""

        reports = WorkerReports(
            on_start=ignore,
            on_event=lambda job, event: said.append(event),
            on_end=ignore,
            on_rescue=ignore,
            on_trouble=ignore,
        )

        def make_loop(context: WorkerContext, reports: WorkerReports) -> WorkerLoop:
            return make_worker_loop(fleet, context, reports, leaves_when_idle=False)

        async with open_worker(tmp_path / ".nightherd", fleet, environ) as context:
            request = StartWorkflow(workflow=workflow, by="tester")
            run_id = (await start_workflow(request, context)).run.id
            worker = RunWorker(make_loop, context, reports)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(worker.work)
                await until(is_busy)
                worker.stop()
                (tmp_path / "go").touch()
            jobs = {
                (job.node_id or "").removeprefix(f"{run_id}/"): job.status
                for job in context.reader.jobs_of_run(run_id)
            }
            items = context.reader.items_of_run(run_id)

        assert jobs == ends
        assert list(items) == []

    anyio.run(main)
