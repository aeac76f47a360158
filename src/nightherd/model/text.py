"""Text as it can be kept: whole characters, which any file can hold, and no more of them than there is room for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from nightherd.errors import InvalidValueError

ShowTime = Callable[[datetime], str]
"""How an instant is written into a sentence: in UTC for programs and files, in local time on a terminal."""
HALF = "\N{REPLACEMENT CHARACTER}"
SHOWN_TEXT_LIMIT = 60


def shorten(text: str, limit: int) -> str:
    """`text` if it fits in `limit` characters, else its beginning and an ellipsis, exactly `limit` long."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quote(text: str, *, limit: int = SHOWN_TEXT_LIMIT) -> str:
    """`text` in quotes, on one line, cut when long, nothing in it that could move a terminal's cursor."""
    safe = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in shorten(text, limit)
    )
    return f"'{safe}'"


def counted(number: int, word: str) -> str:
    """So many of them: `1 turn`, `2 turns`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def utc_text(at: datetime) -> str:
    """Return an instant as documents and columns have it: UTC, of fixed width, so that text order is time order."""
    if at.tzinfo is None:
        raise InvalidValueError(f"{at} has no time zone")
    universal = at if at.tzinfo is UTC else at.astimezone(UTC)
    return universal.isoformat(timespec="microseconds")[:-6] + "Z"


def time_text(at: datetime) -> str:
    """Return an instant in UTC, to the second: `2026-11-15T12:00:00Z`."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def whole_text(text: str) -> str:
    """The text with U+FFFD for every half of a character (a lone surrogate), which UTF-8 does not have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def whole_value(value: Any) -> Any:
    """The same for every text in a value of JSON; keys that differed only in what cannot be written stay apart."""
    match value:
        case str():
            return whole_text(value)
        case dict():
            whole: dict[Any, Any] = {}
            for key, item in value.items():
                name = whole_value(key)
                while name in whole:
                    name += HALF
                whole[name] = whole_value(item)
            return whole
        case list() | tuple():
            return [whole_value(item) for item in value]
        case _:
            return value


RUN_TIME_NAMES = frozenset({"prompt", "turn", "repo", "payload"})
"""Names that mean a value of the job, in the texts that may use them; never environment variables there."""

PLACE = re.compile(r"\$\{(prompt|turn|repo|inputs\.[A-Za-z0-9_-]+|payload(?:\.[A-Za-z0-9_-]+)*)\}")


def render(template: str, values: Mapping[str, str]) -> str:
    """`template` with its run-time places filled from `values`; a name without a value is an error."""

    def fill(match: re.Match[str]) -> str:
        try:
            return values[match[1]]
        except KeyError:
            name = match[1]
            what = f"--input {name[7:]}=..." if name.startswith("inputs.") else "value for it"
            raise InvalidValueError(f"${{{name}}} is used but this job has no {what}") from None

    return PLACE.sub(fill, template)


def input_text(value: Any) -> str:
    """An input as templates have it: text as it is, every other JSON value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def input_values(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The inputs by the names that templates use."""
    return {f"inputs.{name}": input_text(value) for name, value in inputs.items()}


def fill_inputs(text: str, inputs: Mapping[str, Any]) -> str:
    """`text` with `${inputs.NAME}` filled in for the inputs that are given; everything else stays as it is."""
    if not inputs:
        return text
    values = input_values(inputs)
    return PLACE.sub(lambda match: values.get(match[1], match[0]), text)


CONTROL = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
REORDERING = {0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
"""Marks that change the order in which a line is read, and separators that look like nothing."""
SPELLED = {
    **{code: f"\\x{code:02x}" for code in CONTROL},
    **{code: f"\\u{code:04x}" for code in REORDERING},
    ord("\r"): "\\r",
}
"""What stands for each character that a terminal or a browser would obey."""


def neutralise(text: str) -> str:
    """`text` with everything that a terminal or a browser would obey spelled out, so that it can only be read.

    An agent's output is a stranger's text: it must not move the cursor, set a title or hide a line.
    """
    return text.replace("\r\n", "\n").translate(SPELLED)
