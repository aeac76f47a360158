"""Limits on the command line: `--limit spend=0.50`, `--raise spend=2`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from nightherd.errors import InvalidValueError, UsageError
from nightherd.model.limits import parse_limit

Command = TypeVar("Command", bound=Callable[..., Any])


def limit_option(name: str, variable: str, text: str) -> Callable[[Command], Command]:
    """An option that may be given once for each limit."""
    return click.option(name, variable, multiple=True, metavar="LIMIT=MAXIMUM", help=text)


def read_limits(given: Sequence[str], *, option: str) -> dict[str, int]:
    """The limits as a job keeps them: whole numbers, a duration in milliseconds."""
    found: dict[str, int] = {}
    for text in given:
        try:
            name, maximum = parse_limit(text)
        except InvalidValueError as error:
            raise UsageError(f"{option} {error.message}") from error
        if name.value in found:
            raise UsageError(f"{option} {name.value} is given twice")
        found[name.value] = maximum
    return found


def limit_overrides(given: Sequence[str]) -> dict[str, Any]:
    """What a new job has other than its agent, because of these."""
    found = read_limits(given, option="--limit")
    return {"limits": found} if found else {}


def raised_overrides(kept: Mapping[str, Any], given: Sequence[str]) -> dict[str, Any]:
    """What a job that goes on has from now on: new maxima beside those it was given before."""
    raised = read_limits(given, option="--raise")
    before = kept.get("limits")
    if not raised:
        return {}
    return {"limits": {**(before if isinstance(before, Mapping) else {}), **raised}}
