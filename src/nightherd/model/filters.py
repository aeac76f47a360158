"""Filters of lists as people write them: `agent:coder status:failed,cancelled cost:>1 since:2d "two words"`.

A term is `key:value`, or a word that has to be in the text of a row. Several values of a key, with commas or by
repeating the key, mean any of them; different keys must all hold. A value or word in double quotes may contain
anything; `\\` escapes a quote in it. Every error names the column where it is, counted from 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import NamedTuple, TypeVar

from nightherd.errors import InvalidValueError
from nightherd.model.units import FREE, LARGEST, MicroUsd, parse_duration, parse_instant, parse_usd

KEY = re.compile(r"([A-Za-z_]+):")
SPACE = re.compile(r"\s*")
WORD = re.compile(r"\S+")
VALUE = re.compile(r"[^\s,]+")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
COST = re.compile(r"(>=|<=|>|<|=)?(.*)", re.DOTALL)
MOST_VALUES = 50
"""Words and values of a filter, together."""

ValueT = TypeVar("ValueT")
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)


class Place(NamedTuple):
    """A word or a value, and the column where it begins."""

    text: str
    column: int


class Terms(NamedTuple):
    """What a filter says: the values of each key that is in it, and its words."""

    values: Mapping[str, Sequence[Place]]
    words: tuple[str, ...]

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the values of a key as they are, each once."""
        return tuple(dict.fromkeys(place.text for place in self.values.get(key, ())))

    def read(self, key: str, read: Callable[[str], ValueT]) -> tuple[ValueT, ...]:
        """Return the values of a key as `read` makes them; what it refuses is reported with its column."""
        found = []
        for place in self.values.get(key, ()):
            try:
                found.append(read(place.text))
            except InvalidValueError as error:
                raise _refused(place.column, error.message) from error
        return tuple(dict.fromkeys(found))

    def choices(self, key: str, kind: type[ChoiceT]) -> tuple[ChoiceT, ...]:
        """Return the values of a key that are words of a closed list."""

        def read(text: str) -> ChoiceT:
            try:
                return kind(text.lower())
            except ValueError:
                raise InvalidValueError(
                    f"{text[:40]!r} is no {key}; use {_listed(one.value for one in kind)}"
                ) from None

        return self.read(key, read)

    def costs(self, key: str = "cost") -> CostRange:
        """Return the range that all costs of the filter leave: `>1`, `<=0.5`, `0.5..2` or an amount."""
        least, most = FREE, LARGEST
        for range in self.read(key, parse_cost):
            least, most = max(least, range.least), min(most, range.most)
        return CostRange(MicroUsd(least), MicroUsd(most))

    def instant(self, key: str, now: datetime, choose: Callable[..., datetime]) -> datetime | None:
        """Return the instant of a key: a duration before `now`, a day (UTC) or a time; of several, the chosen one."""
        found = self.read(key, lambda text: parse_since(text, now))
        return choose(found) if found else None


class CostRange(NamedTuple):
    """The smallest and the largest cost that a filter lets through."""

    least: MicroUsd = FREE
    most: MicroUsd = LARGEST

    @property
    def is_all(self) -> bool:
        """Whether every cost is in it."""
        return self.least <= FREE and self.most >= LARGEST

    def has(self, cost: MicroUsd) -> bool:
        """Whether the cost is in it."""
        return self.is_all or self.least <= cost <= self.most


def parse_filter(text: str, keys: Collection[str]) -> Terms:
    """Return the terms of a filter, or `InvalidValueError` with the column of the first error."""
    values: dict[str, list[Place]] = {}
    words: list[str] = []
    count = 0
    position = _skip_space(text, 0)
    while position < len(text):
        key = KEY.match(text, position)
        if key is None:
            word, position = _quoted(text, position) or _match(WORD, text, position)
            _must_end(text, position)
            words.append(word.text)
            count += 1
        else:
            if key[1].lower() not in keys:
                raise _refused(
                    position + 1,
                    f"{key[1]!r} is no filter; use {_listed(sorted(keys))}, or put the word in quotes",
                )
            found, position = _values(text, key.end(), key[1])
            values.setdefault(key[1].lower(), []).extend(found)
            count += len(found)
        if count > MOST_VALUES:
            raise InvalidValueError(f"a filter has at most {MOST_VALUES} words and values")
        position = _skip_space(text, position)
    return Terms(values, tuple(word for word in words if word))


def _values(text: str, position: int, key: str) -> tuple[list[Place], int]:
    found = []
    while True:
        if position >= len(text) or text[position].isspace() or text[position] == ",":
            raise _refused(position + 1, f"{key!r} needs a value after the {text[position - 1]!r}")
        value, position = _quoted(text, position) or _match(VALUE, text, position)
        found.append(value)
        if position >= len(text) or text[position] != ",":
            _must_end(text, position)
            return found, position
        position += 1


def _quoted(text: str, position: int) -> tuple[Place, int] | None:
    """Return the text in quotes that begins here, and where it ends; None where no quote is."""
    if text[position] != '"':
        return None
    match = QUOTED.match(text, position)
    if match is None:
        raise _refused(position + 1, "the quote is not closed")
    return Place(ESCAPED.sub(r"\1", match[1]), position + 1), match.end()


def _match(pattern: re.Pattern[str], text: str, position: int) -> tuple[Place, int]:
    match = pattern.match(text, position)
    assert match is not None  # noqa: S101 (the caller has seen a character that fits)
    return Place(match[0], position + 1), match.end()


def _must_end(text: str, position: int) -> None:
    if position < len(text) and not text[position].isspace():
        raise _refused(position + 1, f"expected a space, not {text[position]!r}")


def _skip_space(text: str, position: int) -> int:
    match = SPACE.match(text, position)
    return match.end() if match else position


def parse_cost(text: str) -> CostRange:
    """Return the costs that `>1`, `>=1`, `<1`, `<=1`, `=1`, `1` or `0.5..2` means, in dollars."""
    low, dots, high = text.partition("..")
    if dots:
        return CostRange(parse_usd(low), parse_usd(high))
    match = COST.fullmatch(text)
    sign, amount = (match[1], parse_usd(match[2])) if match else (None, parse_usd(text))
    match sign:
        case ">":
            return CostRange(MicroUsd(amount + 1), LARGEST)
        case ">=":
            return CostRange(amount, LARGEST)
        case "<":
            return CostRange(FREE, MicroUsd(amount - 1))
        case "<=":
            return CostRange(FREE, amount)
        case _:
            return CostRange(amount, amount)


def parse_since(text: str, now: datetime) -> datetime:
    """Return the instant that `2d` (before `now`), `2026-11-15` (its first moment in UTC) or a whole time means."""
    if DATE.fullmatch(text):
        try:
            return datetime.combine(date.fromisoformat(text), time(), UTC)
        except ValueError:
            raise InvalidValueError(f"{text!r} is not a day") from None
    if len(text) > 10 and DATE.match(text):
        return parse_instant(text)
    try:
        return now - parse_duration(text)
    except InvalidValueError:
        raise InvalidValueError(
            f"{text[:40]!r} is neither a duration such as 2d nor a day such as 2026-11-15"
        ) from None


def has_words(words: Iterable[str], texts: Sequence[str | None]) -> bool:
    """Whether each word is in one of the texts; upper and lower case of ASCII letters are the same."""
    lowered = [_lower(text) for text in texts if text]
    return all(any(_lower(word) in text for text in lowered) for word in words)


def _lower(text: str) -> str:
    """Return the text with ASCII letters in lower case, as the database compares them."""
    return text.lower() if text.isascii() else "".join(c.lower() if c < "\x80" else c for c in text)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _refused(column: int, message: str) -> InvalidValueError:
    return InvalidValueError(f"column {column} of the filter: {message}")
