"""A type with another of ours inside is looked into by msgspec when its module is loaded, never by two threads at once."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args, get_type_hints

import msgspec

import nightherd
from nightherd.files import yaml_nodes as node
from nightherd.journal.bodies import Sealed
from nightherd.model.usage import Totals

NEVER_READ = {
    node.Spot,
    node.Entry,
    node.ScalarNode,
    node.SequenceNode,
    node.MappingNode,
    Sealed,
    Totals,
}
"""Made by ourselves, and not read from anywhere."""


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(nightherd.__path__, "nightherd."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def structs_in(kind: Any) -> set[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {kind}
    return {one for inner in get_args(kind) for one in structs_in(inner)}


def inner(kind: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
    hints = get_type_hints(kind, include_extras=True).values()
    return {one for hint in hints for one in structs_in(hint)}


def decoded(value: Any) -> Iterator[Any]:
    """The types of the decoders that a module holds."""
    owner = getattr(value, "__self__", None)
    if isinstance(value, msgspec.json.Decoder):
        yield value.type
    elif isinstance(owner, msgspec.json.Decoder):
        yield owner.type
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from decoded(one)


def test_types_with_others_inside_are_known_when_their_module_is_loaded() -> None:
    values = [value for module in modules() for value in vars(module).values()]
    ours = {one for value in values for one in structs_in(value) if one.__module__ != "msgspec"}
    known = set[type[msgspec.Struct]]()
    new = {one for value in values for kind in decoded(value) for one in structs_in(kind)}
    while new:
        known |= new
        new = {one for kind in new for one in inner(kind)} - known

    nested = {kind for kind in ours if kind.__module__.startswith("nightherd.") and inner(kind)}

    assert len(nested) > len(NEVER_READ)
    assert nested - known == NEVER_READ
