"""Workflows as the fleet's files declare them: found by name, and the argument that names one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import click

from nightherd.cli.fleet.load import load_all
from nightherd.cli.invocation import Command, Invocation
from nightherd.cli.runs.list import complete_workflows
from nightherd.config.wording import nearest
from nightherd.config.workflows.report import LoadedWorkflow
from nightherd.errors import NotFoundError
from nightherd.model.workflows.rows import WorkflowOverride
from nightherd.next_step import Action, NextStep
from nightherd.wiring.stores import open_reader


def name_argument(command: Command) -> Command:
    """A workflow of the fleet's files."""
    return click.argument("name", metavar="NAME", shell_complete=complete_workflows)(command)


def find_workflow(invocation: Invocation, name: str) -> LoadedWorkflow:
    """The workflow of that name; `NotFoundError` when no file declares it."""
    workflows = load_all(invocation).workflows
    if name not in workflows:
        raise not_found(name, workflows)
    return workflows[name]


def read_switches(invocation: Invocation) -> dict[str, WorkflowOverride]:
    """The workflows that a person has switched on or off beside their files."""
    state_dir = invocation.new_state_directory()
    if not state_dir.is_dir():
        return {}
    with closing(open_reader(state_dir)) as reader:
        return {one.name: one for one in reader.list_workflow_overrides()}


def not_found(name: str, known: Iterable[str]) -> NotFoundError:
    """Say that there is no such workflow, and which one was probably meant."""
    near = nearest(name, known)
    step = NextStep(Action.LIST_WORKFLOWS)
    if near is not None:
        step = NextStep(Action.SHOW_WORKFLOW, workflow=near)
    return NotFoundError(f"the fleet has no workflow {name!r}", next_step=step)
