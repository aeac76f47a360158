"""A type with another of ours inside is looked into by msgspec when its module is loaded, never by two threads at once."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args, get_type_hints

import msgspec

import nightherd
from nightherd.model.journal.system import PAYLOADS


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(nightherd.__path__, "nightherd."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def structs_in(kind: Any) -> set[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {kind}
    return {struct for inner in get_args(kind) for struct in structs_in(inner)}


def inner(kind: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
    hints = get_type_hints(kind, include_extras=True).values()
    return {struct for hint in hints for struct in structs_in(hint)}


def decoded(value: Any) -> Iterator[Any]:
    """The types of the decoders that a module holds."""
    owner = getattr(value, "__self__", None)
    if isinstance(value, msgspec.json.Decoder):
        yield value.type
    elif isinstance(owner, msgspec.json.Decoder):
        yield owner.type
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from decoded(item)


def types_read(module: ModuleType) -> Iterator[Any]:
    """The types that a module's functions name to `msgspec.convert`, `msgspec.json.decode` and decoders."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Call):
            named = [word.value for word in node.keywords if word.arg == "type"]
            match ast.unparse(node.func):
                case "msgspec.convert":
                    named += node.args[1:2]
                case "msgspec.json.Decoder":
                    named += node.args[:1]
                case "msgspec.json.decode":
                    pass
                case _:
                    continue
            for name in named:
                # A parameter is no name of the module's: the caller names the type.
                if isinstance(name, ast.BinOp) or ast.unparse(name) in vars(module):
                    yield eval(ast.unparse(name), vars(module))


def test_types_with_others_inside_are_known_when_their_module_is_loaded() -> None:
    every = list(modules())
    known = {
        struct
        for module in every
        for value in vars(module).values()
        for kind in decoded(value)
        for struct in structs_in(kind)
    }
    new = known
    while new:
        new = {struct for kind in new for struct in inner(kind)} - known
        known |= new

    read = {
        struct for module in every for kind in types_read(module) for struct in structs_in(kind)
    }
    nested = {struct for struct in read | set(PAYLOADS.values()) if inner(struct)}

    assert len(nested) > 10
    assert nested - known == set()
