"""What the commands share that resume and fork: their options, and whether the job runs here."""

from __future__ import annotations

import sys
from functools import wraps
from typing import Any, NamedTuple, cast

import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.options import Command, json_option
from nightherd.cli.prompt import read_prompt


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
