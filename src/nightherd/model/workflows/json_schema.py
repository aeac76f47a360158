"""The JSON Schemas of outputs: the part of the standard that can be typed, explained and checked exactly.

Keywords: `type`, `properties`, `required`, `items`, `enum`, `additionalProperties` (true or false), the bounds of
numbers, texts and lists, and words for people. Every other keyword is a mistake: it would be promised and not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nightherd.model.text import quote
from nightherd.model.workflows.expressions.evaluate import equal
from nightherd.model.workflows.expressions.types import (
    ANY,
    BOOLEAN,
    LIST,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    Kind,
    Type,
    described,
    kind_of,
    list_of,
    object_of,
    one_of,
    optional,
)

Schema = Mapping[str, Any]

TYPES = {
    "string": TEXT,
    "number": NUMBER,
    "integer": NUMBER,
    "boolean": BOOLEAN,
    "null": NULL,
    "array": LIST,
    "object": OBJECT,
}
FOR_PEOPLE = frozenset({"title", "description", "examples", "$schema"})
BOUNDS = {
    "minimum": ("number", "at least"),
    "maximum": ("number", "at most"),
    "minLength": ("string", "at least"),
    "maxLength": ("string", "at most"),
    "minItems": ("array", "at least"),
    "maxItems": ("array", "at most"),
}
KEYWORDS = (
    frozenset(
        {"type", "properties", "required", "items", "enum", "additionalProperties", *FOR_PEOPLE}
    )
    | BOUNDS.keys()
)
DEEPEST = 20
MOST_MISMATCHES = 20

Steps = tuple[str | int, ...]


class SchemaMistake(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a schema, and the keys that lead to it."""

    path: Steps
    message: str
    word: str = ""
    known: tuple[str, ...] = ()


def check_schema(schema: Any, path: Steps = ()) -> Iterator[SchemaMistake]:
    """Yield what is wrong with a declared schema."""
    if not isinstance(schema, Mapping):
        message = f"a schema is a mapping, not {described(schema)}"
        yield SchemaMistake(path=path, message=message)
        return
    if len(path) > 2 * DEEPEST:
        yield SchemaMistake(path=path, message=f"nested more than {DEEPEST} levels deep")
        return
    for key, value in schema.items():
        if key not in KEYWORDS:
            message = f"{quote(str(key))} is not supported in the schema of an output"
            known = tuple(sorted(KEYWORDS))
            yield SchemaMistake(path=(*path, key), message=message, word=str(key), known=known)
        elif (problem := _keyword_problem(key, value)) is not None:
            yield SchemaMistake(path=(*path, key), message=problem)
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            yield from check_schema(inner, (*path, "properties", name))
        yield from _undeclared(schema, properties, path)
    if "items" in schema:
        yield from check_schema(schema["items"], (*path, "items"))


def _undeclared(schema: Schema, properties: Schema, path: Steps) -> Iterator[SchemaMistake]:
    required = schema.get("required")
    if not isinstance(required, Sequence) or isinstance(required, str):
        return
    for index, name in enumerate(required):
        if isinstance(name, str) and name not in properties:
            message = f"{quote(name)} is required and is not among the properties"
            known = tuple(properties)
            yield SchemaMistake(
                path=(*path, "required", index), message=message, word=name, known=known
            )


def _keyword_problem(key: str, value: Any) -> str | None:
    is_list = isinstance(value, list | tuple)
    match key:
        case "type":
            names = value if is_list else (value,)
            is_right = bool(names) and all(isinstance(x, str) and x in TYPES for x in names)
            return None if is_right else f"a type is one of {', '.join(TYPES)}"
        case "properties":
            return None if isinstance(value, Mapping) else "'properties' is a mapping"
        case "required":
            is_right = is_list and all(isinstance(name, str) for name in value)
            return None if is_right else "'required' is a list of names"
        case "enum":
            return None if is_list and value else "'enum' is a list of values"
        case "additionalProperties":
            return None if isinstance(value, bool) else "'additionalProperties' is true or false"
        case _:
            is_right = key not in BOUNDS or kind_of(value) is Kind.NUMBER
            return None if is_right else f"{quote(key)} is a number"


def type_of(schema: Schema) -> Type:
    """Return what expressions know about a value of that schema."""
    names = _type_names(schema)
    kinds = {TYPES[name].kind for name in names} - {Kind.NULL}
    if len(kinds) != 1:
        return NULL if names == ("null",) else _of_enum(schema, names)
    value_type = _typed(schema, kinds.pop())
    return optional(value_type) if "null" in names else value_type


def _of_enum(schema: Schema, names: Sequence[str]) -> Type:
    values = schema.get("enum", ())
    is_texts = not names and bool(values) and all(isinstance(value, str) for value in values)
    return one_of(*values) if is_texts else ANY


def _typed(schema: Schema, kind: Kind) -> Type:
    match kind:
        case Kind.TEXT:
            texts = [value for value in schema.get("enum", ()) if isinstance(value, str)]
            return one_of(*texts)
        case Kind.LIST:
            return list_of(type_of(schema["items"])) if "items" in schema else LIST
        case Kind.OBJECT:
            properties = schema.get("properties")
            if properties is None:
                return OBJECT
            required = schema.get("required", ())
            return object_of(
                {
                    name: type_of(inner) if name in required else optional(type_of(inner))
                    for name, inner in properties.items()
                }
            )
        case _:
            return Type(kind=kind)


def _type_names(schema: Schema) -> tuple[str, ...]:
    names = schema.get("type", ())
    return (names,) if isinstance(names, str) else tuple(names)


def mismatches(schema: Schema, value: Any) -> tuple[str, ...]:
    """Return why a value does not match the schema, in sentences; none when it matches."""
    reasons = []
    for reason in _mismatches(schema, value, "the output"):
        reasons.append(reason)
        if len(reasons) >= MOST_MISMATCHES:
            break
    return tuple(reasons)


def _mismatches(schema: Schema, value: Any, where: str) -> Iterator[str]:
    names = _type_names(schema)
    if names and not any(_is_of_type(value, name) for name in names):
        yield f"{where} is {described(value)}, not {' or '.join(names)}"
        return
    if "enum" in schema and not any(equal(value, choice) for choice in schema["enum"]):
        choices = ", ".join(str(choice) for choice in schema["enum"])
        yield f"{where} is not one of {choices}"
    yield from _out_of_bounds(schema, value, where)
    if isinstance(value, Mapping):
        yield from _wrong_fields(schema, value, where)
    elif isinstance(value, list | tuple) and "items" in schema:
        for index, item in enumerate(value):
            yield from _mismatches(schema["items"], item, f"{where}[{index}]")


def _wrong_fields(schema: Schema, value: Mapping[str, Any], where: str) -> Iterator[str]:
    properties: Schema = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where} has no {quote(name)}"
    for name, inner in value.items():
        if name in properties:
            yield from _mismatches(properties[name], inner, f"{where}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{where} has {quote(name)}, which is not among the properties"


def _out_of_bounds(schema: Schema, value: Any, where: str) -> Iterator[str]:
    for key, (kind, words) in BOUNDS.items():
        if key not in schema or not _is_of_type(value, kind):
            continue
        size = value if kind == "number" else len(value)
        is_inside = size >= schema[key] if words == "at least" else size <= schema[key]
        if not is_inside:
            what = {"number": "is", "string": "has a length of", "array": "has a length of"}[kind]
            yield f"{where} {what} {size}; {words} {schema[key]} is allowed"


def _is_of_type(value: Any, name: str) -> bool:
    if name == "integer":
        is_number = kind_of(value) is Kind.NUMBER
        return is_number and (isinstance(value, int) or value.is_integer())
    return kind_of(value) is TYPES[name].kind
