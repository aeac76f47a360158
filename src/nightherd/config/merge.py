"""From nodes to the plain values that the schema checks: layers merged, paths made absolute."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel

from nightherd.config.schema.types import Filled
from nightherd.decoding import convert
from nightherd.files.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    Plain,
    ScalarNode,
    SequenceNode,
    resolve_plain,
)

ValueT = TypeVar("ValueT", bound=msgspec.Struct)


def plain_value(node: ScalarNode) -> Plain:
    """What a scalar stands for; filled in from the environment it may be a number and a text at once."""
    if not node.plain:
        return node.text
    value = resolve_plain(node.text)
    if node.written is None or isinstance(value, str) or value is None:
        return value
    return Filled(node.text)


def to_plain(node: Node) -> Any:
    """The node as mappings, tuples and scalars."""
    if isinstance(node, ScalarNode):
        return plain_value(node)
    if isinstance(node, MappingNode):
        return {key: to_plain(entry.value) for key, entry in node.entries.items()}
    return tuple([to_plain(item) for item in node.items])


def like(settings: BaseModel, kind: type[ValueT]) -> ValueT:
    """The checked settings as a value whose fields have the same names."""
    return convert(settings, kind, from_attributes=True)


def merge(base: MappingNode | None, top: MappingNode | None) -> MappingNode | None:
    """`top` laid over `base`; None where there is nothing."""
    if base is None or top is None:
        return base if top is None else top
    return merge_mappings(base, top)


def merge_mappings(base: MappingNode, top: MappingNode) -> MappingNode:
    """`top` laid over `base`, keys in the order they were first given."""
    entries = dict(base.entries)
    for key, entry in top.entries.items():
        below = entries.get(key)
        entries[key] = (
            entry if below is None else Entry(entry.key, merge_values(below.value, entry.value))
        )
    return MappingNode(top.spot, entries)


def merge_values(base: Node, top: Node) -> Node:
    """Two mappings are merged; of anything else the upper one counts."""
    if isinstance(base, MappingNode) and isinstance(top, MappingNode):
        return merge_mappings(base, top)
    return top


VOLUME_SOURCE = re.compile(r"[^:]+(?=:/)")
PLAIN_PATH = re.compile(r"(?!.*://).+$")
PATH_KEYS = frozenset({"working_directory", "add_dirs", "plugins"})
"""Keys of an agent that hold directories: one, several, or mappings with a `root` or `path`."""


def absolute_path(node: ScalarNode, environ: Mapping[str, str]) -> str:
    """The path a scalar names, absolute: `~/` is the home directory."""
    text = node.text
    home = environ.get("HOME")
    if home and (text == "~" or text.startswith("~/")):
        text = home + text[1:]
    return os.path.normpath(os.path.join(os.path.dirname(node.spot.source.path), text))  # noqa: PTH118, PTH120 (text in, text out)


def real_path(path: str) -> str:
    """The path with symbolic links followed: two names of one file are the same here."""
    # A name that no file can have stays as it is; reading it says what is wrong with it.
    return path if "\0" in path else os.path.realpath(path)


def with_absolute_paths(agent: MappingNode, environ: Mapping[str, str]) -> MappingNode:
    """`agent`, or a schedule, with the directories it names made absolute."""
    changed = {
        key: Entry(entry.key, absolute_below(entry.value, environ))
        for key, entry in agent.entries.items()
        if key in PATH_KEYS
    }
    docker = agent.entries.get("docker")
    if docker is not None and isinstance(docker.value, MappingNode):
        changed["docker"] = Entry(docker.key, with_absolute_mounts(docker.value, environ))
    schedules = agent.entries.get("schedules")
    if schedules is not None and isinstance(schedules.value, MappingNode):
        absolute = {
            name: Entry(entry.key, with_absolute_paths(entry.value, environ))
            if isinstance(entry.value, MappingNode)
            else entry
            for name, entry in schedules.value.entries.items()
        }
        changed["schedules"] = Entry(schedules.key, MappingNode(schedules.value.spot, absolute))
    return MappingNode(agent.spot, {**agent.entries, **changed}) if changed else agent


def with_absolute_mounts(docker: MappingNode, environ: Mapping[str, str]) -> MappingNode:
    """A container's settings with the host paths of its volumes, and its engine's socket, made absolute."""
    changed: dict[str, Entry] = {}
    volumes, socket = docker.entries.get("volumes"), docker.entries.get("socket")
    if volumes is not None and isinstance(volumes.value, SequenceNode):
        items = tuple(absolute_prefix(item, VOLUME_SOURCE, environ) for item in volumes.value.items)
        changed["volumes"] = Entry(volumes.key, SequenceNode(volumes.value.spot, items))
    if socket is not None:
        changed["socket"] = Entry(socket.key, absolute_prefix(socket.value, PLAIN_PATH, environ))
    return MappingNode(docker.spot, {**docker.entries, **changed}) if changed else docker


def absolute_prefix(node: Node, form: re.Pattern[str], environ: Mapping[str, str]) -> Node:
    """A text with the path that `form` finds at its beginning made absolute; another stays as it is."""
    if not isinstance(node, ScalarNode) or "\0" in node.text:
        return node
    match = form.match(node.text)
    if match is None or (node.plain and resolve_plain(node.text) is None):
        return node
    path = absolute_path(replace(node, text=match[0]), environ)
    return replace(node, text=path + node.text[match.end() :], plain=False)


def absolute_below(node: Node, environ: Mapping[str, str]) -> Node:
    """A path, a list of them, or a mapping that has one, made absolute."""
    if isinstance(node, ScalarNode):
        if "\0" in node.text or (node.plain and resolve_plain(node.text) is None):
            return node
        return ScalarNode(node.spot, absolute_path(node, environ), False, node.written, node.secret)
    if isinstance(node, SequenceNode):
        return SequenceNode(node.spot, tuple(absolute_below(item, environ) for item in node.items))
    entries = {
        key: Entry(entry.key, absolute_below(entry.value, environ))
        if key in {"root", "path"} and isinstance(entry.value, ScalarNode)
        else entry
        for key, entry in node.entries.items()
    }
    return MappingNode(node.spot, entries)
