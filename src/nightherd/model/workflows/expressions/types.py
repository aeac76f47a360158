"""The types of expressions: what is known about a value before it is there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import replace


class Kind(StrEnum):
    """What a value is, as far as expressions care."""

    ANY = "any"
    """JSON of unknown shape: checked when it is there."""
    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"
    LIST = "list"
    OBJECT = "object"
    NAMESPACE = "namespace"
    """Fields without a value of its own: `inputs`, `phases`, `phases.review`."""


class Type(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a value."""

    kind: Kind
    is_optional: bool = False
    """Whether it can be null."""
    choices: tuple[str, ...] = ()
    """The only texts it can be; none for any text."""
    item: Type | None = None
    """What a list holds; None for anything."""
    fields: Mapping[str, Type] | None = None
    """What an object has; None for anything."""
    is_soft: bool = False
    """Whether the fields of null are null too: of `loop.previous`, which a first iteration does not have."""

    def __str__(self) -> str:
        return ARTICLES[self.kind]


ARTICLES = {
    Kind.ANY: "any value",
    Kind.TEXT: "a text",
    Kind.NUMBER: "a number",
    Kind.BOOLEAN: "true or false",
    Kind.NULL: "null",
    Kind.LIST: "a list",
    Kind.OBJECT: "an object",
    Kind.NAMESPACE: "a group of names",
}

ANY = Type(kind=Kind.ANY)
TEXT = Type(kind=Kind.TEXT)
NUMBER = Type(kind=Kind.NUMBER)
BOOLEAN = Type(kind=Kind.BOOLEAN)
NULL = Type(kind=Kind.NULL)
OBJECT = Type(kind=Kind.OBJECT)
LIST = Type(kind=Kind.LIST)


def one_of(*choices: str) -> Type:
    """Return the type of a text that is one of `choices`."""
    return Type(kind=Kind.TEXT, choices=choices)


def list_of(item: Type) -> Type:
    """Return the type of a list of `item`."""
    return Type(kind=Kind.LIST, item=item)


def object_of(fields: Mapping[str, Type]) -> Type:
    """Return the type of an object that has exactly these fields; optional ones may be absent."""
    return Type(kind=Kind.OBJECT, fields=fields)


def namespace_of(fields: Mapping[str, Type]) -> Type:
    """Return the type of a group of names."""
    return Type(kind=Kind.NAMESPACE, fields=fields)


def optional(kind: Type) -> Type:
    """Return the type of the same value, or null. Anything can be null already."""
    return kind if kind.kind in (Kind.ANY, Kind.NULL) else replace(kind, is_optional=True)


def can_be(value: Type, wanted: Kind) -> bool:
    """Return whether a value of that type may be of the `wanted` kind when it is there."""
    return value.kind in (wanted, Kind.ANY)


def can_equal(left: Type, right: Type) -> bool:
    """Return whether two values could ever be equal. Everything may be compared with null."""
    kinds = {left.kind, right.kind}
    return len(kinds) == 1 or bool(kinds & {Kind.ANY, Kind.NULL})


def kind_of(value: Any) -> Kind:
    """Return the kind of a JSON value."""
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.BOOLEAN
        case str():
            return Kind.TEXT
        case int() | float():
            return Kind.NUMBER
        case Mapping():
            return Kind.OBJECT
        case list() | tuple():
            return Kind.LIST
        case _:
            raise TypeError(f"{type(value).__name__} is not a JSON value")


def described(value: Any) -> str:
    """Return what a JSON value is, in words."""
    return ARTICLES[kind_of(value)] if not isinstance(value, bool) else str(value).lower()


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """The names that exist where an expression stands."""

    types: Mapping[str, Type]
    absent: Mapping[tuple[str, ...], str] = msgspec.field(default_factory=dict)
    """Names that exist elsewhere, and why they cannot be used here: `("phases", "x")`, `("item",)`."""
