"""One spelling: older names of keys, and schedules given as a list, become the one form that is merged."""

from __future__ import annotations

from nightherd.config.findings import Findings
from nightherd.config.node import Entry, MappingNode, Node, SequenceNode, problem_at, text_of
from nightherd.config.wording import quote

ALIASES = (
    ((), "workspace", "working_directory"),
    (("docker",), "base_image", "image"),
    (("schedules", "*"), "expression", "cron"),
)
"""Where an older name may stand in an agent, the older name, and the name it stands for."""


def canonical_agent(agent: MappingNode, findings: Findings) -> MappingNode:
    """`agent` with every setting under its one name and schedules as a mapping by name."""
    schedules = agent.entries.get("schedules")
    if schedules is not None and isinstance(schedules.value, SequenceNode):
        by_name = schedules_by_name(schedules.value, findings)
        agent = MappingNode(
            agent.spot, {**agent.entries, "schedules": Entry(schedules.key, by_name)}
        )
    for where, old, new in ALIASES:
        agent = rename(agent, where, old, new, findings)
    return agent


def schedules_by_name(schedules: SequenceNode, findings: Findings) -> MappingNode:
    """The list form of schedules as a mapping; one without a usable name is found and left out."""
    entries: dict[str, Entry] = {}
    for item in schedules.items:
        name = item.entries.get("name") if isinstance(item, MappingNode) else None
        if name is None or not isinstance(item, MappingNode):
            findings.add(problem_at(item, "a schedule in a list needs a 'name'", path="schedules"))
            continue
        text = text_of(name.value)
        if text is None:
            findings.add(problem_at(name.value, "expected a name", path="schedules"))
        elif text in entries:
            first = entries[text].key.spot.line
            message = f"a second schedule called {quote(text)}"
            hint = f"the first is in line {first}"
            findings.add(problem_at(name.value, message, path="schedules", hint=hint))
        else:
            # The key is the name as it was written: that is where a problem with it is shown.
            key = name.value
            entries[text] = Entry(key, item)  # type: ignore[arg-type] # text_of is only given for scalars
    return MappingNode(schedules.spot, entries)


def rename(
    node: MappingNode, where: tuple[str, ...], old: str, new: str, findings: Findings
) -> MappingNode:
    """`node` with `old` called `new` in the mapping at `where`; the key still shows as it was written."""
    if where:
        return rename_below(node, where, old, new, findings)
    entry = node.entries.get(old)
    if entry is None:
        return node
    if new in node.entries:
        message = f"{quote(old)} is an older name of {quote(new)}; give one of them"
        findings.add(problem_at(entry.key, message))
        return without(node, old)
    return MappingNode(
        node.spot, {new if key == old else key: one for key, one in node.entries.items()}
    )


def rename_below(
    node: MappingNode, where: tuple[str, ...], old: str, new: str, findings: Findings
) -> MappingNode:
    """`rename` in the mappings one level down that `where` points at."""
    changed: dict[str, Entry] = {}
    for key in node.entries if where[0] == "*" else (where[0],):
        entry = node.entries.get(key)
        if entry is not None and isinstance(entry.value, MappingNode):
            value: Node = rename(entry.value, where[1:], old, new, findings)
            if value is not entry.value:
                changed[key] = Entry(entry.key, value)
    return MappingNode(node.spot, {**node.entries, **changed}) if changed else node


def without(node: MappingNode, key: str) -> MappingNode:
    """`node` without `key`."""
    return MappingNode(node.spot, {name: one for name, one in node.entries.items() if name != key})
