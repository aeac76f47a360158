"""`nightherd run`: one job for one agent, recorded before it runs, watched until it ends."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import anyio
import click

from nightherd.cli.complete import complete_agents
from nightherd.cli.edge import INTERRUPTED, abandon_output
from nightherd.cli.fleet import load_fleet_told
from nightherd.cli.invocation import Invocation
from nightherd.cli.options import json_option
from nightherd.cli.prompt import read_inputs, read_prompt
from nightherd.cli.render import Screen, Style
from nightherd.cli.text import length, neutralise, one_line
from nightherd.cli.watch import stop_on_signals, watching
from nightherd.engine.attend import attend
from nightherd.engine.stopper import Stopper
from nightherd.engine.submit import SubmitRequest, prompt_of, submit
from nightherd.engine.workshop import Workshop
from nightherd.errors import AgentNotFoundError
from nightherd.model.agent import Agent, Fleet
from nightherd.model.job import ExitReason, Job, JobStatus, JobTexts, SuspendReason
from nightherd.model.money import format_usd
from nightherd.views.jobs import result_document
from nightherd.wiring import (
    check_runtime,
    open_workshop,
    rescuer,
    system_clock,
    write_output_log,
)

EXIT_OF_STATUS = {
    JobStatus.COMPLETED: 0,
    JobStatus.FAILED: 1,
    JobStatus.CANCELLED: INTERRUPTED,
    JobStatus.SUSPENDED: 8,
    JobStatus.PENDING: 8,
    JobStatus.RUNNING: 8,
}
TIMED_OUT = 124
OUT_OF_BUDGET = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One piece of work to be done now, and where."""

    fleet: Fleet
    state: Path
    environ: Mapping[str, str]
    agent: Agent
    prompt: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def request(self) -> SubmitRequest:
        """What is submitted."""
        return SubmitRequest(agent=self.agent, prompt=self.prompt, inputs=self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The job as it ended, with its long texts."""

    job: Job
    texts: JobTexts | None


@click.command("run", epilog="Example: nightherd run hello -p 'Greet the night shift'")
@click.argument("agent", metavar="AGENT", shell_complete=complete_agents)
@click.argument("source", metavar="[-]", required=False)
@click.option("-p", "--prompt", metavar="TEXT", help="The prompt itself.")
@click.option("-f", "--file", metavar="FILE", help="A file with the prompt; - is standard input.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="For ${inputs.NAME}.")
@click.option("-d", "--detach", is_flag=True, help="Only record it; a worker runs it.")
@click.option("--output-log", is_flag=True, help="Also write jobs/<id>/output.log, as plain text.")
@click.option("-q", "--quiet", is_flag=True, help="Only the answer, once it is there.")
@json_option
@click.pass_context
def run(  # noqa: PLR0913 (an option each)
    ctx: click.Context,
    agent: str,
    source: str | None,
    prompt: str | None,
    file: str | None,
    inputs: tuple[str, ...],
    detach: bool,
    output_log: bool,
    quiet: bool,
) -> None:
    """Give AGENT a piece of work and watch it; without a prompt, the agent's own default."""
    invocation = ctx.find_object(Invocation)
    assert invocation is not None  # noqa: S101 (the group above puts it there)
    text = read_prompt(prompt, file, source, cwd=invocation.cwd, stdin=sys.stdin.buffer)
    values = read_inputs(inputs)
    screen = invocation.screen
    fleet = load_fleet_told(invocation, agent=agent, is_quiet=quiet)
    errand = Errand(
        fleet=fleet,
        state=invocation.state_directory(),
        environ=invocation.environ,
        agent=find_agent(fleet, agent),
        prompt=text,
        inputs=values,
    )
    if detach:
        tell_launch(launch(errand), screen)
        return
    finished = perform(errand, screen, is_shown=not (quiet or screen.is_json))
    try:
        if output_log:
            screen.say(f"log {write_output_log(errand.state, finished.job.id)}")
        tell_result(finished, screen, is_quiet=quiet)
    except BrokenPipeError:
        # Nobody reads on; the exit code still says how the job ended.
        abandon_output()
    ctx.exit(exit_code_of(finished.job))


def find_agent(fleet: Fleet, name: str) -> Agent:
    """The agent called `name`, or `AgentNotFoundError` with the nearest names."""
    agent = fleet.agents.get(name)
    if agent is not None:
        return agent
    near = get_close_matches(name, fleet.agents, n=3) or list(fleet.agents)[:5]
    message = f"the fleet has no agent {name!r}"
    if near:
        message += f"; it has {', '.join(repr(one) for one in near)}"
    raise AgentNotFoundError(message, hint=f"nightherd run {near[0]}" if near else None)


def perform(errand: Errand, screen: Screen, *, is_shown: bool) -> Finished:
    """Submit the job, run it to its end and show it on the way. Ctrl-C cancels it."""
    check_runtime(errand.agent.runtime)
    # A prompt that cannot be made is found out before there is anything to record it in.
    prompt_of(errand.request)
    try:
        return anyio.run(_perform, errand, screen, is_shown)
    except ExceptionGroup as group:
        # Only the job itself can fail here; the group is the task group's wrapping.
        raise group.exceptions[0] from None


async def _perform(errand: Errand, screen: Screen, is_shown: bool) -> Finished:
    with watching(screen, errand.agent.name, is_shown=is_shown) as watcher:
        async with (
            open_workshop(errand.state, errand.fleet, errand.environ) as workshop,
            anyio.create_task_group() as tasks,
        ):
            stopper = Stopper()
            await tasks.start(partial(stop_on_signals, stopper, watcher.say))
            submitted = await submit(errand.request, workshop)
            job_id = submitted.job.id
            if is_shown:
                watcher.say(f"{screen.err.dim('job')} {job_id}")
            job = await attend(
                job_id,
                errand.agent,
                workshop,
                on_event=watcher,
                on_wait=partial(tell_waiting, screen),
                stopper=stopper,
                rescue=rescuer(workshop, errand.fleet),
            )
            texts = workshop.reader.find_texts(job_id)
            tell_notices(workshop, screen)
            tasks.cancel_scope.cancel()
    return Finished(job=job, texts=texts)


def launch(errand: Errand) -> Job:
    """Record the job for a worker to run; once this returns, nothing loses it."""
    check_runtime(errand.agent.runtime)
    prompt_of(errand.request)
    return anyio.run(_launch, errand)


async def _launch(errand: Errand) -> Job:
    async with open_workshop(errand.state, errand.fleet, errand.environ) as workshop:
        return (await submit(errand.request, workshop)).job


def tell_launch(job: Job, screen: Screen) -> None:
    """The one record of a job that is durable and waits."""
    now = system_clock().now()
    if screen.is_json:
        screen.document("launch", result_document(job, None, now), now)
        return
    screen.show(job.id)
    screen.flush()
    screen.say("it waits for a worker: nightherd worker")


def tell_notices(workshop: Workshop, screen: Screen) -> None:
    """What the store met with on the way: a frozen process killed, changes put back."""
    for notice in workshop.state.take_notices():
        screen.say(f"notice: {notice}")


def tell_waiting(screen: Screen, reason: str) -> None:
    """Why the job has not begun yet."""
    screen.say(f"waiting: {reason}")


def tell_result(finished: Finished, screen: Screen, *, is_quiet: bool) -> None:
    """How it ended: the document for programs, the bare answer when quiet, else a line of talk."""
    job, now = finished.job, system_clock().now()
    if screen.is_json:
        screen.document("run", result_document(job, finished.texts, now), now)
        return
    answer = (finished.texts.summary if finished.texts else None) or job.summary
    if is_quiet and answer:
        screen.show(neutralise(answer))
        screen.flush()
    if is_quiet and job.status is JobStatus.COMPLETED:
        return
    screen.say(f"{result_line(job, screen.err, now)}, nightherd jobs show {job.id}")
    if job.error and is_quiet:
        screen.say(f"  {one_line(job.error)}")


def result_line(job: Job, style: Style, now: datetime) -> str:
    """How the job ended and what it took, on one line."""
    reason = f" ({job.exit_reason.value})" if job.exit_reason else ""
    turns = f"{job.turns} turn{'' if job.turns == 1 else 's'}"
    took, cost = length(job.duration(now)), format_usd(job.cost_microusd)
    return f"{style.status(job.status.value)}{reason}, {turns}, {cost}, {took}"


def exit_code_of(job: Job) -> int:
    """What the command ends with when the job stands so."""
    if job.exit_reason is ExitReason.TIMEOUT:
        return TIMED_OUT
    if job.status is JobStatus.SUSPENDED and job.suspend_reason in (
        SuspendReason.LIMIT,
        SuspendReason.BUDGET,
    ):
        return OUT_OF_BUDGET
    return EXIT_OF_STATUS[job.status]
