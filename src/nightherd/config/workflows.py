"""Loading workflows: those in `workflows/` beside the fleet file and those inline, to definitions that can run.

In a workflow `${...}` is an expression of the run, never a variable of the environment: a run keeps its definition
on disk, and no secret may get into it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from nightherd.config.documents import Documents
from nightherd.config.report import Findings
from nightherd.config.schema.workflow import WorkflowFile
from nightherd.config.validate import check
from nightherd.config.workflows_actions import ActionResolver
from nightherd.config.workflows_links import Links
from nightherd.config.workflows_places import Places
from nightherd.config.workflows_report import SECTION, LoadedWorkflow, report
from nightherd.config.workflows_resolve import WorkflowResolver
from nightherd.config.workflows_sources import (
    WorkflowSource,
    canonical_workflow,
    inline_workflows,
    workflow_files,
)
from nightherd.files.yaml_nodes import Node, place_of, problem_at
from nightherd.model.text import quote
from nightherd.model.workflows.check import check_definition
from nightherd.model.workflows.definition import AgentAction, Phase
from nightherd.model.workflows.finding import DefinitionPath, Finding


class KnownNames(msgspec.Struct, frozen=True, kw_only=True):
    """What the fleet declares; None where that is not known, and names are not checked."""

    agents: Collection[str] | None = None
    webhooks: Collection[str] | None = None


def load_workflows(
    home: str,
    *,
    inline: Node | None,
    documents: Documents,
    findings: Findings,
    environ: Mapping[str, str],
    known: KnownNames,
) -> dict[str, LoadedWorkflow]:
    """Return the workflows of a fleet whose file is in `home`, by name; what is wrong with them goes to `findings`."""
    sources: dict[str, WorkflowSource] = {}
    for source in (*inline_workflows(inline, findings), *workflow_files(home, documents, findings)):
        first = sources.setdefault(source.name, source)
        if first is not source:
            message = f"a second workflow called {quote(source.name)}"
            hint = f"the first is at {place_of(first.declared.spot)}"
            findings.add(problem_at(source.declared, message, path=SECTION, hint=hint))
    loaded = {
        name: workflow
        for name, source in sources.items()
        if (workflow := read_workflow(source, findings=findings, environ=environ)) is not None
    }
    linked = Links(loaded, sources.keys(), findings).all()
    for workflow in linked.values():
        _check(workflow, known, findings)
    return linked


def read_workflow(
    source: WorkflowSource, *, findings: Findings, environ: Mapping[str, str]
) -> LoadedWorkflow | None:
    """Return one workflow, not yet linked and checked; None when its keys or values are wrong."""
    where = f"{SECTION}.{source.name}"
    node = canonical_workflow(source.node, findings, where)
    file = check(WorkflowFile, node, findings, path=where)
    if file is None:
        return None
    if file.name is not None and file.name != source.name:
        own = node.get("name") or node
        message = f"this workflow calls itself {quote(file.name)}, not {quote(source.name)}"
        findings.add(problem_at(own, message, path=f"{where}.name"))
        return None
    places = Places({})
    actions = ActionResolver(findings=findings, environ=environ, places=places, where=where)
    definition = WorkflowResolver(actions=actions).workflow(source.name, file, node)
    return LoadedWorkflow(definition=definition, node=node, places=places)


def _check(workflow: LoadedWorkflow, known: KnownNames, findings: Findings) -> None:
    """Report everything that the static checks say about a workflow."""
    for finding in check_definition(workflow.definition):
        report(workflow, finding, findings)
    if known.agents is not None:
        for finding in _unknown_agents(workflow.definition.phases, ("phases",), known.agents):
            report(workflow, finding, findings)
    for name in workflow.definition.triggers.webhooks:
        if known.webhooks is not None and name not in known.webhooks:
            message = f"the fleet has no webhook {quote(name)}"
            names = tuple(sorted(known.webhooks))
            path = ("triggers", "webhooks", name)
            finding = Finding(path=path, message=message, word=name, known=names)
            report(workflow, finding, findings)


def _unknown_agents(
    phases: tuple[Phase, ...], path: DefinitionPath, agents: Collection[str]
) -> Iterator[Finding]:
    for place, phase in enumerate(phases):
        action = phase.action
        here = (*path, place, "action")
        if isinstance(action, AgentAction) and action.agent not in agents:
            message = f"the fleet has no agent {quote(action.agent)}"
            known = tuple(sorted(agents))
            yield Finding(path=(*here, "agent"), message=message, word=action.agent, known=known)
        yield from _unknown_agents(phase.block, (*here, "phases"), agents)
