"""Arguments: the input of a tool call, checked field by field before anything is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.errors import InvalidValueError


class Arguments:
    """A call's input. Each question gives a value of the right type or raises `InvalidValueError`."""

    def __init__(self, tool: str, input: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        self._tool = tool
        self._input = input
        unknown = sorted(str(name) for name in input if name not in allowed)
        if unknown:
            raise InvalidValueError(
                f"{tool} has no input {unknown[0]!r}; its inputs are {', '.join(allowed)}"
            )

    def text(self, name: str) -> str:
        """A text that has to be given; it may be empty."""
        value = self._input.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def text_or(self, name: str, otherwise: str) -> str:
        """A text, or `otherwise` when absent."""
        return otherwise if self._input.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        """True or false; false when absent."""
        value = self._input.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def count(self, name: str) -> int | None:
        """A whole number from 1, or None when absent."""
        value = self._input.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._wrong(name, "a whole number from 1")
        return value

    def _wrong(self, name: str, wanted: str) -> InvalidValueError:
        if name not in self._input:
            return InvalidValueError(f"{self._tool} needs the input {name!r}: {wanted}")
        given = type(self._input[name]).__name__
        return InvalidValueError(f"{self._tool}: {name!r} has to be {wanted}, not {given}")
