"""Inputs of workflows on the command line: `--input name=value`, read by the type that the workflow declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nightherd.cli.prompt import checked_text, read_inputs
from nightherd.errors import InvalidValueError, UsageError
from nightherd.model.json_text import parse_json
from nightherd.model.text import quote
from nightherd.model.workflows.triggers import InputSpec, InputType

FILE = "@"
"""What a value begins with that names a file."""
LARGEST_BYTES = 1_000_000
inputs_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of an input; @FILE reads a file, and other types than text are JSON.",
)


def read_run_inputs(
    given: Sequence[str], specs: Mapping[str, InputSpec], cwd: Path
) -> dict[str, Any]:
    """Return the inputs with values of their types; `@FILE` stands for the text of a file, `@@` for one `@`."""
    return {
        name: _value(name, read_text(value, cwd, f"--input {name}"), specs.get(name))
        for name, value in read_inputs(given).items()
    }


def read_text(value: str, cwd: Path, what: str) -> str:
    """Return a text that was given as it is, or as `@FILE`."""
    if not value.startswith(FILE):
        return value
    if value.startswith(FILE * 2):
        return value[1:]
    try:
        with (cwd / value[1:]).open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{what}: {value[1:]} cannot be read: {reason}") from error
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"{what}: {value[1:]} is larger than {LARGEST_BYTES // 1_000_000} MB")
    try:
        return checked_text(content.decode(), what)
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: {value[1:]} is not UTF-8 text (byte {error.start})") from None


def _value(name: str, text: str, spec: InputSpec | None) -> Any:
    """The value of a text; the workflow itself says what is wrong with it."""
    if spec is None or spec.type is InputType.TEXT:
        return text
    try:
        return parse_json(text)
    except InvalidValueError as error:
        if spec.type is InputType.LIST and not text.lstrip().startswith("["):
            return [part.strip() for part in text.split(",")]
        raise UsageError(
            f"--input {name}: {quote(text)} is not a {spec.type.value}: {error.message}",
            hint=f"--input {name}=JSON",
        ) from None
