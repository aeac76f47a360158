"""`nightherd workflow run`: start a run, work on it here, and show it until it ends or waits."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import partial

import anyio
import click

from nightherd.cli.edge import abandon_output
from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import DURATION, Invocation, invocation_of, json_option
from nightherd.cli.jobs.command import OUT_OF_BUDGET, show_notices
from nightherd.cli.jobs.watch import stop_on_signals
from nightherd.cli.next_steps import command_for
from nightherd.cli.runs.actions import perform, show_started
from nightherd.cli.runs.inputs import inputs_option, read_run_inputs
from nightherd.cli.runs.show import wait_text
from nightherd.cli.runs.tail import EXIT_OF_RUN, show_line
from nightherd.cli.screen.render import Screen, length, neutralise, one_line
from nightherd.cli.workflows.dry_run import show_plan
from nightherd.cli.workflows.switch import workflow_argument
from nightherd.config.acceptance import ensure_recorded
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.operations.run_requests import StartWorkflow
from nightherd.engine.operations.runs import start_workflow
from nightherd.engine.operations.wait_run import wait_for_run
from nightherd.engine.workers.run_worker import RunWorker
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.errors import NotFoundError, RefusedError, UsageError, unwrapped
from nightherd.model.agents.agent import Fleet
from nightherd.model.jobs.job import SuspendReason
from nightherd.model.units import format_usd
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.model.workflows.triggers import complete_inputs
from nightherd.next_step import Action, NextStep
from nightherd.views.runs.document import RunView, run_document, show_run
from nightherd.views.runs.runs import took
from nightherd.views.runs.tail import RunFollower
from nightherd.wiring.machine import is_at_work, user_name
from nightherd.wiring.running import make_worker_loop, open_worker
from nightherd.wiring.stores import system_clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the command waits for the run."""

    is_shown: bool
    wait_timeout: timedelta | None


@click.command("run", epilog="Example: nightherd workflow run build --input topic=tests")
@workflow_argument
@inputs_option
@click.option("--follow", is_flag=True, help="Show progress until the run ends (the default).")
@click.option("--wait", is_flag=True, help="Show only the result.")
@click.option(
    "-d", "--detach", is_flag=True, help="Submit the run and return; a worker runs its jobs."
)
@click.option(
    "--wait-timeout",
    type=DURATION,
    help="Time to wait before leaving the run to a worker (exit code 8).",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="Show what would run; record nothing.")
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    name: str,
    inputs: tuple[str, ...],
    follow: bool,
    wait: bool,
    detach: bool,
    wait_timeout: timedelta | None,
    is_dry: bool,
) -> None:
    """Run a workflow and show its progress. Ends with the run, or when it waits for a person, an event or a later time.

    Works without a daemon too: the command runs the jobs itself. Ctrl-C cancels the run.
    """
    invocation = invocation_of(ctx)
    _check_ways(follow=follow, wait=wait, detach=detach, has_timeout=wait_timeout is not None)
    fleet = load_fleet_with_notices(invocation, is_run=not is_dry)
    definition = find_workflow(fleet, name)
    given = read_run_inputs(inputs, definition.inputs, invocation.cwd)
    complete, problems = complete_inputs(definition.inputs, given)
    if problems:
        raise UsageError(
            f"workflow {name!r}: " + "; ".join(one.message for one in problems),
            next_step=NextStep(Action.SHOW_WORKFLOW, workflow=name),
        )
    if is_dry:
        show_plan(invocation, fleet, definition, complete)
        return
    request = StartWorkflow(workflow=name, inputs=given, by=user_name())
    if detach:
        started = perform(invocation, fleet, lambda context: start_workflow(request, context))
        show_started(started, invocation)
        return
    screen = invocation.screen
    options = Options(is_shown=not (wait or screen.is_json), wait_timeout=wait_timeout)
    view = run_and_watch(invocation, fleet, request, options)
    try:
        show_result(view, screen)
    except BrokenPipeError:
        abandon_output()  # the exit code still says how the run ended
    ctx.exit(exit_code_of(view))


def _check_ways(*, follow: bool, wait: bool, detach: bool, has_timeout: bool) -> None:
    ways = (("--follow", follow), ("--wait", wait), ("--detach", detach))
    given = [name for name, is_given in ways if is_given]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} cannot be used together")
    if detach and has_timeout:
        raise UsageError("--wait-timeout has no effect with --detach")


def find_workflow(fleet: Fleet, name: str) -> WorkflowDefinition:
    """Return the workflow called `name`, or raise with the nearest names."""
    definition = fleet.workflows.get(name)
    if definition is not None:
        return definition
    if name in fleet.withheld_workflows:
        raise RefusedError(
            f"workflow {name!r} is new, and the change has not been accepted",
            next_step=NextStep(Action.ACCEPT_CONFIG),
        )
    near = get_close_matches(name, fleet.workflows, n=3) or list(fleet.workflows)[:5]
    there = f"; it has {', '.join(repr(one) for one in near)}" if near else ""
    raise NotFoundError(
        f"the fleet has no workflow {name!r}{there}", next_step=NextStep(Action.LIST_WORKFLOWS)
    )


def run_and_watch(
    invocation: Invocation,
    fleet: Fleet,
    request: StartWorkflow,
    options: Options,
) -> RunView:
    """Start the run and work on it until it ends or waits; show it on the way."""
    try:
        return anyio.run(_run_and_watch, invocation, fleet, request, options)
    except ExceptionGroup as group:
        raise unwrapped(group) from None


async def _run_and_watch(
    invocation: Invocation,
    fleet: Fleet,
    request: StartWorkflow,
    options: Options,
) -> RunView:
    screen, state_dir = invocation.screen, invocation.new_state_directory()
    async with (
        open_worker(state_dir, fleet, invocation.environ) as context,
        anyio.create_task_group() as tasks,
    ):
        ensure_recorded(fleet, state_dir, context.clock.now())
        stopper = Stopper()
        await tasks.start(partial(stop_on_signals, stopper, screen.say))
        started = await start_workflow(request, context)
        if options.is_shown:
            screen.say(f"{screen.err.dim('run')} {started.run.id}")
        if options.wait_timeout is not None:
            tasks.start_soon(_give_up_waiting, stopper, options.wait_timeout)
        watch = _Watch(context, started.run, screen, is_shown=options.is_shown)
        worker = _worker(fleet, context, screen, started.run.root)
        with closing(watch):
            async with anyio.create_task_group() as work:
                work.start_soon(worker.work)
                run = await wait_for_run(
                    started.run.id, context, by=user_name(), stopper=stopper, on_look=watch
                )
                worker.stop()
            watch(run)
        view = show_run(context.reader, run.id, context.clock.now(), is_at_work)
        show_notices(context, screen)
        tasks.cancel_scope.cancel()
    return view


async def _give_up_waiting(stopper: Stopper, after: timedelta) -> None:
    await anyio.sleep(after.total_seconds())
    stopper.hand_over()


def _worker(fleet: Fleet, context: WorkerContext, screen: Screen, run_id: RunId) -> RunWorker:
    """A worker that takes the jobs of the run alone."""
    reports = WorkerReports(
        on_start=lambda job: None,
        on_event=lambda job, event: None,
        on_end=lambda job: None,
        on_rescue=lambda job: screen.say(f"rescued {job.id} {job.agent}"),
        on_trouble=lambda text: screen.say(neutralise(text)),
    )

    def make_loop(context: WorkerContext, reports: WorkerReports) -> WorkerLoop:
        loop = make_worker_loop(fleet, context, reports, leaves_when_idle=False)
        loop.take_only(run_id)
        return loop

    return RunWorker(make_loop, context, reports, finishes_commands=False)


class _Watch:
    """Shows what happens in the run. A reader that goes away does not stop the run."""

    def __init__(
        self, context: WorkerContext, run: WorkflowRun, screen: Screen, *, is_shown: bool
    ) -> None:
        self._screen = screen
        self._is_shown = is_shown
        self._said = ""
        now = context.clock.now
        self._follower = RunFollower(context.reader, context.journals, run.id, now, last=None)

    def __call__(self, run: WorkflowRun) -> None:
        if run.status is RunStatus.QUEUED and not self._said:
            self._said = "waiting: another run of its workflow has to end first"
            self._screen.say(self._said)
        if not self._is_shown:
            return
        _, lines = self._follower.poll()
        try:
            for line in lines:
                show_line(line, self._screen)
        except BrokenPipeError:
            abandon_output()
            self._is_shown = False

    def close(self) -> None:
        self._follower.close()


def show_result(view: RunView, screen: Screen) -> None:
    """How the run ended, or what it waits for: the document for programs, else lines of talk."""
    run, now = view.run, system_clock().now()
    if screen.is_json:
        screen.document("workflow_run", run_document(view, now, spell=command_for), now)
        return
    status = screen.err.status(run.status.value)
    spent = f"{format_usd(view.cost)}, {length(took(run, now))}"
    screen.say(f"{status}, {spent}, nightherd runs show {run.id}")
    if run.error:
        screen.say(f"  {one_line(run.error)}")
    if run.status in (RunStatus.FAILED, RunStatus.CANCELLED):
        screen.say(f"  try: {screen.err.bold(f'nightherd runs retry {run.id}')}")
    for node, wait in view.waits if not run.is_terminal else ():
        screen.say(f"  {node.path} {wait_text(wait, screen)}")
        answer = wait.advice.text(command_for)
        if answer is not None:
            screen.say(f"    try: {screen.err.bold(answer)}")
    if run.status in (RunStatus.RUNNING, RunStatus.QUEUED):
        screen.say("  it is left to a worker: nightherd worker --until-idle, or nightherd start")


def exit_code_of(view: RunView) -> int:
    """What the command ends with when the run stands so; 6 when only limits stop it."""
    limits = (SuspendReason.LIMIT, SuspendReason.BUDGET)
    jobs = [node.job for node, _ in view.waits]
    is_limited = all(job is not None and job.suspend_reason in limits for job in jobs)
    if view.run.status is RunStatus.PAUSED and jobs and is_limited:
        return OUT_OF_BUDGET
    return EXIT_OF_RUN[view.run.status]
