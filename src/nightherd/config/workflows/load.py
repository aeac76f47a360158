"""Loading workflows: every one that the fleet files declare, checked and linked, to definitions that can run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from nightherd.config.documents import MOST_MERGED_VALUES, Budget, Documents
from nightherd.config.not_active import WORKFLOW_KEYS, inactive_keys
from nightherd.config.report import Findings
from nightherd.config.schema.workflow import WorkflowFile
from nightherd.config.validate import check
from nightherd.config.workflows.actions import ActionResolver
from nightherd.config.workflows.links import Links
from nightherd.config.workflows.places import Places
from nightherd.config.workflows.report import LoadedWorkflow, report
from nightherd.config.workflows.resolve import WorkflowResolver
from nightherd.config.workflows.skills import Skills
from nightherd.config.workflows.sources import (
    SECTION,
    WorkflowHome,
    WorkflowSource,
    canonical_workflow,
    find_workflows,
)
from nightherd.files.yaml_nodes import MappingNode, problem_at
from nightherd.model.text import quote
from nightherd.model.workflows.check import check_definition
from nightherd.model.workflows.conductor.pinned import agents_of
from nightherd.model.workflows.definition import (
    AgentAction,
    CommandAction,
    Phase,
    UntilCommand,
    WorkflowDefinition,
)
from nightherd.model.workflows.finding import DefinitionPath, Finding
from nightherd.model.workspaces.policy import WorkspaceScope

MOST_WORKFLOWS = 1_000


class KnownNames(msgspec.Struct, frozen=True, kw_only=True):
    """What the whole fleet declares."""

    agents: Mapping[str, str | None]
    """The working directories of agents by qualified name; None for an agent that is broken."""
    webhooks: Collection[str] | None
    """None where that is not known, and names are not checked."""
    contained: Collection[str] = ()
    """Agents that have a container."""


def load_workflows(
    homes: Iterable[WorkflowHome],
    *,
    documents: Documents,
    findings: Findings,
    known: KnownNames,
    budget: Budget,
    declared: dict[str, str],
) -> dict[str, LoadedWorkflow]:
    """Return the workflows of all fleet files, by qualified name; what is wrong with them goes to `findings`.

    `declared` gets the file of each, also of those that are wrong.
    """
    sources = find_workflows(homes, documents, findings, declared)
    loaded: dict[str, LoadedWorkflow] = {}
    for number, (name, source) in enumerate(sources.items()):
        if findings.full:
            break
        if number >= MOST_WORKFLOWS or not budget.spend(source.node):
            what = f"more than {MOST_WORKFLOWS:,} workflows"
            if number < MOST_WORKFLOWS:
                what = f"more than {MOST_MERGED_VALUES:,} values in the fleet"
            findings.add(problem_at(source.declared, what, path=SECTION))
            break
        workflow = read_workflow(source, findings=findings, known=known)
        if workflow is not None:
            loaded[name] = workflow
    linked = Links(loaded, declared, findings).all()
    for workflow in linked.values():
        _check(workflow, known, findings)
    return linked


def read_workflow(
    source: WorkflowSource, *, findings: Findings, known: KnownNames
) -> LoadedWorkflow | None:
    """Return one workflow, not yet linked and checked; None when its keys or values are wrong."""
    where = f"{SECTION}.{source.qualified}"
    node = canonical_workflow(source.node, findings, where)
    file = check(WorkflowFile, node, findings, path=where)
    findings.extend(inactive_keys(node, WORKFLOW_KEYS, where))
    if file is None:
        return None
    return resolve_workflow(source, file, node, findings=findings, known=known)


def resolve_workflow(
    source: WorkflowSource,
    file: WorkflowFile,
    node: MappingNode,
    *,
    findings: Findings,
    known: KnownNames,
) -> LoadedWorkflow | None:
    """Return the workflow of a checked file; None when it calls itself otherwise than its file or key."""
    where = f"{SECTION}.{source.qualified}"
    if file.name is not None and file.name != source.name:
        own = node.get("name") or node
        message = f"this workflow calls itself {quote(file.name)}, not {quote(source.name)}"
        findings.add(problem_at(own, message, path=f"{where}.name"))
        return None
    places = Places({})
    skills = Skills(findings=findings, home=source.home, agents=known.agents)
    actions = ActionResolver(
        findings=findings, home=source.home, skills=skills, places=places, where=where
    )
    definition = WorkflowResolver(actions=actions).workflow(source.qualified, file, node)
    return LoadedWorkflow(
        definition=definition, home=source.home, file=file, node=node, places=places
    )


def _check(workflow: LoadedWorkflow, known: KnownNames, findings: Findings) -> None:
    """Report everything that the static checks say about a workflow."""
    definition = workflow.definition
    for finding in check_definition(definition):
        report(workflow, finding, findings)
    for finding in _unknown_agents(definition.phases, ("phases",), workflow.home, known.agents):
        report(workflow, finding, findings)
    for command, path in _commands(definition.phases, ("phases",)):
        if isinstance(command.container, str):
            for finding in _missing_container(command.container, path, workflow.home, known):
                report(workflow, finding, findings)
        elif command.container is False:
            for finding in _divided(definition, path, workflow.home, known):
                report(workflow, finding, findings)
    for name in definition.triggers.webhooks:
        if known.webhooks is not None and name not in known.webhooks:
            message = f"the fleet has no webhook {quote(name)}"
            names = tuple(sorted(known.webhooks))
            path = ("triggers", "webhooks", name)
            finding = Finding(path=path, message=message, word=name, known=names)
            report(workflow, finding, findings)


def _unknown_agents(
    phases: tuple[Phase, ...],
    path: DefinitionPath,
    home: WorkflowHome,
    agents: Collection[str],
) -> Iterator[Finding]:
    for place, phase in enumerate(phases):
        action = phase.action
        here = (*path, place, "action")
        if isinstance(action, AgentAction) and action.agent not in agents:
            own = home.own_name(action.agent)
            yield Finding(
                path=(*here, "agent"),
                message=f"{home.name} has no agent {quote(own)}",
                word=own,
                known=home.own_names(agents),
            )
        yield from _unknown_agents(phase.block, (*here, "phases"), home, agents)


def _commands(
    phases: tuple[Phase, ...], path: DefinitionPath
) -> Iterator[tuple[CommandAction | UntilCommand, DefinitionPath]]:
    """Yield the commands, those of loops too, each with the place of its `container`."""
    for place, phase in enumerate(phases):
        here = (*path, place)
        until = None if phase.loop is None else phase.loop.until_command
        if until is not None:
            yield until, (*here, "loop", "until_command", "container")
        if isinstance(phase.action, CommandAction):
            yield phase.action, (*here, "action", "container")
        yield from _commands(phase.block, (*here, "action", "phases"))


def _divided(
    definition: WorkflowDefinition, path: DefinitionPath, home: WorkflowHome, known: KnownNames
) -> Iterator[Finding]:
    """Yield what is wrong with a command on this machine where agents in containers share a worktree with it."""
    policy = definition.workspace
    if policy is None or policy.is_shared or not policy.mode.has_branch:
        return
    if policy.scope is not WorkspaceScope.RUN:
        return
    inside = [name for name in agents_of(definition) if name in known.contained]
    if inside:
        message = f"with mode: worktree, this command cannot run on this machine: agent {quote(home.own_name(inside[0]))} has a container"
        hint = "git here would obey settings that the agent wrote; use mode: copy, or leave container out"
        yield Finding(path=path, message=message, hint=hint)


def _missing_container(
    name: str, path: DefinitionPath, home: WorkflowHome, known: KnownNames
) -> Iterator[Finding]:
    own = home.own_name(name)
    if name not in known.agents:
        message = f"{home.name} has no agent {quote(own)}"
        yield Finding(path=path, message=message, word=own, known=home.own_names(known.agents))
    elif known.agents[name] is not None and name not in known.contained:
        message = f"agent {quote(own)} has no container"
        hint = "enable docker for it, or name another agent"
        yield Finding(path=path, message=message, hint=hint)
