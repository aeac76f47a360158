"""Making rows from columns, fast: a list makes many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, Generic, TypeVar

RowT = TypeVar("RowT")

Decode = Callable[[Any], Any]


class RowMaker(Generic[RowT]):
    """Makes rows of one dataclass with slots from the values of `columns`, in that order.

    Columns that are no field are passed over (a newer database has them); fields that are no column get
    their defaults (an older one lacks them).
    """

    def __init__(
        self, row_type: type[RowT], columns: Sequence[str], decoders: Mapping[str, Decode]
    ) -> None:
        self._row_type = row_type
        known: dict[str, Field[Any]] = {one.name: one for one in fields(row_type)}  # type: ignore[arg-type]  # callers give dataclasses
        slots = vars(row_type)
        self._steps = tuple(
            (place, slots[name].__set__, decoders.get(name))
            for place, name in enumerate(columns)
            if name in known
        )
        self._defaults = tuple(
            (slots[name].__set__, _default(field))
            for name, field in known.items()
            if name not in columns
        )

    def __call__(self, values: Sequence[Any]) -> RowT:
        """One row. Fields are set past the constructor of the frozen type, which costs three times as much."""
        row = object.__new__(self._row_type)
        for place, assign, decode in self._steps:
            value = values[place]
            assign(row, value if decode is None or value is None else decode(value))
        for assign, default in self._defaults:
            assign(row, default())
        return row


def _default(field: Field[Any]) -> Callable[[], Any]:
    if field.default_factory is not MISSING:
        return field.default_factory
    if field.default is not MISSING:
        return lambda: field.default
    raise TypeError(f"there is no column {field.name!r}, and the field has no default")
