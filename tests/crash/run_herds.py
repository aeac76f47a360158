"""Workflows in a fleet of counting agents: runs are started and answered here, and worked on by real processes."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.agents import Agents
from nightherd.engine.operations.inbox import answer_item
from nightherd.engine.operations.requests import Answer
from nightherd.engine.operations.run_again import retry_run
from nightherd.engine.operations.run_requests import CancelRun, RetryRun, StartWorkflow
from nightherd.engine.operations.runs import cancel_run, start_workflow
from nightherd.model.agents.agent import Fleet
from nightherd.model.inbox.item import InboxItem, ItemKind, Verdict
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.testing.run_values import found_run, gate_of, nodes
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_fleet_context
from nightherd.wiring.stores import open_reader
from surfaces.drivers import Shell

ValueT = TypeVar("ValueT")
PATIENCE_S = 60.0

FLEET = """\
fleet:
  name: farm
lease: 12s
heartbeat: 100ms

agents:
  - name: hand
    runtime: scripted
    allowed_tools: [Bash]
    instances: {max_concurrent: 8}
    script:
      - tool: Bash
        input: {command: "echo ${prompt} >> counter; while [ -e hold-${prompt} ]; do sleep 0.02; done"}
      - say: did ${prompt}
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.001}
"""
THREE = """\
phases:
  - {name: dig, agent: hand, prompt: dig}
  - {name: sow, agent: hand, prompt: sow}
  - {name: mow, agent: hand, prompt: mow}
"""


def agents_of(context: FleetContext) -> Agents:
    return Agents(
        agents=context.agents,
        withheld=context.withheld,
        is_same_directory=context.is_same_directory,
        keeps_transcripts=lambda name: False,
    )


class RunHerd:
    """A directory with a fleet and workflows, and every process a test has started in it."""

    def __init__(self, folder: Path, workflows: dict[str, str], fleet: str = FLEET) -> None:
        self.folder = folder
        self.state = folder / ".nightherd"
        self.shell = Shell(folder)
        (folder / "nightherd.yaml").write_text(fleet)
        for name, text in workflows.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        """A workflow file."""
        file = self.folder / "workflows" / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def fleet(self) -> Fleet:
        return load_fleet(self.folder / "nightherd.yaml", environ={}, cwd=self.folder).fleet

    # What people do

    def do(self, work: Callable[[FleetContext], Awaitable[ValueT]]) -> ValueT:
        """Carry out an operation on the state directory, as commands do."""

        async def main() -> ValueT:
            async with open_fleet_context(self.state, self.fleet(), os.environ) as context:
                return await work(context)

        return anyio.run(main)

    def start(self, workflow: str, key: str | None = None, **inputs: Any) -> RunId:
        request = StartWorkflow(workflow=workflow, inputs=inputs, by="ada", dedupe_key=key)
        return self.do(lambda context: start_workflow(request, context)).run.id

    def cancel(self, run_id: RunId) -> WorkflowRun:
        request = CancelRun(run_id=run_id, by="ada")
        return self.do(lambda context: cancel_run(request, context))

    def retry(self, run_id: RunId) -> RunId:
        request = RetryRun(run_id=run_id, by="ada")
        return self.do(lambda context: retry_run(request, context)).run.id

    def answer(
        self, run_id: RunId, gate: str, verdict: Verdict | None = None, text: str | None = None
    ) -> None:
        item = self.gate(run_id, gate)
        usual = Verdict.REPLY if item.kind is ItemKind.QUESTION else Verdict.APPROVE
        request = Answer(item_id=item.id, verdict=verdict or usual, by="ada", via="test", text=text)
        self.do(lambda context: answer_item(request, agents_of(context), context))

    def hold(self, *tags: str) -> None:
        """Calls that go on until they are let go."""
        for tag in tags:
            (self.folder / f"hold-{tag}").touch()

    def let_go(self, *tags: str) -> None:
        for tag in tags:
            (self.folder / f"hold-{tag}").unlink()

    # Workers

    def worker(self) -> subprocess.Popen[bytes]:
        """A worker that is at work."""
        started = self.shell.start("worker", stderr=subprocess.PIPE)
        assert started.stderr is not None
        line = started.stderr.readline().decode()
        assert "is running" in line, line + started.stderr.read().decode()
        return started

    def work(self, count: int = 1) -> None:
        """So many workers do everything there is to do."""
        started = [
            self.shell.start("worker", "--until-idle", stderr=subprocess.PIPE) for _ in range(count)
        ]
        for worker in started:
            _, talk = worker.communicate()
            assert worker.returncode == 0, talk.decode()

    def kill_in(self, tag: str) -> None:
        """A worker begins the call of that tag and is killed in it."""
        self.hold(tag)
        worker = self.worker()
        self.wait_for_call(tag)
        worker.kill()
        worker.wait()
        self.let_go(tag)

    # What there is

    def read(self, ask: Callable[[Any], ValueT]) -> ValueT:
        reader = open_reader(self.state)
        try:
            return ask(reader)
        finally:
            reader.close()

    def run(self, run_id: RunId) -> WorkflowRun:
        return self.read(lambda reader: found_run(reader, run_id))

    def nodes(self, run_id: RunId) -> dict[str, str]:
        return self.read(lambda reader: nodes(reader, run_id))

    def gate(self, run_id: RunId, path: str) -> InboxItem:
        return self.read(lambda reader: gate_of(reader, run_id, path))

    def items(self, run_id: RunId) -> Sequence[InboxItem]:
        return self.read(lambda reader: reader.items_of_run(run_id))

    def epochs(self, run_id: RunId) -> dict[str, int]:
        """How often the job of each phase was executed."""
        jobs = self.read(lambda reader: reader.jobs_of_run(run_id))
        return {str(job.node_id).removeprefix(f"{run_id}/"): job.epoch for job in jobs}

    def counted(self, file: str = "counter") -> Counter[str]:
        counter = self.folder / file
        return Counter(counter.read_text().split()) if counter.exists() else Counter()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until, "it never came"
            time.sleep(0.02)

    def wait_for_call(self, tag: str) -> None:
        self.wait_until(lambda: tag in self.counted())

    def wait_for(self, run_id: RunId, status: RunStatus) -> None:
        self.wait_until(lambda: self.run(run_id).status is status)
