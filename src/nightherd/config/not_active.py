"""Keys that are accepted and checked but do nothing yet, and the feature each is waiting for.

One table; later work empties it. A key counts with everything below it. A test compares the table with
what `resolve` reads: a key of the schema is read, or has a row here, and never both.

A key that only adds something is a notice. One that protects stops the agent: it is never accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from nightherd.config.merge import plain_value
from nightherd.files.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    problem_at,
    text_of,
)
from nightherd.model.agents.runtime import RuntimeCapabilities
from nightherd.model.problem import Problem, Severity
from nightherd.model.text import quote


class Protection(msgspec.Struct, frozen=True):
    """What a key protects by, once it is switched on."""

    switch: str
    """The key of the agent that switches it on."""
    what: str
    hint: str


def never(runtime: RuntimeCapabilities) -> bool:
    """No runtime has the feature yet."""
    return False


class Waiting(msgspec.Struct, frozen=True):
    """A key, or some values of one, whose feature is not there yet."""

    key: str
    feature: str
    values: frozenset[str] = frozenset()
    """Only these values of the key are waiting; none means the key as a whole."""
    is_used_by: Callable[[RuntimeCapabilities], bool] = never
    """Whether the runtime of an agent reads the key, or has no use for it: there it is not waiting."""
    protection: Protection | None = None
    """Set for a key that protects: an agent that switches it on does not run."""


CLAUDE = "running agents with Claude"

SANDBOX = Protection(
    "sandbox.enabled",
    "a sandbox, which only Claude has",
    "use runtime: sdk or cli, or set sandbox.enabled: false to run it without one",
)

AGENT_KEYS = (
    Waiting(
        "agents",
        CLAUDE,
        is_used_by=lambda runtime: runtime.supports_subagents or not runtime.uses_model,
    ),
    Waiting(
        "sandbox",
        CLAUDE,
        is_used_by=lambda runtime: runtime.supports_sandbox,
        protection=SANDBOX,
    ),
    Waiting(
        "setting_sources",
        CLAUDE,
        is_used_by=lambda runtime: runtime.supports_setting_sources or not runtime.uses_model,
    ),
    Waiting(
        "plugins",
        CLAUDE,
        is_used_by=lambda runtime: runtime.supports_plugins or not runtime.uses_model,
    ),
)
FLEET_KEYS: tuple[Waiting, ...] = ()
WORKFLOW_KEYS: tuple[Waiting, ...] = ()


INNER_KEYS = frozenset({"version", "fleet"})
"""Settings of the fleet itself that are looked at in the file of an inner fleet too."""
OUTER_ONLY = "is used in the outermost fleet file alone"
LIMITS_HINT = "write it into the outer fleet file, or into the agents"


def inactive_keys(
    node: MappingNode,
    table: tuple[Waiting, ...],
    path: str,
    runtime: RuntimeCapabilities | None = None,
) -> Iterator[Problem]:
    """One problem for each key of `node` that is not active yet, at its place; `runtime` is the agent's.

    A notice; `Severity.BLOCKED` for one that protects and is switched on.
    """
    for waiting in table:
        if runtime is not None and waiting.is_used_by(runtime):
            continue
        for entry, dotted in entries_at(node, waiting.key):
            if waiting.values and text_of(entry.value) not in waiting.values:
                continue
            blocked = switched_on(node, entry, waiting, dotted, path)
            if blocked is not None:
                yield blocked
                continue
            name = f"{dotted}: {text_of(entry.value)}" if waiting.values else dotted
            message = f"{quote(name)} is not active yet: {waiting.feature}"
            where = f"{path}.{dotted}" if path else dotted
            yield problem_at(entry.key, message, path=where, severity=Severity.NOTICE)


def switched_on(
    node: MappingNode, entry: Entry, waiting: Waiting, dotted: str, path: str
) -> Problem | None:
    """The problem of a key that protects, where the document switches it on: at the value that waits, or at the switch."""
    protection = waiting.protection
    if protection is None:
        return None
    found = next(iter(entries_at(node, protection.switch)), None)
    if found is None or not is_true(found[0].value):
        return None
    switch, where = (entry, dotted) if waiting.values else found
    said = f"{where}: {text_of(entry.value)}" if waiting.values else where
    return problem_at(
        switch.key,
        f"{quote(said)} asks for {protection.what}",
        path=f"{path}.{where}" if path else where,
        hint=protection.hint,
        severity=Severity.BLOCKED,
    )


def is_true(node: Node) -> bool:
    """Return whether a switch is on; a value that is neither true nor false counts as on."""
    return isinstance(node, ScalarNode) and plain_value(node) not in (False, None)


def outer_keys(node: MappingNode, path: str) -> Iterator[Problem]:
    """One problem for each setting of an inner fleet's file that only the outermost file can have."""
    for name, entry in node.entries.items():
        if name in INNER_KEYS or text_of(entry.value) == "":
            continue
        is_limit = name == "limits" and isinstance(entry.value, MappingNode)
        yield problem_at(
            entry.key,
            f"{quote(name)} {OUTER_ONLY}",
            path=f"{path}.{name}",
            hint=LIMITS_HINT if is_limit else None,
            severity=Severity.BLOCKED if is_limit else Severity.NOTICE,
        )


def entries_at(node: MappingNode, key: str) -> Iterator[tuple[Entry, str]]:
    """The entry of a dotted key, if the document has it, and the key as it was written."""
    first, _, rest = key.partition(".")
    if first == "*":
        for name in node.entries:
            yield from entries_at(node, f"{name}.{rest}")
        return
    entry = node.entries.get(first.removesuffix("[]"))
    if entry is None:
        return
    if first.endswith("[]"):
        items = entry.value.items if isinstance(entry.value, SequenceNode) else ()
        for place, item in enumerate(items):
            if isinstance(item, MappingNode):
                for inner, dotted in entries_at(item, rest):
                    yield inner, f"{entry.key.text}[{place}].{dotted}"
    elif not rest:
        yield entry, entry.key.text
    elif isinstance(entry.value, MappingNode):
        for inner, dotted in entries_at(entry.value, rest):
            yield inner, f"{entry.key.text}.{dotted}"
