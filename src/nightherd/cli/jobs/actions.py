"""`nightherd run`, and `nightherd jobs resume` and `fork`: commands that make a job or continue one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import (
    DURATION,
    Invocation,
    complete_agents,
    complete_sessions,
    invocation_of,
    job_argument,
    json_option,
)
from nightherd.cli.jobs.command import find_agent, run_or_enqueue, show_launch
from nightherd.cli.limits.options import limit_option, read_limits
from nightherd.cli.operations import open_client
from nightherd.cli.prompt import (
    Asked,
    detach_option,
    file_option,
    inputs_option,
    prompt_option,
    quiet_option,
    read_inputs,
    read_prompt,
    working_options,
)
from nightherd.cli.sessions.options import agent_of_job, named_session, place_given
from nightherd.engine.operations.fork import AtLastTurn
from nightherd.engine.operations.jobs import fork_of_job
from nightherd.engine.operations.requests import (
    ForkOf,
    InSession,
    OwnSession,
    Resume,
    Submit,
)
from nightherd.engine.operations.resume import OPEN
from nightherd.errors import UsageError
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.options import JobOptions
from nightherd.model.limits.limits import LimitName, shown
from nightherd.model.sessions.session import SessionMode
from nightherd.views.jobs.jobs import find_job_id, get_job
from nightherd.wiring.stores import open_reader


@dataclass(frozen=True, slots=True)
class Where:
    """Which session the job is to be in, when it is not simply the agent's."""

    resume: str | None = None
    fork: str | None = None
    mode: str | None = None
    channel: str | None = None
    is_branch: bool = False

    def session(self, invocation: Invocation) -> OwnSession | InSession | ForkOf:
        """The session, found where one was named."""
        if self.fork is not None:
            return ForkOf(session_id=named_session(invocation, self.fork).id)
        if self.resume is None:
            mode = None if self.mode is None else SessionMode(self.mode)
            return OwnSession(mode=mode, channel=self.channel, is_branch=self.is_branch)
        session_id = named_session(invocation, self.resume).id
        if self.is_branch:
            return ForkOf(session_id=session_id, at=AtLastTurn())
        return InSession(session_id=session_id)

    def checked(self) -> Where:
        """Return these options; `UsageError` when two of them exclude each other."""
        given = {"--resume": self.resume, "--fork": self.fork, "--session": self.mode}
        if self.mode is None:  # a channel's own session is one of the ways an agent shares them
            given["--channel"] = self.channel
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise UsageError(f"{names[0]} and {names[1]} both choose a session; use only one")
        if self.is_branch and self.fork is not None:
            raise UsageError("--fork and --branch both fork the session; use only one")
        return self


@click.command("run", epilog="Example: nightherd run hello -p 'Greet the night shift'")
@click.argument("agent", metavar="AGENT", shell_complete=complete_agents)
@click.argument("source", metavar="[-]", required=False)
@prompt_option
@file_option
@inputs_option
@click.option("--follow", is_flag=True, help="Show progress until the job ends (the default).")
@click.option("--wait", is_flag=True, help="Show only the result.")
@detach_option
@click.option(
    "--wait-timeout",
    type=DURATION,
    help="Time to wait before leaving the job to a worker (exit code 8).",
)
@click.option("--job-timeout", type=DURATION, help="Longest time the job may run (exit code 124).")
@click.option("--model", metavar="MODEL", help="Model to use instead of the agent's.")
@click.option("--max-turns", type=click.IntRange(1), help="Maximum number of turns.")
@limit_option("--limit", "limits", "Limit of the job, such as spend=0.50 or turns=20.")
@click.option("--priority", type=int, default=0, help="Priority; higher runs first (default: 0).")
@click.option(
    "--resume",
    metavar="SESSION",
    shell_complete=complete_sessions,
    help="Session to continue; @last is the newest.",
)
@click.option(
    "--fork",
    metavar="SESSION",
    shell_complete=complete_sessions,
    help="Session to fork: the job starts with its messages.",
)
@click.option(
    "--session",
    "mode",
    type=click.Choice([mode.value for mode in SessionMode]),
    help="Session mode to use instead of the agent's.",
)
@click.option(
    "--branch",
    is_flag=True,
    help="Fork the session at its last complete turn and run there.",
)
@click.option("--channel", metavar="ID", help="Channel of the job, for session mode per_channel.")
@click.option("--output-log", is_flag=True, help="Also write plain text to jobs/<id>/output.log.")
@quiet_option
@json_option
@click.pass_context
def run(  # noqa: PLR0913 (an option each)
    ctx: click.Context,
    agent: str,
    source: str | None,
    prompt: str | None,
    file: str | None,
    inputs: tuple[str, ...],
    follow: bool,
    wait: bool,
    detach: bool,
    wait_timeout: timedelta | None,
    job_timeout: timedelta | None,
    model: str | None,
    max_turns: int | None,
    limits: tuple[str, ...],
    priority: int,
    resume: str | None,
    fork: str | None,
    mode: str | None,
    branch: bool,
    channel: str | None,
    output_log: bool,
    quiet: bool,
) -> None:
    """Run an agent and show its progress. Without a prompt, AGENT gets its own default prompt."""
    invocation = invocation_of(ctx)
    _check_ways(follow=follow, wait=wait, detach=detach, has_timeout=wait_timeout is not None)
    where = Where(resume, fork, mode, channel, branch).checked()
    text = read_prompt(prompt, file, source, cwd=invocation.cwd, stdin=sys.stdin.buffer)
    values, given = read_inputs(inputs), read_limits(limits)
    fleet = load_fleet_with_notices(invocation, agent=agent, is_quiet=quiet, is_run=True)
    found = find_agent(fleet, agent, command="nightherd run")
    options = JobOptions(model=model, max_turns=max_turns, job_timeout=job_timeout, limits=given)
    request = Submit(
        agent=found.name,
        prompt=text,
        inputs=values,
        options=options,
        session=where.session(invocation),
        priority=priority,
        refuses_held=True,
    )
    run_or_enqueue(
        ctx,
        fleet,
        request,
        detach=detach,
        quiet=quiet,
        is_shown=not wait,
        wait_timeout=wait_timeout,
        writes_log=output_log,
    )


def _check_ways(*, follow: bool, wait: bool, detach: bool, has_timeout: bool) -> None:
    given = [
        name
        for name, is_given in (("--follow", follow), ("--wait", wait), ("--detach", detach))
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} cannot be used together")
    if detach and has_timeout:
        raise UsageError("--wait-timeout has no effect with --detach")


def _find_job(state: Path, reference: str) -> Job:
    with closing(open_reader(state)) as reader:
        return get_job(reader, find_job_id(reader, reference))


@click.command("resume", epilog="Example: nightherd jobs resume @last -p 'Mind the failing test'")
@job_argument
@limit_option("--raise", "raised", "New maximum of a limit, such as spend=2.")
@click.option(
    "--at-checkpoint",
    type=click.IntRange(1),
    help="Checkpoint to resume from; later messages are left out.",
)
@working_options
@click.pass_context
def resume(
    ctx: click.Context,
    job: str,
    raised: tuple[str, ...],
    at_checkpoint: int | None,
    asked: Asked,
) -> None:
    """Resume a job. If it was suspended or interrupted, it continues; if it has ended, a new job starts in its session.

    For a job that runs or is queued, --raise raises a limit; other options are refused.
    """
    invocation, found, text = _found(ctx, job, asked)
    fleet = load_fleet_with_notices(
        invocation, agent=found.agent, is_quiet=asked.quiet, is_run=True
    )
    request = Resume(
        job_id=found.id,
        prompt=text,
        limits=read_limits(raised, option="--raise") or {},
        at_checkpoint=at_checkpoint,
        refuses_held=True,
    )
    is_only_raised = bool(raised) and text is None and at_checkpoint is None
    if is_only_raised and found.status in OPEN:
        amended = open_client(invocation, fleet).perform(request)
        is_interrupted = found.status is JobStatus.RUNNING and amended.status is JobStatus.PENDING
        if asked.detach or not is_interrupted:
            _show_raised(amended, request.limits, invocation)
            return
    if found.is_terminal and (text is not None or found.status is not JobStatus.COMPLETED):
        what = "a new job in a branch" if at_checkpoint is not None else "a new job in its session"
        invocation.screen.say(f"job {found.id} is {found.status.value}: this is {what}")
    run_or_enqueue(ctx, fleet, request, detach=asked.detach, quiet=asked.quiet)


@click.command(
    "fork", epilog="Example: nightherd jobs fork @last --at-message 4 -p 'Try another way'"
)
@job_argument
@click.option("--at-message", type=click.IntRange(0), help="Keep messages 1 to N of the session.")
@click.option("--at-seq", type=click.IntRange(0), help="Keep messages up to this event of the job.")
@click.option(
    "--at-checkpoint", type=click.IntRange(1), help="Keep messages up to this checkpoint."
)
@inputs_option
@working_options
@click.pass_context
def fork(
    ctx: click.Context,
    job: str,
    at_message: int | None,
    at_seq: int | None,
    at_checkpoint: int | None,
    inputs: tuple[str, ...],
    asked: Asked,
) -> None:
    """Fork a job at an earlier message. The new job runs in a fork of JOB's session, by default at its end."""
    invocation, found, text = _found(ctx, job, asked)
    values = read_inputs(inputs)
    at = place_given(at_message, at_seq, at_checkpoint, job_id=found.id)
    session = fork_of_job(found, at)
    fleet = load_fleet_with_notices(
        invocation, agent=found.agent, is_quiet=asked.quiet, is_run=True
    )
    agent = agent_of_job(found, invocation, fleet)
    run_or_enqueue(
        ctx,
        fleet,
        Submit(agent=agent.name, prompt=text, inputs=values, session=session),
        detach=asked.detach,
        quiet=asked.quiet,
    )


def _found(ctx: click.Context, reference: str, asked: Asked) -> tuple[Invocation, Job, str | None]:
    """The job, and the options of the command."""
    invocation = invocation_of(ctx)
    text = asked.text(invocation)
    return invocation, _find_job(invocation.state_directory(), reference), text


def _show_raised(job: Job, limits: Mapping[str, int], invocation: Invocation) -> None:
    """Show the limits of a job that another process continues."""
    if invocation.screen.is_json or job.status is not JobStatus.RUNNING:
        show_launch(job, invocation)
    more = ", ".join(f"{name} {shown(LimitName(name), most)}" for name, most in limits.items())
    invocation.screen.say(f"job {job.id} is {job.status.value}, and may use {more} from now on")
