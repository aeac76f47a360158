"""Kinds of values that options take, each with an error that says what is meant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from nightherd.errors import InvalidValueError
from nightherd.model.duration import parse_duration


class Duration(click.ParamType[timedelta]):
    """A time as people write it: 90s, 30m, 2h."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The time, more than none."""
        if isinstance(value, timedelta):
            return value
        try:
            span = parse_duration(str(value))
        except InvalidValueError as error:
            self.fail(error.message, param, ctx)
        if span <= timedelta(0):
            self.fail(f"{value!r} is no time at all", param, ctx)
        return span


DURATION = Duration()
