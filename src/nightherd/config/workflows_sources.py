"""Where workflows are written: inline in the fleet file, or in `workflows/` beside it; in one spelling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from nightherd.config.documents import Documents
from nightherd.config.report import Findings
from nightherd.config.wording import described
from nightherd.config.workflows_report import SECTION
from nightherd.errors import InvalidValueError
from nightherd.files.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    problem_at,
    with_entry,
)
from nightherd.model.ids import check_name
from nightherd.model.text import quote

SUFFIXES = (".yaml", ".yml")


class WorkflowSource(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow as it is written."""

    name: str
    node: MappingNode
    declared: Node
    """Where a clash of names is shown."""


def inline_workflows(section: Node | None, findings: Findings) -> Iterator[WorkflowSource]:
    """The workflows that stand in the fleet file, by name."""
    if section is None or (isinstance(section, ScalarNode) and not section.text):
        return
    if not isinstance(section, MappingNode):
        message = f"expected a mapping of names to workflows, got {described(section)}"
        findings.add(problem_at(section, message, path=SECTION))
        return
    for name, entry in section.entries.items():
        if not _is_name(name, entry.key, findings):
            continue
        if isinstance(entry.value, MappingNode):
            yield WorkflowSource(name=name, node=entry.value, declared=entry.key)
        else:
            message = f"expected a workflow, a mapping with 'phases', got {described(entry.value)}"
            findings.add(problem_at(entry.value, message, path=f"{SECTION}.{name}"))


def workflow_files(home: str, documents: Documents, findings: Findings) -> Iterator[WorkflowSource]:
    """The workflows in files of their own, by the names of the files."""
    directory = Path(home) / SECTION
    if not directory.is_dir():
        return
    for path in sorted(directory.iterdir()):
        if path.suffix not in SUFFIXES or path.name.startswith("."):
            continue
        node = documents.open(str(path))
        if node is None or not _is_name(path.stem, node, findings):
            continue
        if isinstance(node, MappingNode):
            yield WorkflowSource(name=path.stem, node=node, declared=node)
        else:
            message = f"expected a workflow, a mapping with 'phases', got {described(node)}"
            findings.add(problem_at(node, message, path=f"{SECTION}.{path.stem}"))


def _is_name(name: str, node: Node, findings: Findings) -> bool:
    try:
        check_name(name)
    except InvalidValueError as error:
        findings.add(problem_at(node, error.message, path=SECTION))
        return False
    return True


def canonical_workflow(node: MappingNode, findings: Findings, where: str) -> MappingNode:
    """Return the workflow with `on` under its one name `triggers`, and phases as a list."""
    alias = node.entries.get("on")
    if alias is not None:
        if "triggers" in node.entries:
            message = "'on' is another name of 'triggers'; give one of them"
            findings.add(problem_at(alias.key, message, path=where))
        entries = {
            "triggers" if key == "on" else key: entry
            for key, entry in node.entries.items()
            if key != "on" or "triggers" not in node.entries
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
