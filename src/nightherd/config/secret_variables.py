"""Variables that hold secrets because the fleet file says so: `token_env`, `secret_env` and the like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nightherd.config.node import MappingNode, Node, SequenceNode, text_of
from nightherd.config.resolve_web import resolve_web
from nightherd.config.schema.fleet import FleetSettings

ENDING = "_env"
"""How every key ends that names a variable which holds a secret."""


def secret_variables(documents: Iterable[Node], settings: FleetSettings) -> frozenset[str]:
    """Return the variables that the documents name, and the one of the API's token."""
    named = {name for document in documents for name in _named_in(document)}
    return frozenset({*named, resolve_web(settings.web).token_env})


def _named_in(node: Node) -> Iterator[str]:
    match node:
        case MappingNode():
            for entry in node.entries.values():
                name = text_of(entry.value)
                if entry.key.text.endswith(ENDING) and name:
                    yield name
                yield from _named_in(entry.value)
        case SequenceNode():
            for item in node.items:
                yield from _named_in(item)
        case _:
            pass
