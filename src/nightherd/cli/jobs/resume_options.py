"""What the commands share by which work goes on: how it is asked for, and how it is seen to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, cast

import click

from nightherd.cli.edge import abandon_output
from nightherd.cli.gateway.gateway import Gateway, open_gateway
from nightherd.cli.invocation import Invocation, invocation_of
from nightherd.cli.jobs.command import (
    JobCommand,
    MakeJob,
    exit_code_of,
    perform,
    tell_launch,
    tell_result,
)
from nightherd.cli.options import Command, json_option
from nightherd.cli.prompt import read_prompt
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.fork import ForkAt
from nightherd.engine.operations.resume import ResumeOptions, run_fork
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import Job
from nightherd.wiring.runtimes import check_runtime

HandIn = Callable[[Gateway], Job]
"""Has the job recorded, for a worker to run."""


class Ways(NamedTuple):
    """How the same job is recorded: left to a worker, or by the process that runs it."""

    hand_in: HandIn
    make_job: MakeJob


class Asked(NamedTuple):
    """What it is told besides, and who waits for it."""

    prompt: str | None
    file: str | None
    detach: bool
    quiet: bool

    @property
    def is_anything(self) -> bool:
        """Whether any of the options was given."""
        return self.prompt is not None or self.file is not None or self.detach or self.quiet

    def text(self, invocation: Invocation) -> str | None:
        """What was said, if anything; a file, or standard input, is read."""
        if self.prompt is None and self.file is None:
            return None
        return read_prompt(self.prompt, self.file, None, cwd=invocation.cwd, stdin=sys.stdin.buffer)


def working_options(command: Command) -> Command:
    """`--prompt`, `--file`, `--detach`, `--quiet` and `--json`: the command gets them as `asked`."""

    @wraps(command)
    def bundled(
        *args: Any, prompt: str | None, file: str | None, detach: bool, quiet: bool, **others: Any
    ) -> object:
        asked = Asked(prompt=prompt, file=file, detach=detach, quiet=quiet)
        return command(*args, asked=asked, **others)

    found = cast("Command", bundled)
    for option in (
        json_option,
        click.option("-q", "--quiet", is_flag=True, help="Print only the final answer."),
        click.option(
            "-d", "--detach", is_flag=True, help="Submit the job and return; a worker runs it."
        ),
        click.option(
            "-f", "--file", metavar="FILE", help="File with the prompt; - is standard input."
        ),
        click.option("-p", "--prompt", metavar="TEXT", help="Prompt text."),
    ):
        found = option(found)
    return found


def forking(session_id: SessionId, at: ForkAt | None, agent: Agent, wish: ResumeOptions) -> Ways:
    """A job in a new branch of that session, there or at its end."""

    def hand_in(gateway: Gateway) -> Job:
        return gateway.fork(session_id, at, agent, wish)

    async def make(context: WorkerContext) -> Job:
        return await run_fork(session_id, at, agent, wish, context)

    return Ways(hand_in, make)


def run_or_enqueue(
    ctx: click.Context, fleet: Fleet, agent: Agent, ways: Ways, asked: Asked
) -> None:
    """Have the job recorded and leave it to a worker, or do it here and end with its code."""
    invocation = invocation_of(ctx)
    screen = invocation.screen
    if asked.detach:
        check_runtime(agent.runtime.name)
        tell_launch(ways.hand_in(open_gateway(invocation, fleet)), invocation)
        return
    errand = JobCommand(
        fleet=fleet,
        state=invocation.state_directory(),
        environ=invocation.environ,
        agent=agent,
        make_job=ways.make_job,
    )
    finished = perform(errand, screen, is_shown=not (asked.quiet or screen.is_json))
    try:
        tell_result(finished, screen, is_quiet=asked.quiet)
    except BrokenPipeError:
        abandon_output()
    ctx.exit(exit_code_of(finished.job))
