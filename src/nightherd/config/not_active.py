"""Keys that are accepted and checked but do nothing yet, and the feature each is waiting for.

One table; later work empties it. A key counts with everything below it. A test compares the table with
what `resolve` reads: a key of the schema is read, or has a row here, and never both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nightherd.config.node import Entry, MappingNode, SequenceNode, problem_at, text_of
from nightherd.config.wording import quote
from nightherd.model.problem import Problem, Severity


@dataclass(frozen=True, slots=True)
class Waiting:
    """A key, or some values of one, whose feature is not there yet."""

    key: str
    feature: str
    values: frozenset[str] = frozenset()
    """Only these values of the key are waiting; none means the key as a whole."""
    runtimes: frozenset[str] = frozenset()
    """Only for agents of these runtimes is the key waiting; none means for every agent."""


CLAUDE = "running agents with Claude"
CONTAINERS = "containers"

MODELS = frozenset({"native"})
"""Runtimes that use a model, but not through Claude; a script has no use for what models are told."""
DEFAULT_RUNTIME = "sdk"

AGENT_KEYS = (
    Waiting("schedules.*.type", "chat", frozenset({"chat"})),
    Waiting("schedules.*.trigger.type", "chat", frozenset({"chat"})),
    Waiting("schedules.*.work_source", "work sources"),
    Waiting("agents", CLAUDE, runtimes=MODELS),
    Waiting("sandbox", CLAUDE, runtimes=MODELS),
    Waiting("setting_sources", CLAUDE, runtimes=MODELS),
    Waiting("plugins", CLAUDE, runtimes=MODELS),
    Waiting("docker", CONTAINERS),
    Waiting("operation", "approvals"),
    *(
        Waiting(f"hooks.{point}[].{key}", "chat")
        for point in ("after_run", "on_error", "on_suspend", "on_cancel")
        for key in ("channel_id", "bot_token_env")
    ),
    Waiting("work_source", "work sources"),
    Waiting("chat", "chat"),
    Waiting("working_directory.auto_clone", "cloning of repositories"),
    Waiting("working_directory.clone_depth", "cloning of repositories"),
    Waiting("working_directory.default_branch", "cloning of repositories"),
)
FLEET_KEYS = (
    Waiting("working_directory", "cloning of repositories"),
    Waiting("docker", CONTAINERS),
    Waiting("web.session_expiry_hours", "the dashboard"),
    Waiting("web.open_browser", "the dashboard"),
    Waiting("web.tool_results", "the dashboard"),
    Waiting("web.message_grouping", "the dashboard"),
)


def notices(node: MappingNode, table: tuple[Waiting, ...], path: str) -> Iterator[Problem]:
    """One notice for each key of `node` that is not active yet, at its place."""
    runtime = text_of(node.get("runtime")) or DEFAULT_RUNTIME
    for waiting in table:
        if waiting.runtimes and runtime not in waiting.runtimes:
            continue
        for entry, dotted in entries_at(node, waiting.key):
            if waiting.values and text_of(entry.value) not in waiting.values:
                continue
            name = f"{dotted}: {text_of(entry.value)}" if waiting.values else dotted
            message = f"{quote(name)} is not active yet: {waiting.feature}"
            where = f"{path}.{dotted}" if path else dotted
            yield problem_at(entry.key, message, path=where, severity=Severity.NOTICE)


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
