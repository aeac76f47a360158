"""One agent out of its layers: defaults below, then what declares it, then the overrides."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from nightherd.config.budget import MOST_MERGED_VALUES, Budget
from nightherd.config.canonical import canonical_agent
from nightherd.config.documents import Documents
from nightherd.config.findings import Findings
from nightherd.config.interpolate import Interpolation
from nightherd.config.merge import merge
from nightherd.config.node import (
    MappingNode,
    Node,
    ScalarNode,
    Spot,
    problem_at,
    with_entry,
)
from nightherd.config.paths import absolute_path, with_absolute_paths
from nightherd.config.schema.docker import FLEET_ONLY
from nightherd.config.wording import SHOWN_PATH_LIMIT, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An agent as its layers say, not yet checked."""

    fleet: tuple[str, ...]
    """Names of the sub-fleets it stands in, outermost first."""
    node: MappingNode
    home: str
    """Directory of the file that declares it."""
    declared: Spot
    """Where it is declared: where a clash of names is shown."""

    @property
    def path(self) -> str:
        """What it is called in problems, its own name being perhaps a part of the problem."""
        node = self.node.get("name")
        name = node.shown if isinstance(node, ScalarNode) else "?"
        return ".".join(("agents", *self.fleet, name[:60] if name.isprintable() else "?"))


@dataclass(frozen=True, slots=True)
class Setting:
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
        node = merge(self.defaults, canonical_agent(agent, self.findings))
        if overrides is not None:
            node = merge(node, canonical_agent(overrides, self.findings))
        assert node is not None  # noqa: S101 (the agent itself is a layer)
        node = with_absolute_paths(self.with_script(node), self.environ)
        if not self.budget.spend(node):
            message = f"more than {MOST_MERGED_VALUES:,} values in the fleet, defaults counted for each agent"
            self.findings.add(problem_at(node, message, path="agents"))
            return None
        home = os.path.dirname(agent.spot.source.path)  # noqa: PTH120 (text in, text out)
        draft = Draft(fleet=self.fleet, node=node, home=home, declared=declared or agent.spot)
        self.check_directory(draft)
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

    def check_directory(self, draft: Draft) -> None:
        """A working directory that is named must be there."""
        entry = draft.node.entries.get("working_directory")
        if entry is None:
            return
        named: Node | None = entry.value
        if isinstance(named, MappingNode):
            named = named.get("root")
        if not isinstance(named, ScalarNode) or named.plain or "\0" in named.text:
            return
        if not os.path.isdir(named.text):  # noqa: PTH112 (any text is a question, never an exception)
            message = f"the directory {quote(named.shown, limit=SHOWN_PATH_LIMIT)} does not exist"
            path = f"{draft.path}.{entry.key.text}"
            self.findings.add(problem_at(named, message, path=path))


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
