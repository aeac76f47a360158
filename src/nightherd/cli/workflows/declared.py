"""Workflows as the fleet's files declare them: found by name, and the argument that names one."""

from __future__ import annotations

from collections.abc import Iterable

import click

from nightherd.cli.fleet.load import load_all
from nightherd.cli.invocation import Command, Invocation
from nightherd.cli.runs.list import complete_workflows
from nightherd.config.wording import nearest
from nightherd.config.workflows.report import LoadedWorkflow
from nightherd.errors import NotFoundError
from nightherd.next_step import Action, NextStep


def name_argument(command: Command) -> Command:
    """A workflow of the fleet's files."""
    return click.argument("name", metavar="NAME", shell_complete=complete_workflows)(command)


def find_workflow(invocation: Invocation, name: str) -> LoadedWorkflow:
    """The workflow of that name; `NotFoundError` when no file declares it."""
    workflows = load_all(invocation).workflows
    if name not in workflows:
        raise not_found(name, workflows)
    return workflows[name]


def not_found(name: str, known: Iterable[str]) -> NotFoundError:
    """Say that there is no such workflow, and which one was probably meant."""
    near = nearest(name, known)
    step = NextStep(Action.LIST_WORKFLOWS)
    if near is not None:
        step = NextStep(Action.SHOW_WORKFLOW, workflow=near)
    return NotFoundError(f"the fleet has no workflow {name!r}", next_step=step)
