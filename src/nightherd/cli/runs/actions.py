"""`nightherd runs cancel`, `retry`, `resume`, `fork`, `signal` and `raise`: commands that change a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any, TypeVar

import anyio
import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.limits.options import read_limits
from nightherd.cli.runs.inputs import inputs_option, read_run_inputs
from nightherd.cli.runs.list import run_argument
from nightherd.config.acceptance import ensure_recorded
from nightherd.daemon.record import find_daemon
from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.resume_run import ResumedRun, resume_run
from nightherd.engine.operations.run_again import fork_run, retry_run
from nightherd.engine.operations.run_requests import (
    CancelRun,
    ForkRun,
    RaiseRunLimits,
    ResumeRun,
    RetryRun,
    SendRunEvent,
    run_gives_more,
)
from nightherd.engine.operations.runs import Started, cancel_run, raise_run_limits, send_event
from nightherd.errors import InvalidValueError, UsageError
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.json_text import parse_json
from nightherd.model.text import counted
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.views.runs.outputs import definition_of
from nightherd.views.runs.runs import find_run, find_run_id, run_row
from nightherd.wiring.machine import refuse_agents, user_name
from nightherd.wiring.running import open_fleet_context, rescuer, rescuer_of_job
from nightherd.wiring.stores import open_reader, system_clock

ResultT = TypeVar("ResultT")
Operation = Callable[[FleetContext], Awaitable[ResultT]]


def perform(invocation: Invocation, fleet: Fleet | None, operation: Operation[ResultT]) -> ResultT:
    """Carry out an operation on the state directory; the workers of a daemon notice what it changed."""
    return anyio.run(_perform, invocation, fleet, operation)


async def _perform(
    invocation: Invocation, fleet: Fleet | None, operation: Operation[ResultT]
) -> ResultT:
    state_dir = invocation.new_state_directory()
    async with open_fleet_context(state_dir, fleet, invocation.environ) as context:
        if fleet is not None:
            ensure_recorded(fleet, state_dir, context.clock.now())
        return await operation(context)


def named_run(invocation: Invocation, reference: str) -> WorkflowRun:
    """Return the run that a reference means."""
    with closing(open_reader(invocation.state_directory())) as reader:
        return find_run(reader, find_run_id(reader, reference))


@click.command("cancel", epilog="Example: nightherd runs cancel @last")
@run_argument
@json_option
@click.pass_obj
def cancel(invocation: Invocation, run: str) -> None:
    """Cancel a run. What waits in it ends at once; running jobs are stopped by their workers."""
    request = CancelRun(run_id=named_run(invocation, run).id, by=user_name())

    async def operation(context: FleetContext) -> WorkflowRun:
        cancelled = await cancel_run(request, context)
        for job_id in _running_jobs(context, request.run_id):
            # A worker that is gone stops nothing: then its job ends here, as cancelled.
            await rescuer_of_job(context, job_id)()
        return context.reader.find_run(request.run_id) or cancelled

    cancelled = perform(invocation, None, operation)
    screen = invocation.screen
    if screen.is_json:
        _show_document(cancelled, invocation)
    elif cancelled.is_terminal:
        screen.show(f"cancelled {cancelled.id}")
    else:
        screen.show(f"{cancelled.id} ends as soon as its workers have stopped its jobs")
        screen.flush()
        screen.say(f"watch: nightherd runs tail {cancelled.id} -f")


def _running_jobs(context: FleetContext, run_id: RunId) -> list[JobId]:
    jobs = [job.id for job in context.reader.jobs_of_run(run_id) if job.status is JobStatus.RUNNING]
    for child in context.reader.runs_of_parent(run_id):
        jobs += _running_jobs(context, child.id)
    return jobs


@click.command("retry", epilog="Example: nightherd runs retry @last-failed")
@run_argument
@json_option
@click.pass_obj
def retry(invocation: Invocation, run: str) -> None:
    """Run what is left of an ended run. The new run keeps the phases that are done and runs the others again."""
    request = RetryRun(run_id=named_run(invocation, run).id, by=user_name())
    fleet = load_fleet_with_notices(invocation, is_run=True)
    show_started(
        perform(invocation, fleet, lambda context: retry_run(request, context)), invocation
    )


@click.command("resume", epilog="Example: nightherd runs resume @last")
@run_argument
@json_option
@click.pass_obj
def resume(invocation: Invocation, run: str) -> None:
    """Resume the jobs of a run. Suspended jobs continue; what waits for an answer still waits."""
    request = ResumeRun(run_id=named_run(invocation, run).id)
    fleet = load_fleet_with_notices(invocation, is_run=True)

    async def operation(context: FleetContext) -> ResumedRun:
        return await resume_run(request, context, rescue=rescuer(context, fleet))

    resumed = perform(invocation, fleet, operation)
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        jobs = [job.id for job in resumed.jobs]
        refused = [error.message for error in resumed.refused]
        row = {**run_row(resumed.run, now), "resumed_jobs": jobs, "refused": refused}
        screen.document("workflow_run", row, now)
        return
    screen.show(f"resumed {counted(len(resumed.jobs), 'job')} of {resumed.run.id}")
    screen.flush()
    for error in resumed.refused:
        screen.say(error.message)
    _say_who_runs_it(resumed.run, invocation)


@click.command("fork", epilog="Example: nightherd runs fork @last --at review --input branch=main")
@run_argument
@click.option("--at", "phase", metavar="PHASE", required=True, help="Run this phase anew.")
@inputs_option
@json_option
@click.pass_obj
def fork(invocation: Invocation, run: str, phase: str, inputs: tuple[str, ...]) -> None:
    """Fork a run at a phase. The new run keeps what is done, except that phase and all that depends on it."""
    with closing(open_reader(invocation.state_directory())) as reader:
        forked = find_run(reader, find_run_id(reader, run))
        definition = definition_of(reader, forked)
    specs = {} if definition is None else definition.inputs
    values = read_run_inputs(inputs, specs, invocation.cwd) if inputs else None
    request = ForkRun(run_id=forked.id, at_phase=phase, by=user_name(), inputs=values)
    more = run_gives_more(request)
    if more is not None:
        refuse_agents(invocation.state_directory(), more)
    fleet = load_fleet_with_notices(invocation, is_run=True)
    show_started(perform(invocation, fleet, lambda context: fork_run(request, context)), invocation)


@click.command(
    "signal", epilog="Example: nightherd runs signal @last deployed --payload '{\"v\": 2}'"
)
@run_argument
@click.argument("event", metavar="EVENT")
@click.option("--payload", metavar="JSON", help="Value of the event, as JSON.")
@click.option("--key", metavar="TEXT", help="Send the event only once under this key.")
@json_option
@click.pass_obj
def signal(
    invocation: Invocation, run: str, event: str, payload: str | None, key: str | None
) -> None:
    """Send an event to a run. The phase that waits for it, or will wait for it, takes it."""
    request = SendRunEvent(
        run_id=named_run(invocation, run).id,
        name=event,
        by=user_name(),
        payload=None if payload is None else _json(payload),
        key=key,
    )
    fleet = load_fleet_with_notices(invocation, is_run=True)
    sent = perform(invocation, fleet, lambda context: send_event(request, context))
    if invocation.screen.is_json:
        _show_document(sent, invocation)
        return
    invocation.screen.show(f"sent {event} to {sent.id}")
    invocation.screen.flush()
    _say_who_runs_it(sent, invocation)


def _json(text: str) -> Any:
    try:
        return parse_json(text)
    except InvalidValueError as error:
        raise UsageError(
            f"--payload is not JSON: {error.message}", hint="--payload '\"text\"'"
        ) from error


@click.command("raise", epilog="Example: nightherd runs raise @last spend=5")
@run_argument
@click.argument("limits", metavar="LIMIT=MAXIMUM...", nargs=-1, required=True)
@json_option
@click.pass_obj
def raise_limit(invocation: Invocation, run: str, limits: tuple[str, ...]) -> None:
    """Raise a limit of a run. Jobs that wait for it continue."""
    refuse_agents(invocation.state_directory(), "raising a limit")
    given = read_limits(limits, option="LIMIT=MAXIMUM") or {}
    request = RaiseRunLimits(run_id=named_run(invocation, run).id, limits=given)
    fleet = load_fleet_with_notices(invocation, is_run=True, accepts=False)
    raised = perform(invocation, fleet, lambda context: raise_run_limits(request, context))
    if invocation.screen.is_json:
        _show_document(raised, invocation)
        return
    invocation.screen.show(f"raised {', '.join(limits)} of {raised.id}")
    invocation.screen.flush()
    _say_who_runs_it(raised, invocation)


def show_started(started: Started, invocation: Invocation) -> None:
    """The run that was started, and how to follow it."""
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        row = {**run_row(started.run, now), "is_new": started.is_new}
        screen.document("workflow_run", row, now)
        return
    screen.show(started.run.id)
    screen.flush()
    _say_who_runs_it(started.run, invocation)


def _say_who_runs_it(run: WorkflowRun, invocation: Invocation) -> None:
    if run.is_terminal:
        return
    if run.status is RunStatus.PAUSED:
        invocation.screen.say(f"it waits: nightherd runs show {run.id}")
    elif find_daemon(invocation.state_directory()) is None:
        invocation.screen.say("no worker is running; run it now: nightherd worker --until-idle")
    else:
        invocation.screen.say(f"watch: nightherd runs tail {run.id} -f")


def _show_document(run: WorkflowRun, invocation: Invocation) -> None:
    now = system_clock().now()
    invocation.screen.document("workflow_run", run_row(run, now), now)
