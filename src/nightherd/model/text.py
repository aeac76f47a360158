"""Text as it can be kept: whole characters, which any file can hold, and no more of them than there is room for."""

from __future__ import annotations

from typing import Any

HALF = "\N{REPLACEMENT CHARACTER}"


def shorten(text: str, limit: int) -> str:
    """`text` if it fits in `limit` characters, else its beginning and an ellipsis, exactly `limit` long."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def counted(number: int, word: str) -> str:
    """So many of them: `1 turn`, `2 turns`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


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
