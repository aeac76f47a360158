"""`nightherd workflow`: the group of commands for workflows."""

from __future__ import annotations

import click

from nightherd.cli.lazy import Entry, LazyGroup


@click.group(
    "workflow",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.workflows.list:list_workflows", "List workflows."),
        "show": Entry("nightherd.cli.workflows.list:show", "Show a workflow."),
        "graph": Entry("nightherd.cli.workflows.graph:graph", "Show the graph of a workflow."),
        "check": Entry("nightherd.cli.workflows.check:check", "Report every error in workflows."),
        "run": Entry("nightherd.cli.workflows.run:run", "Run a workflow and show its progress."),
        "enable": Entry("nightherd.cli.workflows.switch:enable", "Enable a workflow."),
        "disable": Entry("nightherd.cli.workflows.switch:disable", "Disable a workflow."),
        "reset": Entry(
            "nightherd.cli.workflows.switch:reset",
            "Remove the switch of a workflow.",
        ),
    },
    default="list",
    epilog="Example: nightherd workflow run build --input topic=tests",
)
def workflow() -> None:
    """List, show, check and run workflows. NAME is the name of a workflow of the fleet."""
