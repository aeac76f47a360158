"""Where a prompt comes from (an option, a file, standard input), and the options that commands with a prompt share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import click

from nightherd.cli.invocation import Command, Invocation, json_option
from nightherd.errors import UsageError
from nightherd.model.ids import NAME

LARGEST_BYTES = 10_000_000
STANDARD_INPUT = "-"

prompt_option = click.option("-p", "--prompt", metavar="TEXT", help="Prompt text.")
file_option = click.option(
    "-f", "--file", metavar="FILE", help="File with the prompt; - is standard input."
)
inputs_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value for ${inputs.NAME} in the prompt.",
)
detach_option = click.option(
    "-d", "--detach", is_flag=True, help="Submit the job and return; a worker runs it."
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only the final answer.")


def read_prompt(
    text: str | None, file: str | None, source: str | None, *, cwd: Path, stdin: BinaryIO
) -> str | None:
    """The prompt that was given; None when none was, and the agent's own is meant."""
    if source is not None and source != STANDARD_INPUT:
        raise UsageError(f"{source!r} is not expected here", hint="give the prompt with -p TEXT")
    given = [
        name for name, value in (("-p", text), ("-f", file), ("-", source)) if value is not None
    ]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} both give a prompt", hint="use only one of them")
    if text is not None:
        return checked_text(text, "the prompt")
    if file is not None and file != STANDARD_INPUT:
        return _from_file(cwd / file, file)
    if source is not None or file is not None:
        return _decoded(stdin.read(LARGEST_BYTES + 1), "standard input")
    return None


def read_inputs(given: Sequence[str]) -> dict[str, str]:
    """`k=v` pairs as a mapping; a pair that is none, or comes twice, is a usage error."""
    inputs: dict[str, str] = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign or NAME.fullmatch(name) is None:
            raise UsageError(f"--input {pair!r} is not NAME=VALUE", hint="--input issue=42")
        if name in inputs:
            raise UsageError(f"--input {name} is given twice", hint="give each input once")
        inputs[name] = checked_text(value, f"--input {name}")
    return inputs


def checked_text(text: str, what: str) -> str:
    """`text` if all of it is text: bytes that the shell passed on undecoded are not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} is not UTF-8 text", hint="convert it to UTF-8") from None
    if "\0" in text:
        raise UsageError(f"{what} has a NUL character, so it is not text", hint="give it as text")
    return text


def _from_file(path: Path, shown: str) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"the prompt file {shown} cannot be read: {reason}") from error
    return _decoded(content, f"the prompt file {shown}")


def _decoded(content: bytes, what: str) -> str:
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"{what} is larger than {LARGEST_BYTES // 1_000_000} MB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{what} is not UTF-8 text (byte {error.start})", hint="convert it to UTF-8"
        ) from None
    return checked_text(text, what)


class Asked(NamedTuple):
    """Options of commands that resume a job: its new prompt, and whether to wait for it."""

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
    for option in (json_option, quiet_option, detach_option, file_option, prompt_option):
        found = option(found)
    return found
