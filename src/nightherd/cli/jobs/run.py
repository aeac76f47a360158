"""`nightherd run`: one job for one agent, recorded before it runs, watched until it ends."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import timedelta

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, invocation_of
from nightherd.cli.jobs.command import find_agent, run_or_enqueue
from nightherd.cli.limits.options import limit_option, read_limits
from nightherd.cli.options import DURATION, complete_agents, complete_sessions, json_option
from nightherd.cli.prompt import (
    detach_option,
    file_option,
    prompt_option,
    quiet_option,
    read_inputs,
    read_prompt,
)
from nightherd.cli.sessions.options import named_session
from nightherd.engine.operations.fork import AtLastTurn
from nightherd.engine.operations.requests import ForkOf, InSession, OwnSession, Submit
from nightherd.errors import UsageError
from nightherd.model.jobs.options import JobOptions
from nightherd.model.sessions.session import SessionMode


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
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value for ${inputs.NAME} in the prompt.",
)
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
