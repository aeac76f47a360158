"""Fields of foreign records: what they say if it is what it should be, and a reason when it is not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from nightherd.errors import InvalidValueError
from nightherd.model.ids import check_name

LARGEST_COUNT = 2**53
"""Beyond this no program that writes JSON can count."""

Word = TypeVar("Word", bound=StrEnum)


class Fields:
    """A mapping of a foreign file. What has to be there and is not, or is something else, is a `ValueError`."""

    def __init__(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise ValueError("not a mapping of fields")  # noqa: TRY004 (a bad record, not a bad call)
        self._value = value

    def text(self, name: str) -> str:
        """A text that has to be there."""
        found = self.find_text(name)
        if not found:
            raise ValueError(f"no {name}")
        return found

    def find_text(self, name: str) -> str | None:
        """A text, if there is one."""
        found = self._value.get(name)
        return found if isinstance(found, str) else None

    def name(self, name: str) -> str:
        """The name of an agent, `fleet.agent` too: it becomes part of file names."""
        return check_agent(self.text(name))

    def word(self, name: str, words: type[Word]) -> Word:
        """One of a closed list of words."""
        found = self.text(name)
        try:
            return words(found)
        except ValueError:
            raise ValueError(f"{name} is {found[:80]!r}, which is not known") from None

    def find_word(self, name: str, words: type[Word]) -> Word | None:
        """One of a closed list of words, if it is one."""
        return next((word for word in words if word.value == self._value.get(name)), None)

    def at(self, name: str) -> datetime:
        """An instant that has to be there."""
        found = self.find_at(name)
        if found is None:
            raise ValueError(f"{name} is not a date and time")
        return found

    def find_at(self, name: str) -> datetime | None:
        """An instant, if there is one."""
        return instant(self.find_text(name))

    def count(self, name: str) -> int:
        """A number of something; 0 when there is none."""
        found = self._value.get(name)
        return found if is_count(found) and isinstance(found, int) else 0

    def is_set(self, name: str) -> bool:
        """A flag."""
        return self._value.get(name) is True

    def part(self, name: str) -> Mapping[str, Any]:
        """A mapping below this one; empty when there is none."""
        found = self._value.get(name)
        return found if isinstance(found, Mapping) else {}

    def raw(self, name: str) -> Any:
        """Whatever is there."""
        return self._value.get(name)


def check_agent(text: str) -> str:
    """`text` if it can be an agent's qualified name, else `ValueError`."""
    try:
        for part in text.split("."):
            check_name(part)
    except InvalidValueError as error:
        raise ValueError(error.message) from None
    return text


def is_count(value: object) -> bool:
    """Whether `value` is a number of something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT


def instant(text: str | None) -> datetime | None:
    """An instant as foreign files give it, in UTC; None when there is none to be had."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
