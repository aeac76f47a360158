"""Linking workflows: those that run others get the definitions of these, so that a run keeps everything it needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from nightherd.config.report import Findings
from nightherd.config.workflows.report import LoadedWorkflow, report
from nightherd.model.text import quote
from nightherd.model.workflows.definition import (
    BlockAction,
    Phase,
    WorkflowAction,
    WorkflowDefinition,
    every_phase,
)
from nightherd.model.workflows.finding import DefinitionPath, Finding

DEEPEST_CALLS = 5
"""Levels of workflows that run others."""
MOST_LINKED_PHASES = 10_000
"""Phases of a workflow and of all that it runs: a run keeps a copy of each."""


class Links:
    """Puts sub-workflows into the definitions that run them."""

    def __init__(
        self, loaded: Mapping[str, LoadedWorkflow], declared: Collection[str], findings: Findings
    ) -> None:
        self.loaded = loaded
        self.declared = declared
        self.findings = findings
        self.complete: dict[str, LoadedWorkflow] = {}
        self.levels: dict[str, int] = {}
        """How many levels of workflows each one has, itself included."""
        self.sizes: dict[str, int] = {}
        """How many phases each one has, with those of the workflows that it runs."""
        self.oversized: set[str] = set()

    def all(self) -> dict[str, LoadedWorkflow]:
        """Return every workflow with those it runs."""
        return {name: self.link(name, (name,)) for name in self.loaded}

    def link(self, name: str, calls: tuple[str, ...]) -> LoadedWorkflow:
        """Return one workflow with those it runs; `calls` leads to it."""
        if name not in self.complete:
            workflow = self.loaded[name]
            self.levels[name] = 1
            self.sizes[name] = sum(1 for _ in every_phase(workflow.definition.phases))
            phases = self.phases(workflow, workflow.definition.phases, ("phases",), calls)
            definition = replace(workflow.definition, phases=phases)
            self.complete[name] = replace(workflow, definition=definition)
        return self.complete[name]

    def phases(
        self,
        workflow: LoadedWorkflow,
        phases: tuple[Phase, ...],
        path: DefinitionPath,
        calls: tuple[str, ...],
    ) -> tuple[Phase, ...]:
        """Return the phases of a block with the workflows that they run."""
        return tuple(
            self.phase(workflow, phase, (*path, place, "action"), calls)
            for place, phase in enumerate(phases)
        )

    def phase(
        self,
        workflow: LoadedWorkflow,
        phase: Phase,
        path: DefinitionPath,
        calls: tuple[str, ...],
    ) -> Phase:
        """Return a phase with the workflows that it runs."""
        match phase.action:
            case BlockAction(phases=inside):
                linked = self.phases(workflow, inside, (*path, "phases"), calls)
                return replace(phase, action=BlockAction(phases=linked))
            case WorkflowAction() as action:
                definition = self.definition(workflow, action.workflow, path, calls)
                return replace(phase, action=replace(action, definition=definition))
            case _:
                return phase

    def definition(
        self,
        workflow: LoadedWorkflow,
        name: str,
        path: DefinitionPath,
        calls: tuple[str, ...],
    ) -> WorkflowDefinition | None:
        """Return the definition of a sub-workflow; None when it cannot be used, which is then reported."""
        place = (*path, "workflow")
        if name in calls:
            circle = " -> ".join((*calls[calls.index(name) :], name))
            message = f"these workflows run each other: {circle}"
            report(workflow, Finding(path=place, message=message), self.findings)
        elif name in self.loaded:
            child = self.link(name, (*calls, name)).definition
            levels = self.levels[name] + 1
            size = self.sizes[calls[-1]] + self.sizes[name]
            if levels <= DEEPEST_CALLS and size <= MOST_LINKED_PHASES:
                self.levels[calls[-1]] = max(self.levels[calls[-1]], levels)
                self.sizes[calls[-1]] = size
                return child
            message = f"workflows run others more than {DEEPEST_CALLS} levels deep"
            if levels <= DEEPEST_CALLS:
                message = f"more than {MOST_LINKED_PHASES:,} phases, with those of the workflows that it runs"
            # What is too large is said once, not for each phase from there on.
            if calls[-1] not in self.oversized or levels > DEEPEST_CALLS:
                report(workflow, Finding(path=place, message=message), self.findings)
            self.oversized.add(calls[-1])
        elif name not in self.declared:
            home = workflow.home
            own, known = home.own_name(name), home.own_names(self.declared)
            message = f"{home.name} has no workflow {quote(own)}"
            finding = Finding(path=place, message=message, word=own, known=known)
            report(workflow, finding, self.findings)
        return None
