"""Limits on the command line: `--limit spend=0.50`, `--raise spend=2`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from nightherd.cli.invocation import Command
from nightherd.errors import InvalidValueError, UsageError
from nightherd.model.checkpoints.checkpoint import Checkpoint
from nightherd.model.jobs.job import Job
from nightherd.model.limits.limits import LimitName, OnLimit, amount_of, parse_limit, shown
from nightherd.views.costs.limits import LimitView


def limit_option(name: str, variable: str, text: str) -> Callable[[Command], Command]:
    """An option that may be given once for each limit."""
    return click.option(name, variable, multiple=True, metavar="LIMIT=MAXIMUM", help=text)


def read_limits(given: Sequence[str], *, option: str = "--limit") -> dict[str, int] | None:
    """Return the limits as a job stores them, a duration in milliseconds; None without any."""
    found: dict[str, int] = {}
    for text in given:
        try:
            name, maximum = parse_limit(text)
        except InvalidValueError as error:
            raise UsageError(f"{option} {error.message}") from error
        if name.value in found:
            raise UsageError(f"{option} {name.value} is given twice")
        found[name.value] = maximum
    return found or None


def limit_text(one: LimitView) -> str:
    """What is used and left of a limit, and what happens there unless the job just waits."""
    then = "" if one.outcome == OnLimit.SUSPEND.value else f", then {one.outcome}"
    maximum = shown(one.name, one.maximum)
    if one.used is None or one.left is None:
        return f"{one.name.value}: {maximum} at most{then}"
    used, left = shown(one.name, one.used), shown(one.name, one.left)
    return f"{one.name.value}: {used} of {maximum}, {left} left{then}"


def suspension_text(kept: Mapping[str, Any]) -> str | None:
    """What a job waited for at a checkpoint, as the checkpoint keeps it."""
    code, until = str(kept.get("code") or ""), kept.get("until")
    known = code.removesuffix("_exceeded")
    value, maximum = kept.get("current_value"), kept.get("current_max")
    said = code
    if known in set(LimitName) and value is not None and maximum is not None:
        name = LimitName(known)
        said = f"{code}: {shown(name, amount_of(name, value))}, maximum {shown(name, amount_of(name, maximum))}"
    parts = [said, f"until {until}" if until else ""]
    return ", ".join(part for part in parts if part) or None


def tokens_text(used: Job | Checkpoint) -> str:
    """The tokens of a job by kind; those of the cache only when there are some."""
    text = f"{used.input_tokens} in, {used.output_tokens} out"
    if used.cache_creation_input_tokens:
        text += f", {used.cache_creation_input_tokens} cache write"
    if used.cache_read_input_tokens:
        text += f", {used.cache_read_input_tokens} cache read"
    return text
