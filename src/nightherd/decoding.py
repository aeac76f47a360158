"""Values of declared types, from JSON and from plain values, in any thread.

msgspec works a type out when it is used first, and a thread that uses it meanwhile finds it half done and crashes
the process. So every type is worked out here, by one thread at a time.
"""

from __future__ import annotations

from _thread import RLock  # `threading` costs each command a millisecond
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_one_at_a_time = RLock()
_worked_out: set[Any] = set()


def work_out(kind: Any) -> None:
    """Make a type ready for use by msgspec itself, in any thread."""
    if kind not in _worked_out:
        json_decoder(kind)
        _worked_out.add(kind)


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return what reads values of a type from JSON."""
    with _one_at_a_time:
        return msgspec.json.Decoder(kind)


@overload
def decode_json(data: bytes | bytearray | memoryview | str, kind: type[T]) -> T: ...
@overload
def decode_json(data: bytes | bytearray | memoryview | str, kind: Any) -> Any: ...
def decode_json(data: bytes | bytearray | memoryview | str, kind: Any) -> Any:
    """Return the value of a type that a JSON text is, or raise `msgspec.DecodeError`."""
    work_out(kind)
    return msgspec.json.decode(data, type=kind)


@overload
def convert(
    value: Any, kind: type[T], *, strict: bool = True, from_attributes: bool = False
) -> T: ...
@overload
def convert(
    value: Any, kind: Any, *, strict: bool = True, from_attributes: bool = False
) -> Any: ...
def convert(value: Any, kind: Any, *, strict: bool = True, from_attributes: bool = False) -> Any:
    """Return the value of a type that a plain value is, or raise `msgspec.ValidationError`."""
    work_out(kind)
    return msgspec.convert(value, kind, strict=strict, from_attributes=from_attributes)
