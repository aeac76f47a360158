"""JSON that people, programs, agents and commands give: checked strictly, so that every value can be stored and written again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from nightherd.errors import InvalidValueError
from nightherd.model.text import whole_value

DEEPEST = 100
"""Levels of lists and objects inside each other."""
MOST_DIGITS = 1_000
"""Digits of a number."""


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, or raise `InvalidValueError` with the reason.

    Python reads more than JSON has, and more than can be stored: NaN, numbers without end, values of any depth. A text
    in it that holds half of a character gets U+FFFD there.
    """
    try:
        value = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_float, parse_int=_whole_number
        )
    except json.JSONDecodeError as error:
        raise InvalidValueError(str(error)) from error
    except RecursionError:
        raise InvalidValueError(_too_deep()) from None
    check_depth(value)
    return whole_value(value)


def json_problem(value: Any) -> str | None:
    """Return why a value cannot be kept as JSON; None when it can. Python also reads and writes `NaN`, JSON does not."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, float) and not math.isfinite(part):
            return f"{part} is not a number of JSON"
        if isinstance(part, Mapping):
            unnamed = next((name for name in part if not isinstance(name, str)), None)
            if unnamed is not None:
                return f"the key {unnamed!r} is not a text"
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part
        elif part is not None and not isinstance(part, str | bool | int | float):
            return f"a {type(part).__name__} is not a value of JSON"
    return None


def check_depth(value: Any) -> None:
    """Raise `InvalidValueError` for a JSON value that is nested too deeply to be stored."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise InvalidValueError(_too_deep())


def _inside(value: Any) -> list[Any]:
    match value:
        case dict():
            return list(value.values())
        case list() | tuple():
            return list(value)
        case _:
            return []


def _too_deep() -> str:
    return f"it is nested more than {DEEPEST} levels deep"


def _refuse_constant(word: str) -> NoReturn:
    raise InvalidValueError(f"JSON has no {word}")


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise InvalidValueError("it has a number that is too large")
    return number


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise InvalidValueError(f"it has a number of more than {MOST_DIGITS:,} digits")
    return int(digits)
