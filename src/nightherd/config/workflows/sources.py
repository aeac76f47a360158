"""Where workflows are written: inline in the fleet file, or in `workflows/` beside it; in one spelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from nightherd.config.documents import Documents
from nightherd.config.merge import real_path
from nightherd.config.report import Findings
from nightherd.config.wording import described
from nightherd.errors import InvalidValueError
from nightherd.files.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Source,
    Spot,
    place_of,
    problem_at,
    with_entry,
)
from nightherd.model.ids import check_name
from nightherd.model.text import quote

SECTION = "workflows"
"""The key of inline workflows, and the directory of the others."""
SUFFIXES = (".yaml", ".yml")


class WorkflowHome(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet file, as the place that workflows are declared in."""

    directory: str
    fleet: tuple[str, ...] = ()
    """Names of the sub-fleets it stands in, outermost first."""
    inline: Node | None = None
    """The `workflows` of the fleet file."""
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)

    def qualified(self, name: str) -> str:
        """Return what the whole fleet calls a workflow or agent of this file."""
        return ".".join((*self.fleet, name))

    def own_name(self, name: str) -> str:
        """Return what this file calls it."""
        return name.removeprefix(self.qualified(""))

    def own_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of `names` that this file can use, as it calls them."""
        prefix = self.qualified("")
        return tuple(sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix)))

    @property
    def name(self) -> str:
        """What it is called in problems."""
        return f"the fleet {quote('.'.join(self.fleet))}" if self.fleet else "the fleet"


class WorkflowSource(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow as it is written."""

    name: str
    """As its home calls it."""
    home: WorkflowHome
    node: MappingNode
    declared: Node
    """Where a clash of names is shown."""

    @property
    def qualified(self) -> str:
        """What the whole fleet calls it."""
        return self.home.qualified(self.name)


def find_workflows(
    homes: Iterable[WorkflowHome],
    documents: Documents,
    findings: Findings,
    declared: dict[str, str],
) -> dict[str, WorkflowSource]:
    """Return every workflow that can be read, by qualified name; clashes go to `findings`.

    `declared` gets the file of each workflow, also of those that cannot be read. Of several fleet files in one directory, the first has the workflows of `workflows/`.
    """
    sources: dict[str, WorkflowSource] = {}
    taken: set[str] = set()
    for home in homes:
        found = [*_inline(home, findings, declared)]
        real = real_path(home.directory)
        if real not in taken:
            taken.add(real)
            found += _in_files(home, documents, findings, declared)
        for source in found:
            first = sources.setdefault(source.qualified, source)
            if first is not source:
                message = f"a second workflow called {quote(source.qualified)}"
                hint = f"the first is at {place_of(first.declared.spot)}"
                findings.add(problem_at(source.declared, message, path=SECTION, hint=hint))
    return sources


def _inline(
    home: WorkflowHome, findings: Findings, declared: dict[str, str]
) -> Iterator[WorkflowSource]:
    """The workflows that stand in the fleet file, by name."""
    section = home.inline
    if section is None or (isinstance(section, ScalarNode) and not section.text):
        return
    if not isinstance(section, MappingNode):
        message = f"expected a mapping of names to workflows, got {described(section)}"
        findings.add(problem_at(section, message, path=SECTION))
        return
    for name, entry in section.entries.items():
        if not _is_name(name, entry.key, findings):
            continue
        declared.setdefault(home.qualified(name), entry.key.spot.source.path)
        if isinstance(entry.value, MappingNode):
            yield WorkflowSource(name=name, home=home, node=entry.value, declared=entry.key)
        else:
            _refuse(entry.value, home.qualified(name), findings)


def _in_files(
    home: WorkflowHome, documents: Documents, findings: Findings, declared: dict[str, str]
) -> Iterator[WorkflowSource]:
    """The workflows in files of their own, by the names of the files."""
    directory = Path(home.directory) / SECTION
    findings.looked_in(str(directory))
    try:
        paths = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        spot = Spot(Source(str(directory), ()), 1, 1)
        message = f"the directory cannot be read: {reason}"
        findings.add(problem_at(spot, message, path=SECTION))
        return
    for path in paths:
        if path.suffix not in SUFFIXES or path.name.startswith("."):
            continue
        declared.setdefault(home.qualified(path.stem), str(path))
        node = documents.open(str(path))
        if node is None or not _is_name(path.stem, node, findings):
            continue
        if isinstance(node, MappingNode):
            yield WorkflowSource(name=path.stem, home=home, node=node, declared=node)
        else:
            _refuse(node, home.qualified(path.stem), findings)


def _refuse(node: Node, name: str, findings: Findings) -> None:
    message = f"expected a workflow, a mapping with 'phases', got {described(node)}"
    findings.add(problem_at(node, message, path=f"{SECTION}.{name}"))


def _is_name(name: str, node: Node, findings: Findings) -> bool:
    try:
        check_name(name)
    except InvalidValueError as error:
        findings.add(problem_at(node, error.message, path=SECTION))
        return False
    return True


def canonical_workflow(node: MappingNode, findings: Findings, where: str) -> MappingNode:
    """Return the workflow with what starts it under its one name `on`, and phases as a list."""
    alias = node.entries.get("triggers")
    if alias is not None:
        if "on" in node.entries:
            message = "'triggers' is another name of 'on'; give one of them"
            findings.add(problem_at(alias.key, message, path=where))
        entries = {
            "on" if key == "triggers" else key: entry
            for key, entry in node.entries.items()
            if key != "triggers" or "on" not in node.entries
        }
        node = MappingNode(node.spot, entries)
    return with_phase_list(node, findings, where)


def with_phase_list(node: MappingNode, findings: Findings, where: str) -> MappingNode:
    """Return a block whose phases, given by name, are a list; also in the blocks inside."""
    entry = node.entries.get("phases")
    if entry is None:
        return node
    phases = entry.value
    if isinstance(phases, MappingNode):
        named = [_named(inner, findings, where) for inner in phases.entries.values()]
        phases = SequenceNode(phases.spot, tuple(named))
    if not isinstance(phases, SequenceNode):
        return node
    items = tuple(
        with_phase_list(item, findings, where) if isinstance(item, MappingNode) else item
        for item in phases.items
    )
    return with_entry(node, "phases", SequenceNode(phases.spot, items))


def _named(entry: Entry, findings: Findings, where: str) -> Node:
    """Return a phase that stands under its name, with that name inside."""
    key, phase = entry.key, entry.value
    if not isinstance(phase, MappingNode):
        return phase
    name = phase.entries.get("name")
    if name is None:
        return with_entry(phase, "name", ScalarNode(key.spot, key.text, False), at=key)
    if isinstance(name.value, ScalarNode) and name.value.text != key.text:
        message = f"this phase calls itself {described(name.value)}, not {quote(key.text)}"
        findings.add(problem_at(name.value, message, path=where))
    return phase
