"""One job of a command: recorded, then run and watched here, or left to a worker."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import partial

import anyio
import click

from nightherd.cli.edge import abandon_output
from nightherd.cli.invocation import Invocation, invocation_of
from nightherd.cli.jobs.list import observed
from nightherd.cli.jobs.watch import show_text, stop_on_signals, watching
from nightherd.cli.next_steps import command_for
from nightherd.cli.operations import FleetClient, open_client
from nightherd.cli.screen.render import Screen, Style, length, neutralise, one_line
from nightherd.config.acceptance import ensure_recorded
from nightherd.daemon.record import find_daemon
from nightherd.engine.contexts import Stores
from nightherd.engine.jobs.oversight import Stopper
from nightherd.engine.operations.requests import NewJobRequest
from nightherd.engine.operations.wait import run_and_wait
from nightherd.errors import AgentNotFoundError, InterruptedRunError, JobTimeoutError, unwrapped
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.jobs.decisions import INTERRUPTED
from nightherd.model.jobs.failure import advice_on
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, JobTexts, SuspendReason
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.jobs.retry import KEEPS_A_CLOCK
from nightherd.model.sessions.order import ahead_text
from nightherd.model.text import counted
from nightherd.model.units import format_usd
from nightherd.views.jobs.document import result_document
from nightherd.views.jobs.jobs import job_row, observe_job
from nightherd.views.jobs.troubles import NO_TROUBLES, Troubles, troubles_of
from nightherd.wiring.files import write_output_log
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.running import open_worker, rescuer
from nightherd.wiring.stores import open_job_list, system_clock

EXIT_OF_STATUS = {
    JobStatus.COMPLETED: 0,
    JobStatus.FAILED: 1,
    JobStatus.CANCELLED: InterruptedRunError.exit_code,
    JobStatus.SUSPENDED: 8,
    JobStatus.PENDING: 8,
    JobStatus.RUNNING: 8,
}
OUT_OF_BUDGET = 6
RATE_LIMITED = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The job as it ended, with its long texts."""

    job: ObservedJob
    texts: JobTexts | None
    troubles: Troubles = NO_TROUBLES
    """The calls it was not allowed to make, and its hooks that failed."""


def find_agent(fleet: Fleet, name: str, *, command: str | None = None) -> Agent:
    """The agent called `name`, or `AgentNotFoundError` with the nearest names.

    Where `command` was meant for it, the same for an agent that is called nearly so is what to try.
    """
    agent = fleet.agents.get(name)
    if agent is not None:
        return agent
    near = get_close_matches(name, fleet.agents, n=3)
    there = near or list(fleet.agents)[:5]
    message = f"the fleet has no agent {name!r}"
    if there:
        message += f"; it has {', '.join(repr(one) for one in there)}"
    is_meant = command is not None and near
    raise AgentNotFoundError(
        message, hint=f"{command} {near[0]}" if is_meant else "nightherd agent list"
    )


def run_or_enqueue(
    ctx: click.Context,
    fleet: Fleet,
    request: NewJobRequest,
    *,
    detach: bool,
    quiet: bool,
    is_shown: bool = True,
    wait_timeout: timedelta | None = None,
    writes_log: bool = False,
) -> None:
    """Record the job and leave it to a worker, or run it here and end with its exit code."""
    invocation = invocation_of(ctx)
    screen, client = invocation.screen, open_client(invocation, fleet)
    if detach:
        show_launch(client.perform(request), invocation)
        return
    is_watched = is_shown and not (quiet or screen.is_json)
    finished = run_and_watch(
        client, request, screen, is_shown=is_watched, wait_timeout=wait_timeout
    )
    try:
        if writes_log:
            screen.say(f"log {write_output_log(client.state_dir, finished.job.id)}")
        show_result(finished, screen, is_quiet=quiet)
    except BrokenPipeError:
        # The reader has closed the pipe; the exit code still says how the job ended.
        abandon_output()
    ctx.exit(exit_code_of(finished.job))


def run_and_watch(
    client: FleetClient,
    request: NewJobRequest,
    screen: Screen,
    *,
    is_shown: bool,
    wait_timeout: timedelta | None = None,
) -> Finished:
    """Record the job, run it to its end and show it on the way. Ctrl-C cancels it.

    After `wait_timeout` it is left to a worker.
    """
    agent = client.check(request)
    try:
        return anyio.run(_run_and_watch, client, request, agent, screen, is_shown, wait_timeout)
    except ExceptionGroup as group:
        raise unwrapped(group) from None


async def _run_and_watch(
    client: FleetClient,
    request: NewJobRequest,
    agent: Agent,
    screen: Screen,
    is_shown: bool,
    wait_timeout: timedelta | None,
) -> Finished:
    fleet, state_dir = client.known_fleet(), client.state_dir
    with watching(screen, agent.name, is_shown=is_shown) as watcher:
        async with (
            open_worker(state_dir, fleet, client.environ) as context,
            anyio.create_task_group() as tasks,
        ):
            ensure_recorded(fleet, state_dir, context.clock.now())
            stopper = Stopper()
            await tasks.start(partial(stop_on_signals, stopper, watcher.say))

            def begin(job: Job) -> None:
                watcher.begin(job)
                if wait_timeout is not None:
                    tasks.start_soon(_give_up_waiting, stopper, wait_timeout)
                if is_shown:
                    watcher.say(f"{screen.err.dim('job')} {job.id}")
                if is_shown and screen.is_terminal:
                    tasks.start_soon(show_text, watcher, job.id, context.journals)

            job = await run_and_wait(
                request,
                context,
                rescue=rescuer(context, fleet),
                stopper=stopper,
                on_job=begin,
                on_event=watcher,
                on_wait=partial(show_waiting, screen),
            )
            texts = context.reader.find_texts(job.id)
            troubles = troubles_of(job, context.journals)
            seen = observe_job(context.reader, job, is_at_work, context.clock.now())
            show_notices(context, screen)
            tasks.cancel_scope.cancel()
    return Finished(job=seen, texts=texts, troubles=troubles)


async def _give_up_waiting(stopper: Stopper, after: timedelta) -> None:
    await anyio.sleep(after.total_seconds())
    stopper.hand_over()


def show_launch(job: Job, invocation: Invocation) -> None:
    """The one record of a job that is durable and waits."""
    screen, now = invocation.screen, system_clock().now()
    if screen.is_json:
        seen = observed(job, invocation.state_directory(), now)
        screen.document(
            "launch", {**job_row(seen), **result_document(seen, None, spell=command_for)}, now
        )
        return
    screen.show(job.id)
    screen.flush()
    show_waits(job, invocation)


def show_waits(job: Job, invocation: Invocation) -> None:
    """What to do about a job that was left to a worker: watch it where one is always there."""
    with closing(open_job_list(invocation.state_directory())) as reader:
        ahead = reader.jobs_ahead(job, 1) if job.status is JobStatus.PENDING else ()
    if ahead:
        show_waiting(invocation.screen, ahead_text(ahead[0], invocation.screen.time, command_for))
    if find_daemon(invocation.state_directory()) is None:
        invocation.screen.say("no worker is running; run it now: nightherd worker --until-idle")
    else:
        invocation.screen.say(f"watch: nightherd jobs tail {job.id} -f")


def show_notices(context: Stores, screen: Screen) -> None:
    """What the store met with on the way: a frozen process killed, changes put back."""
    for notice in context.state.take_notices():
        screen.say(f"notice: {notice}")


def show_waiting(screen: Screen, reason: str) -> None:
    """Why the job has not begun yet."""
    screen.say(f"waiting: {reason}")


def show_result(finished: Finished, screen: Screen, *, is_quiet: bool) -> None:
    """How it ended: the document for programs, the bare answer when quiet, else a line of talk."""
    job, now = finished.job, system_clock().now()
    if screen.is_json:
        document = result_document(job, finished.texts, finished.troubles, spell=command_for)
        screen.document("run", document, now)
        return
    answer = (finished.texts.summary if finished.texts else None) or job.summary
    if is_quiet and answer:
        screen.show(neutralise(answer))
        screen.flush()
    if finished.troubles.denials:
        count = counted(len(finished.troubles.denials), "call")
        screen.say(f"{count} denied: nightherd jobs show {job.id}")
    if finished.troubles.failed_hooks:
        count = counted(len(finished.troubles.failed_hooks), "hook")
        screen.say(f"{count} failed: nightherd jobs show {job.id}")
    if is_quiet and job.status is JobStatus.COMPLETED:
        return
    screen.say(f"{result_line(job, screen.err)}, nightherd jobs show {job.id}")
    # The events show how a run ends, but not that it was interrupted.
    if job.error and (is_quiet or job.error_code == INTERRUPTED):
        screen.say(f"  {one_line(job.error)}")
    if job.resumes_at is not None:
        at = screen.time(job.resumes_at)
        screen.say(f"  it resumes by itself at {at} if a daemon or a worker runs then")
    advice = advice_on(job).text(command_for)
    if advice is not None:
        screen.say(f"  try: {screen.err.bold(advice)}")


def result_line(job: ObservedJob, style: Style) -> str:
    """How the job ended, or why it waits, and what it took, on one line."""
    why = job.exit_reason or job.suspend_reason
    reason = f" ({why.value})" if why else ""
    turns = counted(job.turns, "turn")
    cost = format_usd(job.cost_microusd)
    return f"{style.status(job.status.value)}{reason}, {turns}, {cost}, {length(job.worked)}"


def exit_code_of(job: Job) -> int:
    """What the command ends with when the job stands so."""
    if job.exit_reason is ExitReason.TIMEOUT:
        return JobTimeoutError.exit_code
    if job.exit_reason is ExitReason.LIMIT:
        return OUT_OF_BUDGET
    if job.status is JobStatus.FAILED and job.error_code in KEEPS_A_CLOCK:
        return RATE_LIMITED
    if job.status is JobStatus.SUSPENDED and job.suspend_reason in (
        SuspendReason.LIMIT,
        SuspendReason.BUDGET,
    ):
        return OUT_OF_BUDGET
    return EXIT_OF_STATUS[job.status]
