"""Checking a document against the part of JSON Schema that `state_schema.yaml` uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
"""Every type there is, in words."""


def mistakes(value: Any, schema: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """What is wrong with `value`, each with its dotted place; nothing when it fits."""
    place = where or "the document"
    kinds = types_of(schema)
    if kinds and not any(is_of_type(value, kind) for kind in kinds):
        yield f"{place}: expected {' or '.join(TYPES[kind] for kind in kinds)}"
        return
    choices = schema.get("enum")
    if choices is not None and not any(same(value, choice) for choice in choices):
        known = ", ".join("null" if one is None else str(one) for one in choices)
        yield f"{place}: {value!r} is not one of {known}"
    if schema.get("format") == "date-time" and isinstance(value, str) and not is_instant(value):
        yield f"{place}: {value!r} is not an instant"
    if isinstance(value, Mapping):
        yield from _of_mapping(value, schema, where)
    elif isinstance(value, list | tuple) and isinstance(schema.get("items"), Mapping):
        for number, item in enumerate(value):
            yield from mistakes(item, schema["items"], f"{where}[{number}]")


def _of_mapping(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{where + '.' if where else ''}{name}: missing"
    for name, inner in (schema.get("properties") or {}).items():
        if name in value:
            yield from mistakes(value[name], inner, f"{where + '.' if where else ''}{name}")


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types a schema allows; none when it does not say."""
    found = schema.get("type")
    if found is None:
        return ()
    return (found,) if isinstance(found, str) else tuple(found)


def is_of_type(value: Any, kind: str) -> bool:
    """Whether `value` is of a type by JSON's own rules: true is no number."""
    match kind:
        case "object":
            return isinstance(value, Mapping)
        case "array":
            return isinstance(value, list | tuple)
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case _:
            return value is None


def same(value: Any, choice: Any) -> bool:
    """Whether they are one JSON value."""
    return type(value) is type(choice) and bool(value == choice)


def is_instant(text: str) -> bool:
    """Whether the text is an ISO 8601 instant."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def with_defaults(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """`value` with what it lacks and the schema has a default for."""
    filled = dict(value)
    for name, inner in (schema.get("properties") or {}).items():
        if name not in filled and "default" in inner:
            filled[name] = inner["default"]
        elif isinstance(filled.get(name), Mapping):
            filled[name] = with_defaults(filled[name], inner)
    return filled


def descriptions(schema: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, str]]:
    """Every field that is described, with its dotted place."""
    for name, inner in (schema.get("properties") or {}).items():
        place = f"{where}.{name}" if where else name
        if "description" in inner:
            yield place, str(inner["description"])
        yield from descriptions(inner, place)
        if isinstance(inner.get("items"), Mapping):
            yield from descriptions(inner["items"], f"{place}[]")
