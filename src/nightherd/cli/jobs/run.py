"""`nightherd run`: one job for one agent, recorded before it runs, watched until it ends."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import timedelta

import click
from msgspec.structs import replace

from nightherd.cli.edge import abandon_output
from nightherd.cli.fleet.acceptance import refuse_agents
from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.gateway.gateway import Gateway, open_gateway
from nightherd.cli.invocation import Invocation, invocation_of
from nightherd.cli.jobs.command import (
    JobCommand,
    MakeJob,
    exit_code_of,
    find_agent,
    perform,
    refuse_blocked,
    submitting,
    tell_launch,
    tell_result,
)
from nightherd.cli.limits.options import limit_option, read_limits
from nightherd.cli.options import DURATION, complete_agents, complete_sessions, json_option
from nightherd.cli.prompt import read_inputs, read_prompt
from nightherd.cli.sessions.options import named_session
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.limits.guard import raises_limits
from nightherd.engine.operations.fork import AtLastTurn, ForkAt
from nightherd.engine.operations.resume import ResumeOptions, continue_session, run_branch, run_fork
from nightherd.engine.operations.submit import SubmitRequest, submit
from nightherd.errors import UsageError
from nightherd.model.agents.agent import Agent
from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.options import JobOptions
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.wiring.files import write_output_log
from nightherd.wiring.runtimes import check_runtime


@dataclass(frozen=True, slots=True)
class Where:
    """Which session the job is to be in, when it is not simply the agent's."""

    resume: str | None = None
    fork: str | None = None
    mode: str | None = None
    channel: str | None = None
    is_branch: bool = False

    @property
    def place(self) -> ForkAt | None:
        """Where a branch begins; None for the end of the session."""
        return AtLastTurn() if self.is_branch else None

    def checked(self) -> Where:
        """Itself; `UsageError` when it is said in two ways."""
        given = {"--resume": self.resume, "--fork": self.fork, "--session": self.mode}
        if self.mode is None:  # a channel's own session is one of the ways an agent shares them
            given["--channel"] = self.channel
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise UsageError(f"{names[0]} and {names[1]} both say which session; give one of them")
        if self.is_branch and self.fork is not None:
            raise UsageError("--fork and --branch both say that it is a branch; give one of them")
        return self


@click.command("run", epilog="Example: nightherd run hello -p 'Greet the night shift'")
@click.argument("agent", metavar="AGENT", shell_complete=complete_agents)
@click.argument("source", metavar="[-]", required=False)
@click.option("-p", "--prompt", metavar="TEXT", help="Prompt text.")
@click.option("-f", "--file", metavar="FILE", help="File with the prompt; - is standard input.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value for ${inputs.NAME} in the prompt.",
)
@click.option("--follow", is_flag=True, help="Show progress until the job ends (the default).")
@click.option("--wait", is_flag=True, help="Show only the result.")
@click.option("-d", "--detach", is_flag=True, help="Submit the job and return; a worker runs it.")
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
@click.option("-q", "--quiet", is_flag=True, help="Print only the final answer.")
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
    values, given, screen = read_inputs(inputs), read_limits(limits), invocation.screen
    fleet = load_fleet_with_notices(invocation, agent=agent, is_quiet=quiet, is_run=True)
    found = find_agent(fleet, agent, command="nightherd run")
    refuse_blocked(found)  # before there is a state directory
    options = JobOptions(model=model, max_turns=max_turns, job_timeout=job_timeout, limits=given)
    _check_limits(invocation, found, options)
    wish = ResumeOptions(
        prompt=text, inputs=values, overrides=options, priority=priority, refuses_held=True
    )
    into = _find_session(invocation, where)
    errand = JobCommand(
        fleet=fleet,
        state=invocation.new_state_directory(),
        environ=invocation.environ,
        agent=found,
        make_job=_maker(found, wish, where, into),
        wait_timeout=wait_timeout,
    )
    if detach:
        check_runtime(found.runtime.name)
        tell_launch(_hand_in(open_gateway(invocation, fleet), found, wish, where, into), invocation)
        return
    finished = perform(errand, screen, is_shown=not (quiet or wait or screen.is_json))
    try:
        if output_log:
            screen.say(f"log {write_output_log(errand.state, finished.job.id)}")
        tell_result(finished, screen, is_quiet=quiet)
    except BrokenPipeError:
        # Nobody reads on; the exit code still says how the job ended.
        abandon_output()
    ctx.exit(exit_code_of(finished.job))


def _check_limits(invocation: Invocation, agent: Agent, options: JobOptions) -> None:
    """Raise `RefusedError` when an agent asks for more than the agent's own jobs may use."""
    if raises_limits(agent, options):
        refuse_agents(invocation, "a limit above the agent's own")


def _check_ways(*, follow: bool, wait: bool, detach: bool, has_timeout: bool) -> None:
    given = [
        name
        for name, is_given in (("--follow", follow), ("--wait", wait), ("--detach", detach))
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} exclude each other")
    if detach and has_timeout:
        raise UsageError("--wait-timeout is for those who wait, and --detach does not")


def _hand_in(
    gateway: Gateway, agent: Agent, wish: ResumeOptions, where: Where, into: SessionId | None
) -> Job:
    """The job, left to a worker."""
    if into is None:
        request = _request(agent, wish, where)
        return gateway.branch(request) if where.is_branch else gateway.submit(request)
    if where.fork is not None or where.is_branch:
        return gateway.fork(into, where.place, agent, wish)
    return gateway.go_on(into, agent, wish)


def _maker(agent: Agent, wish: ResumeOptions, where: Where, into: SessionId | None) -> MakeJob:
    """How the job is recorded. What makes no sense is found out before there is anything to record it in."""
    if into is None:
        request = _request(agent, wish, where)
        return submitting(request, run_branch if where.is_branch else submit)
    session_id = into

    async def go_on(context: WorkerContext) -> Job:
        if where.fork is not None or where.is_branch:
            return await run_fork(session_id, where.place, agent, wish, context)
        return await continue_session(session_id, agent, wish, context)

    return go_on


def _request(agent: Agent, wish: ResumeOptions, where: Where) -> SubmitRequest:
    return SubmitRequest(
        agent=agent,
        prompt=wish.prompt,
        inputs=wish.inputs,
        overrides=wish.overrides,
        priority=wish.priority,
        refuses_held=wish.refuses_held,
        channel_id=where.channel,
        session_terms=_terms(agent, where.mode),
    )


def _terms(agent: Agent, mode: str | None) -> SessionTerms | None:
    """What the agent says about its sessions, in another mode."""
    return None if mode is None else replace(agent.session, mode=SessionMode(mode))


def _find_session(invocation: Invocation, where: Where) -> SessionId | None:
    """The session that it goes on from, if it does."""
    reference = where.resume if where.resume is not None else where.fork
    return None if reference is None else named_session(invocation, reference).id
