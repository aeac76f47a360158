"""Texts of events as people would search and skim them: the words of values of JSON, in bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nightherd.model.text import shorten, whole_text

UNBROKEN_LIMIT = 4_000
"""A longer piece without a space is no text: an image, or other bytes written as letters."""
DEEPEST = 32
PIECES = 2_000
"""How many texts of one value are looked at."""


def flat_text(value: Any, limit: int) -> str:
    """The texts and numbers in a value of JSON, a line each, at most `limit` characters: the beginning and the end."""
    if isinstance(value, str):
        return clip(value, limit) if _is_text(value) else ""
    lines: list[str] = []
    for piece in _pieces(value, DEEPEST):
        lines.append(clip(piece, limit))
        if len(lines) >= PIECES:
            break
    return clip("\n".join(lines), limit)


def clip(text: str, limit: int) -> str:
    """`text` if it fits, else its first three quarters and its end: what went wrong is often said last."""
    if len(text) > limit:
        end = limit // 4
        text = text[: limit - end - 3] + "\n…\n" + text[-end:]
    return whole_text(text)


def first_line(text: str, limit: int) -> str:
    """The first line that says something, cut to `limit` characters, without characters that move a cursor."""
    for line in text[: 16 * limit].splitlines():
        if words := " ".join(line.split()):
            shown = "".join(char if char.isprintable() else " " for char in words)
            return whole_text(shorten(shown.strip(), limit))
    return ""


def _pieces(value: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    match value:
        case str() if value and _is_text(value):
            yield value
        case bool():
            return
        case int() | float():
            yield str(value)
        case dict() if value.get("type") != "image":
            for item in value.values():
                yield from _pieces(item, depth - 1)
        case list() | tuple():
            for item in value:
                yield from _pieces(item, depth - 1)
        case _:
            pass


def _is_text(text: str) -> bool:
    head = text[:UNBROKEN_LIMIT]
    return len(text) < UNBROKEN_LIMIT or any(char.isspace() for char in head)
