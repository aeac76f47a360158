"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from nightherd.cli.complete import complete_jobs
from nightherd.cli.invocation import Invocation

Command = TypeVar("Command", bound=Callable[..., Any])


def _choose_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    invocation = ctx.find_object(Invocation)
    if value and invocation is not None:
        invocation.screen.is_json = True


def json_option(command: Command) -> Command:
    """`--json`: the screen is told; errors follow it too."""
    return click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_choose_json,
        help="One JSON document on standard output.",
    )(command)


def job_argument(command: Command) -> Command:
    """A job: its id, a unique prefix of it, `@last` or `@last-failed`."""
    return click.argument("job", metavar="JOB", shell_complete=complete_jobs)(command)
