"""One spelling: older names of keys, and schedules given as a list, become the one form that is merged."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec
from pydantic import BaseModel

from nightherd.config.documents import MOST_MERGED_VALUES, Budget, Documents, Interpolation
from nightherd.config.merge import absolute_path, with_absolute_paths
from nightherd.config.report import Findings
from nightherd.config.repository import check_directories, hide_credentials
from nightherd.config.schema.isolation import FLEET_ONLY
from nightherd.config.working_directory import inherited_by_schedules, merge_agents
from nightherd.files.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Spot,
    problem_at,
    text_of,
    with_entry,
)
from nightherd.model.config_value import Layer
from nightherd.model.text import quote

ALIASES = (
    ((), "workspace", "working_directory"),
    (("docker",), "base_image", "image"),
    (("schedules", "*"), "expression", "cron"),
    (("schedules", "*"), "workspace", "working_directory"),
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


Layers = tuple[tuple[Layer, MappingNode], ...]
"""The layers of an agent, lowest first."""


class Section(msgspec.Struct, frozen=True):
    """Checked settings, and the merged nodes they came from, every value with its own place."""

    node: MappingNode
    model: BaseModel
    layers: Layers = ()
    """What the nodes of an agent were merged from, lowest first."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as its layers say, not yet checked."""

    fleet: tuple[str, ...]
    """Names of the sub-fleets it stands in, outermost first."""
    node: MappingNode
    home: str
    """Directory of the file that declares it."""
    declared: Spot
    """Where it is declared: where a clash of names is shown."""
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The variables of its file."""
    layers: Layers = ()
    """What `node` was merged from, lowest first."""

    @property
    def path(self) -> str:
        """What it is called in problems, its own name being perhaps a part of the problem."""
        node = self.node.get("name")
        name = node.shown if isinstance(node, ScalarNode) else "?"
        return ".".join(("agents", *self.fleet, name[:60] if name.isprintable() else "?"))


class Setting(msgspec.Struct, frozen=True):
    """What surrounds the agents of one fleet file."""

    fleet: tuple[str, ...]
    environ: Mapping[str, str]
    defaults: MappingNode | None
    documents: Documents
    findings: Findings
    budget: Budget

    def draft(
        self,
        agent: MappingNode,
        overrides: MappingNode | None = None,
        *,
        declared: Spot | None = None,
    ) -> Draft | None:
        """The agent with all its layers; script files read in, directories absolute.

        None when the fleet has grown too large to check, which is then found.
        """
        node = merge_agents(self.defaults, canonical_agent(agent, self.findings))
        if overrides is not None:
            node = merge_agents(node, canonical_agent(overrides, self.findings))
        assert node is not None  # noqa: S101 (the agent itself is a layer)
        node = hide_credentials(inherited_by_schedules(node))
        node = with_absolute_paths(self.with_script(node), self.environ)
        if not self.budget.spend(node):
            message = f"more than {MOST_MERGED_VALUES:,} values in the fleet, defaults counted for each agent"
            self.findings.add(problem_at(node, message, path="agents"))
            return None
        home = os.path.dirname(agent.spot.source.path)  # noqa: PTH120 (text in, text out)
        draft = Draft(
            fleet=self.fleet,
            node=node,
            home=home,
            declared=declared or agent.spot,
            environ=self.environ,
            layers=tuple(
                (layer, one)
                for layer, one in (
                    (Layer.DEFAULTS, self.defaults),
                    (Layer.AGENT, agent),
                    (Layer.OVERRIDES, overrides),
                )
                if one is not None
            ),
        )
        check_directories(node, self.environ, self.findings, path=draft.path)
        return draft

    def with_script(self, agent: MappingNode) -> MappingNode:
        """`agent` with the list of steps in place of the file that holds it."""
        script = agent.get("script")
        if not isinstance(script, ScalarNode) or not script.text:
            return agent
        where = Draft(fleet=self.fleet, node=agent, home="", declared=agent.spot).path + ".script"
        path = absolute_path(script, self.environ)
        steps = self.documents.open(path, named_by=script, where=where)
        if steps is None:
            return agent
        filled = Interpolation(self.environ, self.findings).fill(steps, ("script",), template=True)
        return with_entry(agent, "script", filled)


def refuse_fleet_keys(agent: MappingNode, findings: Findings) -> None:
    """An agent's own file may not open its container."""
    docker = agent.get("docker")
    if not isinstance(docker, MappingNode):
        return
    for key, entry in docker.entries.items():
        if key in FLEET_ONLY or key == "base_image":
            message = f"{quote(key)} may only be set in the fleet file"
            hint = "put it under 'defaults' or under this agent's 'overrides'"
            findings.add(problem_at(entry.key, message, path=f"docker.{key}", hint=hint))
