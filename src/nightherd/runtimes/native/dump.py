"""Dumps: messages as pydantic-ai dumps them, and what JSON can say that a line of the journal cannot.

How a message becomes lines is said here once, for `encode.py` and `decode.py`. A line says in its named fields
what a reader wants to know: the text, the thoughts, the call, its result. Its `extra` holds the rest, and
nothing twice:

- `response` or `request`: the fields of the message itself, on its first line; `request` also says that a
  new request begins here, since results that follow each other are one request.
- `part`: the fields of the part that the line's own do not say. `args`: how a call's arguments were spelled.
- `whole`: a part that has no line of its own kind, as pydantic-ai dumps it. `before` and `after`: such parts
  of a request, which stand beside the line's own.

Each result and each prompt is a message of the record; an answer is one, and the last of its lines ends it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Dump = dict[str, Any]
"""A message or part as pydantic-ai dumps it."""

BIGGEST = 2**64 - 1
SMALLEST = -(2**63)
"""Whole numbers beyond these are more than a line can hold."""

DEEPEST = 100
"""Levels of a text of arguments that is kept as a value."""

PACKED = "json"

SPELLINGS: Mapping[str, Callable[[Any], str]] = {
    "compact": lambda value: msgspec.json.encode(value).decode(),
    "spaced": json.dumps,
    "unicode": lambda value: json.dumps(value, ensure_ascii=False),
}
"""How models write the arguments of calls; a text that is none of these is kept as it came."""
AS_IT_CAME = "raw"
AS_VALUE = "value"
"""The arguments came as a value that only a text can hold."""


def read_arguments(args: Any) -> tuple[Any, str | None]:
    """A call's arguments as a value, and how they were spelled if they came as a text."""
    if not isinstance(args, str):
        return (json.dumps(args), AS_VALUE) if has_big_numbers(args) else (args, None)
    try:
        value = json.loads(args, parse_constant=_refuse)
        if _is_deep(args, value):
            return args, AS_IT_CAME
        for name, spell in SPELLINGS.items():
            if spell(value) == args:
                return value, name
    except (ValueError, OverflowError, RecursionError):
        pass
    return args, AS_IT_CAME


def _is_deep(text: str, value: Any) -> bool:
    """Whether it is nested deeper than everybody who reads a line goes; most texts have too few brackets for it."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _refuse(constant: str) -> None:
    """`Infinity` and `NaN` are numbers to Python, and nothing that a line can hold."""
    raise ValueError(constant)


def spell_arguments(value: Any, spelling: str | None) -> Any:
    """The arguments as they came."""
    if spelling is None or spelling == AS_IT_CAME:
        return value
    return json.loads(value) if spelling == AS_VALUE else SPELLINGS[spelling](value)


def has_big_numbers(value: Any) -> bool:
    """Whether a number in `value` is more than a line can hold."""
    match value:
        case dict():
            return any(map(has_big_numbers, value.values()))
        case list():
            return any(map(has_big_numbers, value))
        case int():
            return not SMALLEST <= value <= BIGGEST
        case _:
            return False


def pack(value: Any) -> Any:
    """`value`, or its JSON as a text when it holds a number that a line cannot."""
    return {PACKED: json.dumps(value)} if has_big_numbers(value) else value


def unpack(value: Any) -> Any:
    """What was packed."""
    if type(value) is dict and len(value) == 1 and type(value.get(PACKED)) is str:
        return json.loads(value[PACKED])
    return value
