"""Workflow runs with little to say: short definitions, and the changes that take a run from phase to phase."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from nightherd.model.ids import WorkerId
from nightherd.model.inbox.changes import AnswerItem
from nightherd.model.inbox.item import InboxItem, ItemKind, Verdict
from nightherd.model.jobs.changes import LoseExecution, SettleExecution, StartExecution
from nightherd.model.jobs.job import ExitReason, Job
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals, Usage
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.conductor.concurrency import concurrency_key
from nightherd.model.workflows.conductor.pinned import pin
from nightherd.model.workflows.conductor.run_records import context_of
from nightherd.model.workflows.definition import (
    Action,
    AgentAction,
    GateAction,
    Phase,
    WaitAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.rows import WorkflowRun, phase_of
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.model.workflows.triggers import RunTrigger
from nightherd.ports import StateReader
from nightherd.testing.state_values import BEGINNING, SUCCESS

HOME = "/pasture"
WORKER = WorkerId("worker-00000001")
FAILURE = Outcome(exit_reason=ExitReason.ERROR, error="no grass", error_code="grass")
CANCELLED = Outcome(exit_reason=ExitReason.CANCELLED, error="cancelled", error_code="cancelled")
PRICE = MicroUsd(1_000)
"""What every job of a run costs."""
COST = Totals(turns=1, messages=2, usage=Usage(input_tokens=10, cost_microusd=PRICE))


def run_id(number: int) -> RunId:
    """The id of run `number`."""
    return RunId(f"run-{BEGINNING:%Y-%m-%d}-{number:06d}")


def instant(minute: float) -> datetime:
    """So many minutes after the beginning."""
    return BEGINNING + timedelta(minutes=minute)


def phase(name: str, action: Action, needs: str = "", **more: Any) -> Phase:
    """A phase that depends on the phases named in `needs`."""
    return Phase(name=name, action=action, depends_on=tuple(needs.split()), **more)


def job(name: str, needs: str = "", *, prompt: str = "go", **more: Any) -> Phase:
    """A phase that is a job of the agent `grazer`."""
    output = more.pop("output", None)
    return phase(name, AgentAction(agent="grazer", prompt=prompt, output=output), needs, **more)


def gate(name: str, needs: str = "", *, action: GateAction | None = None, **more: Any) -> Phase:
    """A phase that asks a person."""
    return phase(name, action or GateAction(summary=f"{name}?"), needs, **more)


def event(name: str, needs: str = "", **more: Any) -> Phase:
    """A phase that waits for the event `rain`."""
    return phase(name, WaitAction(event="rain"), needs, **more)


def workflow(*phases: Phase, name: str = "graze", **more: Any) -> WorkflowDefinition:
    """A workflow with these phases."""
    return WorkflowDefinition(name=name, phases=phases, **more)


def start_run(
    number: int,
    definition: WorkflowDefinition,
    *,
    inputs: Mapping[str, Any] | None = None,
    trigger: RunTrigger | None = None,
    dedupe_key: str | None = None,
) -> StartRun:
    """Start run `number`, at as many seconds after the beginning."""
    at = BEGINNING + timedelta(seconds=number)
    started_by = trigger or RunTrigger(id=f"issue/{number}", actor="ada")
    run = WorkflowRun(
        id=run_id(number),
        workflow_name=definition.name,
        trigger_id=started_by.id,
        trigger_type=started_by.type,
        status=RunStatus.QUEUED,
        current_phase="",
        started_at=at,
        updated_at=at,
        repo=started_by.repo,
        issue_number=started_by.issue_number,
        concurrency_key=concurrency_key(definition, inputs or {}, started_by),
        started_by=started_by.actor,
        dedupe_key=dedupe_key,
    )
    return StartRun(
        run=run,
        context=context_of(run.id, inputs or {}, started_by),
        pinned=pin(definition, {}, lambda value: value, at, HOME),
        max_runs=definition.concurrency.max_runs,
        when_busy=definition.concurrency.when_busy,
    )


def jobs_by_phase(reader: StateReader, number: int | RunId) -> dict[str, Job]:
    """The jobs of a run by the path of their phase, with iteration, item and attempt."""
    run = run_id(number) if isinstance(number, int) else number
    return {phase_of(one) or "": one for one in reader.jobs_of_run(run)}


def job_of(reader: StateReader, number: int | RunId, phase: str) -> Job:
    """The job of a phase of a run."""
    return jobs_by_phase(reader, number)[phase]


def begin(job: Job, minute: float = 1) -> StartExecution:
    """A worker takes the job."""
    return StartExecution(job_id=job.id, worker=WORKER, at=instant(minute))


def end(
    job: Job,
    minute: float = 2,
    *,
    answer: str | None = "Grazed.",
    outcome: Outcome = SUCCESS,
    epoch: int | None = None,
) -> SettleExecution:
    """The execution that began after `job` was read ends, successfully unless `outcome` says otherwise."""
    return SettleExecution(
        job_id=job.id,
        epoch=job.epoch + 1 if epoch is None else epoch,
        at=instant(minute),
        outcome=outcome,
        last_seq=7,
        total=COST,
        own=COST,
        answer=answer,
    )


def lose(job: Job, minute: float = 2, *, is_planned: bool = False) -> LoseExecution:
    """The execution that began after `job` was read is lost."""
    return LoseExecution(
        job_id=job.id,
        epoch=job.epoch + 1,
        at=instant(minute),
        reason="its worker is gone",
        max_restarts=60,
        last_seq=3,
        total=Totals(),
        own=Totals(),
        is_planned=is_planned,
    )


def gate_of(reader: StateReader, number: int | RunId, path: str) -> InboxItem:
    """The inbox item of a gate of a run."""
    run = run_id(number) if isinstance(number, int) else number
    (found,) = [one for one in reader.items_of_run(run) if one.node_id == f"{run}/{path}"]
    return found


def answer(
    item: InboxItem,
    verdict: Verdict | None = None,
    *,
    by: str = "ada",
    text: str | None = None,
    minute: float = 3,
    input: Mapping[str, Any] | None = None,
) -> AnswerItem:
    """A person answers a gate: approves it or replies, unless `verdict` says otherwise."""
    usual = Verdict.REPLY if item.kind is ItemKind.QUESTION else Verdict.APPROVE
    return AnswerItem(
        item_id=item.id,
        verdict=verdict or usual,
        by=by,
        via="test",
        at=instant(minute),
        text=text,
        input=input,
    )


def nodes(reader: StateReader, number: int | RunId) -> dict[str, str]:
    """The status of every node of a run by its path, with iteration, item and attempt."""
    run = run_id(number) if isinstance(number, int) else number
    return {one.id.removeprefix(f"{run}/"): one.status.value for one in reader.nodes_of_run(run)}


def found_run(reader: StateReader, number: int | RunId) -> WorkflowRun:
    """Run `number`."""
    run = reader.find_run(run_id(number) if isinstance(number, int) else number)
    assert run is not None
    return run


def in_turn(*phases: Phase) -> tuple[Phase, ...]:
    """The phases one after the other."""
    names = ["", *(one.name for one in phases)]
    return tuple(
        replace(one, depends_on=(before,) if before else ())
        for one, before in zip(phases, names[:-1], strict=True)
    )
