"""JSON that people, agents and commands write: read strictly, so that every value can be stored and written again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from nightherd.errors import InvalidValueError
from nightherd.model.text import whole_text, whole_value

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
    value = _whole(value)
    check_value(value)
    return value


def _whole(value: Any) -> Any:
    try:
        return whole_value(value)
    except RecursionError:
        raise InvalidValueError(_too_deep()) from None


def check_value(value: Any) -> None:
    """Raise `InvalidValueError` for a value that cannot be stored as JSON and read again as it is."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise InvalidValueError(_too_deep())


def _inside(value: Any) -> list[Any]:
    match value:
        case Mapping():
            return [*(_named(key) for key in value), *value.values()]
        case list() | tuple():
            return list(value)
        case str():
            if whole_text(value) != value:
                raise InvalidValueError("it has a text with half of a character")
        case float():
            if not math.isfinite(value):
                raise InvalidValueError(f"JSON has no {value}")
        case None | bool() | int():
            pass
        case _:
            raise InvalidValueError(f"JSON has no {type(value).__name__}")
    return []


def _named(key: Any) -> str:
    if not isinstance(key, str):
        raise InvalidValueError(f"a name in an object is a text, not {key!r}")
    return key


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
