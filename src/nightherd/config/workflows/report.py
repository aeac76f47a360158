"""Reporting what is wrong with a workflow: a finding about its definition, at its place in the file."""

from __future__ import annotations

import msgspec

from nightherd.config.report import Findings
from nightherd.config.schema.workflow import WorkflowFile
from nightherd.config.wording import did_you_mean
from nightherd.config.workflows.places import Places
from nightherd.config.workflows.sources import SECTION, WorkflowHome
from nightherd.files.yaml_nodes import MappingNode, problem_at
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.finding import DefinitionPath, Finding

WORDS = {"triggers": "on"}
"""Parts of a definition that have another name in the file."""


class LoadedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow that was read, and where its parts stand."""

    definition: WorkflowDefinition
    home: WorkflowHome
    file: WorkflowFile
    """Its checked keys."""
    node: MappingNode
    places: Places


def report(workflow: LoadedWorkflow, finding: Finding, findings: Findings) -> None:
    """Report a finding at its place in the file."""
    hint = did_you_mean(finding.word, finding.known) if finding.word else None
    problem = problem_at(
        workflow.places.spot(finding),
        finding.message,
        path=f"{SECTION}.{words_of(workflow.definition, finding.path)}",
        hint=hint or finding.hint,
        severity=finding.severity,
    )
    findings.add(problem)


def words_of(definition: WorkflowDefinition, path: DefinitionPath) -> str:
    """Return a part of a definition in the words of its file: `build.phases.plan.when`."""
    words = [definition.name]
    phases = definition.phases
    for before, step in zip(("", *path), path, strict=False):
        if before == "phases" and isinstance(step, int) and step < len(phases):
            words.append(phases[step].name)
            phases = phases[step].block
        elif step != "action":
            words.append(WORDS.get(str(step), str(step)))
    return ".".join(words)
