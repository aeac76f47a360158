"""Assembling a fleet: its file, the agents it names and the fleets it takes in, to drafts of agents."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nightherd.config.containers import KEY as DOCKER
from nightherd.config.discovery import FLEET_FILE_NAMES, fleet_file_in
from nightherd.config.documents import Budget, Documents, Interpolation, read_dotenv
from nightherd.config.layers import Draft, Setting, canonical_agent, refuse_fleet_keys, without
from nightherd.config.merge import absolute_path, merge, plain_value, real_path
from nightherd.config.report import Findings
from nightherd.config.schema.agent import AgentSettings
from nightherd.config.schema.fleet import AgentReference, FleetReference
from nightherd.config.validate import check
from nightherd.config.wording import described
from nightherd.config.workflows.sources import SECTION as WORKFLOWS
from nightherd.config.workflows.sources import WorkflowHome
from nightherd.config.working_directory import KEY as DIRECTORY
from nightherd.config.working_directory import merge_agents
from nightherd.errors import InvalidValueError
from nightherd.files.yaml_nodes import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    problem_at,
    text_of,
    with_entry,
)
from nightherd.model.ids import check_name
from nightherd.model.text import quote

SHARED = (DIRECTORY, DOCKER)
"""Settings of agents that a fleet file may also have at its top: a layer below its `defaults`."""
STRUCTURE = (*SHARED, "defaults", "agents", "fleets", WORKFLOWS)
MOST_FLEETS = 1_000
MOST_AGENTS = 10_000


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the tree of fleets a file stands."""

    file: str
    names: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    """The fleet files from the first to this one, symbolic links followed: what a cycle is found by."""
    dotenv: Mapping[str, str] = msgspec.field(default_factory=dict)
    defaults: MappingNode | None = None


class Assembly(msgspec.Struct):
    """What one load has put together."""

    environ: Mapping[str, str]
    findings: Findings
    documents: Documents
    budget: Budget = msgspec.field(default_factory=Budget)
    drafts: list[Draft] = msgspec.field(default_factory=list)
    fleets: list[tuple[tuple[str, ...], MappingNode]] = msgspec.field(default_factory=list)
    """Each fleet file's own settings with the names that lead to it; the first is the whole fleet's."""
    workflow_homes: list[WorkflowHome] = msgspec.field(default_factory=list)
    """Where workflows are written, for each fleet file."""
    dotenv: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What the `.env` beside the first file says."""

    def assemble(self, path: str) -> None:
        """Take in the fleet file at `path` and all that it names."""
        document = self.open(path)
        if document is not None:
            level = Level(file=path, chain=(real_path(path),), dotenv=self.variables(path))
            self.dotenv = level.dotenv
            self.add_fleet(self.fill(document, level.dotenv), level)

    def open(
        self, path: str, *, named_by: Node | None = None, where: str = ""
    ) -> MappingNode | None:
        """The mapping that a file holds, or None with the reason found."""
        document = self.documents.open(path, named_by=named_by, where=where)
        if document is None or isinstance(document, MappingNode):
            return document
        message = f"expected a mapping of keys to values, got {described(document)}"
        self.findings.add(problem_at(document, message))
        return None

    def variables(self, path: str) -> dict[str, str]:
        """The variables of the `.env` beside the file at `path`."""
        values, problems = read_dotenv(os.path.join(os.path.dirname(path), ".env"))  # noqa: PTH118, PTH120 (text in, text out)
        self.findings.extend(problems)
        return values

    def fill(self, document: MappingNode, dotenv: Mapping[str, str]) -> MappingNode:
        """The document with variables filled in; the process's own win over those of `.env`.

        Not in workflows: `${...}` is an expression there.
        """
        interpolation = Interpolation({**dotenv, **self.environ}, self.findings)
        return interpolation.mapping(document, (), template=False)

    def add_fleet(self, document: MappingNode, level: Level) -> None:
        """Take in a fleet whose document is complete."""
        settings = document
        for key in STRUCTURE:
            settings = without(settings, key)
        self.fleets.append((level.names, settings))
        self.workflow_homes.append(
            WorkflowHome(
                fleet=level.names,
                directory=os.path.dirname(level.file),  # noqa: PTH120 (text in, text out)
                inline=document.get(WORKFLOWS),
                environ={**level.dotenv, **self.environ},
            )
        )
        defaults = self.own_defaults(document, level)
        inner = Setting(
            fleet=level.names,
            environ={**level.dotenv, **self.environ},
            defaults=merge_agents(level.defaults, defaults),
            documents=self.documents,
            findings=self.findings,
            budget=self.budget,
        )
        self.add_agents(document, inner)
        self.add_fleets(document, replace(level, defaults=inner.defaults))

    def own_defaults(self, document: MappingNode, level: Level) -> MappingNode | None:
        """The file's own defaults; what is wrong with them is found also when no agent takes them up."""
        path = ".".join(("fleets", *level.names)) + "." if level.names else ""
        entries = {key: document.entries[key] for key in SHARED if key in document.entries}
        shared = None
        if entries:
            shared = canonical_agent(MappingNode(document.spot, entries), self.findings)
            check(AgentSettings, shared, self.findings, path=path.rstrip("."), partial=True)
        defaults = document.get("defaults")
        if not isinstance(defaults, MappingNode):
            self.refuse(defaults, "a mapping of keys to values", "defaults")
            return shared
        defaults = canonical_agent(defaults, self.findings)
        # A script in a file of its own is read, and checked, where an agent takes it up.
        named = isinstance(defaults.get("script"), ScalarNode)
        checked = without(defaults, "script") if named else defaults
        check(AgentSettings, checked, self.findings, path=f"{path}defaults", partial=True)
        return merge_agents(shared, defaults)

    def refuse(self, node: Node | None, expected: str, path: str) -> None:
        """Report a section of another kind than expected; an empty one is as good as none."""
        if node is None or (isinstance(node, ScalarNode) and plain_value(node) is None):
            return
        message = f"expected {expected}, got {described(node)}"
        self.findings.add(problem_at(node, message, path=path))

    def add_agents(self, document: MappingNode, setting: Setting) -> None:
        """Take in the agents of a fleet file, in the list form or by name."""
        agents = document.get("agents")
        if isinstance(agents, MappingNode):
            for entry in agents.entries.values():
                self.add_agent(entry.value, setting, key=entry.key)
        elif isinstance(agents, SequenceNode):
            for item in agents.items:
                self.add_agent(item, setting)
        else:
            self.refuse(agents, "a list of agents", "agents")

    def add_agent(self, item: Node, setting: Setting, *, key: ScalarNode | None = None) -> None:
        """Take in one agent: in a file of its own, or written out."""
        if self.findings.full:
            return
        if len(self.drafts) >= MOST_AGENTS:
            self.findings.add(problem_at(item, f"more than {MOST_AGENTS:,} agents", path="agents"))
        elif not isinstance(item, MappingNode):
            message = f"expected an agent, a mapping with 'name' or 'path', got {described(item)}"
            self.findings.add(problem_at(item, message, path="agents"))
        elif item.get("path") is not None:
            self.add_agent_file(item, setting, key)
        else:
            if key is not None and item.get("name") is None:
                item = with_entry(item, "name", ScalarNode(key.spot, key.text, False), at=key)
            self.keep(setting.draft(item), key)

    def add_agent_file(self, item: MappingNode, setting: Setting, key: ScalarNode | None) -> None:
        """Take in an agent that stands in a file of its own."""
        named, overrides = item.get("path"), item.get("overrides")
        reference = check(AgentReference, item, self.findings, path="agents")
        if reference is None or not isinstance(named, ScalarNode):
            return
        path = absolute_path(named, setting.environ)
        agent = self.open(path, named_by=named, where="agents")
        if agent is None:
            return
        refuse_fleet_keys(agent, self.findings)
        filled = Interpolation(setting.environ, self.findings).mapping(agent, (), template=False)
        layer = overrides if isinstance(overrides, MappingNode) else None
        self.keep(setting.draft(filled, layer, declared=named.spot), key)

    def keep(self, draft: Draft | None, key: ScalarNode | None) -> None:
        """Keep a draft; one that stands under a name must have that name."""
        if draft is None:
            return
        name = draft.node.get("name")
        if key is not None and name is not None and text_of(name) != key.text:
            message = f"this agent calls itself {described(name)}, not {quote(key.text)}"
            self.findings.add(problem_at(key, message, path=draft.path))
        self.drafts.append(draft)

    def add_fleets(self, document: MappingNode, level: Level) -> None:
        """Take in the fleets a fleet file names; two of the same name are an error."""
        fleets = document.get("fleets")
        if not isinstance(fleets, SequenceNode):
            self.refuse(fleets, "a list of fleets", "fleets")
            return
        first: dict[str, Node] = {}
        for item in fleets.items:
            if not isinstance(item, MappingNode):
                message = f"expected a fleet, a mapping with 'path', got {described(item)}"
                self.findings.add(problem_at(item, message, path="fleets"))
                continue
            self.add_sub_fleet(item, level, first)

    def add_sub_fleet(self, item: MappingNode, level: Level, first: dict[str, Node]) -> None:
        """Take in one fleet under its name here."""
        named, overrides = item.get("path"), item.get("overrides")
        reference = check(FleetReference, item, self.findings, path="fleets")
        if reference is None or not isinstance(named, ScalarNode):
            return
        path = self.fleet_file(absolute_path(named, {**level.dotenv, **self.environ}))
        real = real_path(path)
        if real in level.chain:
            files = " -> ".join(Path(one).name for one in (*level.chain, real))
            message = f"this fleet takes itself in: {files}"
            hint = "in full: " + " -> ".join((*level.chain, real))
            self.findings.add(problem_at(named, message, path="fleets", hint=hint))
            return
        if len(self.fleets) >= MOST_FLEETS:
            self.findings.add(problem_at(named, f"more than {MOST_FLEETS:,} fleets", path="fleets"))
            return
        document = self.open(path, named_by=named, where="fleets")
        if document is None:
            return
        dotenv = {**level.dotenv, **self.variables(path)}
        document = self.fill(document, dotenv)
        if isinstance(overrides, MappingNode):
            document = merge(document, overrides) or document
        name = self.fleet_name(reference.name, document, path, named, first)
        if name is not None:
            below = Level(
                file=path,
                names=(*level.names, name),
                chain=(*level.chain, real),
                dotenv=dotenv,
                defaults=level.defaults,
            )
            self.add_fleet(document, below)

    def fleet_file(self, path: str) -> str:
        """The fleet file meant by `path`: itself, or the one in the directory it names."""
        if os.path.isdir(path):  # noqa: PTH112 (any text is a question, never an exception)
            found = fleet_file_in(Path(path))
            return str(found or Path(path, FLEET_FILE_NAMES[0]))
        return path

    def fleet_name(
        self,
        given: str | None,
        document: MappingNode,
        path: str,
        named: ScalarNode,
        first: dict[str, Node],
    ) -> str | None:
        """What a sub-fleet is called here: as named here, as it calls itself, or as its directory."""
        identity = document.get("fleet")
        own = text_of(identity.get("name")) if isinstance(identity, MappingNode) else None
        name = given or own or Path(path).absolute().parent.name
        try:
            check_name(name)
        except InvalidValueError as error:
            hint = "give it a 'name' here"
            self.findings.add(problem_at(named, error.message, path="fleets", hint=hint))
            return None
        if name in first:
            message = f"a second fleet called {quote(name)}"
            before = first[name].spot
            hint = f"the first is at {before.source.path}:{before.line}; give one another 'name'"
            self.findings.add(problem_at(named, message, path="fleets", hint=hint))
            return None
        first[name] = named
        return name
