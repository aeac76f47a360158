"""How a row's fields become the columns of its table, and back.

Columns have the names of the fields; the first field is the key. Words of an enum are text, instants are UTC
text of fixed width, flags are 0 or 1, maps are JSON text.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache, cached_property
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from nightherd.db.connection import Value
from nightherd.decoding import convert, work_out
from nightherd.errors import InvalidValueError
from nightherd.model.jobs.job import Execution, Job, JobTexts
from nightherd.model.jobs.options import JobOptions
from nightherd.model.text import utc_text
from nightherd.model.worker import Worker

JOB_TABLES: Mapping[type[msgspec.Struct], str] = {
    Job: "jobs",
    JobTexts: "job_texts",
    Execution: "executions",
    Worker: "workers",
}
"""The tables that lists of jobs read; `tables.py` has all. A list of jobs loads no other kind of row."""

NAMED_COLUMNS = frozenset({"workflow_runs"})
"""Tables with long columns that no row has: every query of them names the columns of the row, in its order."""

Image = dict[str, Value]
"""A row as its table has it: column to value."""

UNREADABLE = (ValueError, KeyError, TypeError)
"""What a decoder raises for a value that no row can have."""

RowT = TypeVar("RowT", bound=msgspec.Struct)
Convert = Callable[[Any], Any]
MakeRow = Callable[[Sequence[Value]], RowT]


class Table(Generic[RowT]):
    """One kind of row and its table: rows to columns and back, losing nothing."""

    def __init__(self, row_type: type[RowT], name: str) -> None:
        self.row_type = row_type
        self.name = name
        self.columns = row_type.__struct_fields__
        self.key = self.columns[0]
        self.names_columns = name in NAMED_COLUMNS
        hints = get_type_hints(row_type)
        kinds = {name: _plain(hints[name]) for name in self.columns}
        self._hints = hints
        self._values: Callable[[RowT], tuple[Any, ...]] = attrgetter(*self.columns)
        encoders = dict(_chosen(kinds, _encoder))
        self._encoders = tuple(encoders.get(name) for name in self.columns)
        self._decoders = dict(_chosen(kinds, _decoder))
        self._places = tuple(range(len(self.columns)))
        self._makers: dict[tuple[str, ...], MakeRow[RowT]] = {}
        self._updates: dict[tuple[str, ...], str] = {}

    @cached_property
    def upsert(self) -> str:
        """The statement that writes one whole row, new or not; its values stand in column order."""
        places = ", ".join("?" for _ in self.columns)
        changes = ", ".join(f"{name} = excluded.{name}" for name in self.columns[1:])
        return (
            f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({places})"
            f" ON CONFLICT ({self.key}) DO UPDATE SET {changes}"
        )

    @cached_property
    def by_key(self) -> str:
        """The statement that reads the row with a key."""
        columns = ", ".join(self.columns) if self.names_columns else "*"
        return f"SELECT {columns} FROM {self.name} WHERE {self.key} = ?1"

    def image(self, row: RowT) -> Image:
        """`row` as its table has it."""
        values = self._values(row)
        return {
            name: value if encode is None or value is None else encode(value)
            for name, encode, value in zip(self.columns, self._encoders, values, strict=True)
        }

    def image_after(self, before: RowT, image: Image, row: RowT) -> tuple[Image, tuple[str, ...]]:
        """The image of `row`, which takes the place of `before` with its `image`; the columns that differ."""
        after, changed = image.copy(), []
        old, new = self._values(before), self._values(row)
        # Most of the values are the very same ones.
        for place in compress(self._places, map(is_not, old, new)):
            value = new[place]
            if value != old[place]:
                name, encode = self.columns[place], self._encoders[place]
                after[name] = value if encode is None or value is None else encode(value)
                changed.append(name)
        return after, tuple(changed)

    def update(self, changed: tuple[str, ...]) -> str:
        """The statement that writes only these columns of a row that is there; its key comes last.

        Far cheaper than writing the whole row: indexes of columns that stay are not touched.
        """
        statement = self._updates.get(changed)
        if statement is None:
            changes = ", ".join(f"{name} = ?" for name in changed)
            statement = f"UPDATE {self.name} SET {changes} WHERE {self.key} = ?"
            self._updates[changed] = statement
        return statement

    def row(self, columns: tuple[str, ...], values: Sequence[Value]) -> RowT:
        """The row that `values` of `columns` are, or one of `UNREADABLE`."""
        return self.maker(columns)(values)

    def maker(self, columns: tuple[str, ...]) -> MakeRow[RowT]:
        """Return what makes rows from values of `columns`.

        Columns that are no field are passed over (a newer database has them); fields that are no column get
        their defaults (an older one lacks them).
        """
        make = self._makers.get(columns)
        if make is None:
            make = self._makers[columns] = self._new_maker(columns)
        return make

    def _new_maker(self, columns: tuple[str, ...]) -> MakeRow[RowT]:
        row_type, to_row = self.row_type, msgspec.convert
        work_out(row_type)
        decoders = [item for item in self._decoders.items() if item[0] in columns]

        def make(values: Sequence[Value]) -> RowT:
            fields: dict[str, Any] = dict(zip(columns, values, strict=True))
            for name, decode in decoders:
                if fields[name] is not None:
                    fields[name] = decode(fields[name])
            return to_row(fields, row_type)

        return make

    def damaged_columns(self, columns: Sequence[str], values: Sequence[Value]) -> list[str]:
        """Return the columns whose values no row can have: another type, a word or a time that is none."""
        return [
            name
            for name, value in zip(columns, values, strict=True)
            if name in self._hints and not self._is_possible(name, value)
        ]

    def _is_possible(self, name: str, value: Any) -> bool:
        decode = self._decoders.get(name)
        try:
            decoded = value if decode is None or value is None else decode(value)
            convert(decoded, self._hints[name])
        except UNREADABLE:
            return False
        return True


def table_for(row_type: type[RowT], name: str) -> Table[RowT]:
    """Return the table of one kind of row, made once in each process: all it remembers is how to read and write."""
    return _made(row_type, name)


@cache
def _made(row_type: type[Any], name: str) -> Table[Any]:
    return Table(row_type, name)


def _plain(hint: Any) -> Any:
    """The type inside `X | None` and behind a NewType."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    while hasattr(hint, "__supertype__"):
        hint = hint.__supertype__
    return get_origin(hint) or hint


def _chosen(
    kinds: Mapping[str, Any], choose: Callable[[Any], Convert | None]
) -> tuple[tuple[str, Convert], ...]:
    return tuple((name, found) for name, kind in kinds.items() if (found := choose(kind)))


def _encoder(kind: Any) -> Convert | None:
    if kind is datetime:
        return utc_text
    if kind is bool:
        return int
    if kind is Mapping:
        return _json_text
    if kind is JobOptions:
        return _options_text
    return str if issubclass(kind, StrEnum) else None


def _decoder(kind: Any) -> Convert | None:
    """What msgspec does not read by itself: SQLite has neither flags nor maps."""
    if kind is bool:
        return _flag
    if kind is JobOptions:
        return _options
    return _mapping if kind is Mapping else None


def _flag(value: Value) -> bool:
    if not isinstance(value, int):
        raise InvalidValueError(f"{value!r} is not 0 or 1")
    return bool(value)


def _mapping(text: str) -> Mapping[str, Any]:
    return {} if text == "{}" else json.loads(text)


def _options(text: str) -> JobOptions:
    return JobOptions.from_document(_mapping(text))


def _options_text(options: JobOptions) -> str:
    return _json_text(options.document())


def _json_text(value: Mapping[str, Any]) -> str:
    if not value:
        return "{}"
    return json.dumps(dict(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
