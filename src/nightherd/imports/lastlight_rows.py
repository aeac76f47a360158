"""Rows of Last Light's database: their values, strictly of the type they should be, and what is damaged."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from nightherd.db.connection import Value
from nightherd.engine.imports.context import Report, Unreadable
from nightherd.engine.imports.foreign_runs import Aside
from nightherd.errors import InvalidValueError, StateError
from nightherd.imports.lines import instant, is_count, reason_of, shown
from nightherd.model.units import FREE, MicroUsd, parse_usd


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row as it is stored; texts as bytes."""

    table: str
    key: str
    values: Mapping[str, Value]

    @property
    def record(self) -> str:
        """What reports call it."""
        return f"{self.table}/{self.key}"


class Columns:
    """The values of a row. One that is of another type than it should be is a `ValueError`, never nothing."""

    def __init__(self, row: Row) -> None:
        self._values = row.values

    def raw(self, name: str) -> Value:
        """Return what is stored; None for a column that this schema does not have."""
        return self._values.get(name)

    def text(self, name: str) -> str:
        """Return a text that has to be there."""
        found = self.find_text(name)
        if not found:
            raise ValueError(f"no {name}")
        return found

    def find_text(self, name: str) -> str | None:
        """Return a text, or None for null."""
        found = self.raw(name)
        if found is None:
            return None
        if not isinstance(found, bytes):
            raise ValueError(f"{name} is not a text")  # noqa: TRY004 (a bad record, not a bad call)
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not UTF-8 at byte {error.start + 1}") from None

    def at(self, name: str) -> datetime:
        """Return an instant that has to be there."""
        found = instant(self.text(name))
        if found is None:
            raise ValueError(f"{name} is not a date and time")
        return found

    def find_at(self, name: str) -> datetime | None:
        """Return an instant, or None for null."""
        return None if self.raw(name) is None else self.at(name)

    def find_count(self, name: str) -> int | None:
        """Return a number of something, or None for null."""
        found = self.raw(name)
        if found is None:
            return None
        if not isinstance(found, int) or not is_count(found):
            raise ValueError(f"{name} is not a number of something")
        return found

    def find_flag(self, name: str) -> bool | None:
        """Return yes or no, or None for null."""
        found = self.raw(name)
        if found not in (None, 0, 1):
            raise ValueError(f"{name} is neither 0 nor 1")
        return None if found is None else bool(found)

    def cost(self, name: str) -> MicroUsd | None:
        """Return an amount of dollars in micro-dollars, or None for null."""
        found = self.raw(name)
        if found is None:
            return None
        if not isinstance(found, int | float):
            raise ValueError(f"{name} is not a number")  # noqa: TRY004 (a bad record, not a bad call)
        try:
            return parse_usd(found) if found else FREE
        except InvalidValueError as error:
            raise ValueError(f"{name}: {error.message}") from None


class Damage:
    """Reports what cannot be imported of one database, and keeps it aside."""

    def __init__(self, path: Path, report: Report) -> None:
        self.file = shown(path)
        self.report = report
        self.asides: list[Aside] = []
        self._reported: set[tuple[str, str]] = set()

    @classmethod
    def silent(cls) -> Damage:
        """Return one that nobody reads, for looking ahead."""
        return cls(Path(), Report())

    def row(self, row: Row, error: ValueError) -> None:
        """Keep a whole row aside."""
        reason = reason_of(error)
        self._report(row.record, reason)
        self._keep(row, reason, {name: plain(value) for name, value in row.values.items()})

    def value(self, row: Row, name: str, value: Any, reason: str) -> None:
        """Keep a part of a row aside, where the rest of it is imported."""
        self._report(row.record, f"{name}: {reason}")
        self._keep(row, reason, {name: plain(value)})

    def table(self, table: str, error: StateError) -> None:
        """Report what of a table cannot be read, once however often it is tried."""
        if (table, error.message) not in self._reported:
            self._reported.add((table, error.message))
            self._report(table, error.message)

    def skip(self, row: Row, reason: str) -> None:
        """Report a row that is read and not imported, and keep it aside."""
        self.report.skip(f"{self.file}: {row.record}", reason)
        self._keep(row, reason, {name: plain(value) for name, value in row.values.items()})

    def _report(self, record: str, reason: str) -> None:
        self.report.unreadable.append(Unreadable(file=self.file, record=record, reason=reason))

    def _keep(self, row: Row, reason: str, values: Mapping[str, Any]) -> None:
        kept = {"table": row.table, "key": row.key, "reason": reason, "row": values}
        content = json.dumps(kept, ensure_ascii=False, indent=1, sort_keys=True)
        data = content.encode("utf-8", "backslashreplace") + b"\n"
        name = f"{row.table}-{sha256(data).hexdigest()[:16]}.json"
        self.asides.append(Aside(name=name, content=data))


def plain(value: Any) -> Any:
    """Return the value for JSON: text where it is text, else its bytes."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
