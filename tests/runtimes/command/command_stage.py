"""A directory to run commands in: by the runtime alone, and as jobs of a real state directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.inbox import answer_item
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.engine.operations.requests import Answer
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem, InboxQuery, InboxTexts, Verdict
from nightherd.model.jobs.job import Execution, Job, JobQuery
from nightherd.model.jobs.options import NO_OPTIONS, JobOptions
from nightherd.model.journal.event import Event, ToolResultEvent, ToolUseEvent
from nightherd.model.workflows.command import COMMANDS_AGENT, CommandSpec, commands_agent
from nightherd.model.workflows.definition import Language
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.command.capabilities import COMMAND
from nightherd.runtimes.command.runtime import CommandRuntime
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.wiring.running import open_worker
from nightherd.wiring.stores import open_journals, open_reader
from runtimes.stage import EXECUTION, JOB, QUICK

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def bash(command: str, **more: Any) -> CommandSpec:
    return CommandSpec(language=Language.BASH, command=command, **more)


def python(command: str, **more: Any) -> CommandSpec:
    return CommandSpec(language=Language.PYTHON, command=command, **more)


def commands_fleet(folder: Path) -> Fleet:
    """A fleet that has nothing but the built-in agent."""
    agent = commands_agent(COMMAND, str(folder), max_concurrent=1)
    return Fleet(
        file=str(folder / "nightherd.yaml"),
        agents={agent.name: agent},
        mirror=False,
        cancel_grace=timedelta(milliseconds=200),
    )


@dataclass(frozen=True)
class CommandStage:
    """Runs commands in `directory` with the runtime alone."""

    directory: Path
    keepers: Keepers = field(default_factory=Keepers)
    environment: Mapping[str, str] = field(default_factory=lambda: ENVIRONMENT)

    def request(self, inputs: Mapping[str, Any], **more: Any) -> RuntimeRequest:
        return RuntimeRequest(
            job_id=JOB,
            execution=EXECUTION,
            agent=commands_agent(COMMAND, str(self.directory), max_concurrent=1),
            prompt="a command",
            environment=self.environment,
            inputs=inputs,
            **more,
        )

    def run(self, spec: CommandSpec, **more: Any) -> list[Event]:
        """Every event of running the command."""
        return self.run_inputs(spec.to_inputs(), **more)

    def run_inputs(self, inputs: Mapping[str, Any], **more: Any) -> list[Event]:
        """Every event of a job with these inputs."""

        async def collect() -> list[Event]:
            runtime = CommandRuntime(keepers=self.keepers, grace=QUICK)
            async with aclosing(runtime.execute(self.request(inputs, **more))) as events:
                return [event async for event in events]

        return anyio.run(collect)


@dataclass(frozen=True)
class CommandJobs:
    """Commands as jobs of a state directory in `folder`; each call opens it anew, as another process would."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / ".nightherd"

    def submit(self, spec: CommandSpec, options: JobOptions = NO_OPTIONS) -> JobId:
        async def go() -> JobId:
            fleet = commands_fleet(self.folder)
            async with open_worker(self.state, fleet, ENVIRONMENT) as context:
                draft = JobDraft(
                    agent=fleet.agents[COMMANDS_AGENT],
                    prompt=spec.command,
                    inputs=spec.to_inputs(),
                    overrides=options,
                )
                return (await record_job(draft, context)).job.id

        return anyio.run(go)

    def execute(self, job_id: JobId, on_event: Callable[[Event], None] = lambda event: None) -> Job:
        async def go() -> Job:
            fleet = commands_fleet(self.folder)
            async with open_worker(self.state, fleet, ENVIRONMENT) as context:
                agent = fleet.agents[COMMANDS_AGENT]
                return await run_job(job_id, agent, context, on_event=on_event)

        return anyio.run(go)

    def run(self, spec: CommandSpec, options: JobOptions = NO_OPTIONS) -> Job:
        return self.execute(self.submit(spec, options))

    def answer(self, verdict: Verdict, **more: Any) -> None:
        """Answer the only item that waits."""
        (item,) = self.waiting()
        request = Answer(item_id=item.id, verdict=verdict, by="ada", via="test", **more)

        async def go() -> None:
            fleet = commands_fleet(self.folder)
            async with open_worker(self.state, fleet, ENVIRONMENT) as context:
                await answer_item(request, agents_of(context), context)

        anyio.run(go)

    # What there is

    def waiting(self) -> list[InboxItem]:
        reader = open_reader(self.state)
        try:
            return list(reader.list_items(InboxQuery()))
        finally:
            reader.close()

    def asked(self) -> InboxTexts:
        """The texts of the only item that waits."""
        (item,) = self.waiting()
        reader = open_reader(self.state)
        try:
            texts = reader.find_item_texts(item.id)
        finally:
            reader.close()
        assert texts is not None
        return texts

    def job(self) -> Job:
        """The only job."""
        reader = open_reader(self.state)
        try:
            (job,) = reader.list_jobs(JobQuery(limit=10))
        finally:
            reader.close()
        return job

    def executions(self, job_id: JobId) -> list[Execution]:
        reader = open_reader(self.state)
        try:
            return list(reader.list_executions(job_id))
        finally:
            reader.close()

    def summary(self, job_id: JobId) -> str | None:
        reader = open_reader(self.state)
        try:
            texts = reader.find_texts(job_id)
        finally:
            reader.close()
        assert texts is not None
        return texts.summary

    def journal(self, job_id: JobId) -> list[Event]:
        return list(open_journals(self.state).read(job_id))


def calls_in(events: list[Event]) -> list[ToolUseEvent]:
    return [event for event in events if isinstance(event, ToolUseEvent)]


def results_in(events: list[Event]) -> list[ToolResultEvent]:
    return [event for event in events if isinstance(event, ToolResultEvent)]
