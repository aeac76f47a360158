"""Replacing fields of a frozen value, as `dataclasses.replace` does, in a fraction of the time.

Every change replaces several rows of dozens of fields. A frozen value is slow to make: its constructor goes
round its own refusal to be written, field by field. So the fields are copied into a value of a twin, which has
the same slots and no such refusal, and that becomes a value of the frozen kind once it is whole.
"""

from __future__ import annotations

from dataclasses import make_dataclass
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the type checker knows that one, and which fields there are
    from dataclasses import replace
else:

    def replace(value: Any, /, **changes: Any) -> Any:
        """`value` with `changes`; a dataclass with slots, no `__post_init__` and every field a slot."""
        kind = type(value)
        read, make, put = _copying(kind)
        made = make(*read(value))
        made.__class__ = kind
        for name, new in changes.items():
            if name not in put:
                raise TypeError(f"{kind.__name__} has no field {name!r}")
            put[name](made, new)
        return made


@cache  # what is worked out from a class is as lasting as the class
def _copying(kind: type) -> tuple[Any, Any, dict[str, Any]]:
    """How to read every field of a `kind`, how to make its twin of them, and how to set each."""
    names: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]  # every kind here has slots
    twin = make_dataclass(kind.__name__, names, slots=True, repr=False, eq=False)
    return attrgetter(*names), twin, {name: vars(kind)[name].__set__ for name in names}


__all__ = ["replace"]
