"""`nightherd workflow check`: every problem of the workflows in the fleet's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nightherd.cli.fleet.load import notice_text, problems_data, problems_text
from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.cli.runs.list import complete_workflows
from nightherd.cli.workflows.declared import not_found
from nightherd.config.load import CheckedFleet
from nightherd.config.report import shown_file
from nightherd.config.workflows.sources import SECTION
from nightherd.errors import ConfigInvalidError
from nightherd.model.problem import Problem, Severity
from nightherd.model.text import counted
from nightherd.wiring.fleets import check_fleet
from nightherd.wiring.stores import system_clock


@click.command("check", epilog="Example: nightherd workflow check build")
@click.argument("name", metavar="[NAME]", required=False, shell_complete=complete_workflows)
@json_option
@click.pass_context
def check(ctx: click.Context, name: str | None) -> None:
    """Report every error in workflows. NAME checks one of them; ends with exit code 78 if there is an error."""
    invocation = invocation_of(ctx)
    screen, cwd = invocation.screen, invocation.cwd
    checked = check_fleet(
        invocation.fleet_file(),
        environ=invocation.environ,
        cwd=cwd,
        state_dir=invocation.named_state,
    )
    if name is not None and name not in checked.workflow_files:
        unread = [one for one in checked.problems if is_unread(one)]
        if unread:
            raise ConfigInvalidError(unread)
        raise not_found(name, checked.workflow_files)
    problems = [one for one in checked.problems if is_about(one, checked, name)]
    errors = [one for one in problems if one.severity is Severity.ERROR]
    if screen.is_json:
        data = check_data(checked, name, problems, cwd)
        screen.document("workflow_check", data, system_clock().now())
    else:
        _show_result(invocation, checked, name, problems)
    ctx.exit(ConfigInvalidError.exit_code if errors else 0)


def is_about(problem: Problem, checked: CheckedFleet, name: str | None) -> bool:
    """Whether a problem is about the workflow of that name; without one, about any workflow."""
    owner = owner_of(problem, checked)
    if name is not None:
        return owner == name
    return owner is not None or problem.path == SECTION or is_unread(problem)


def is_unread(problem: Problem) -> bool:
    """Whether a whole file could not be read, which may declare workflows."""
    return problem.severity is Severity.ERROR and not problem.path


def owner_of(problem: Problem, checked: CheckedFleet) -> str | None:
    """The workflow that a problem is about: the one that its path names, or whose own file it is in."""
    path = f"{problem.path}."
    named = [name for name in checked.workflow_files if path.startswith(f"{SECTION}.{name}.")]
    if named:
        return max(named, key=len)
    for name, file in checked.workflow_files.items():
        if file == problem.place.file and Path(file).parent.name == SECTION:
            return name
    return None


def check_data(
    checked: CheckedFleet, name: str | None, problems: Sequence[Problem], cwd: Path
) -> dict[str, Any]:
    """What a check found, as plain data."""
    return {
        "file": shown_file(str(checked.file), cwd),
        "ok": all(one.severity is not Severity.ERROR for one in problems),
        "workflows": [name] if name is not None else list(checked.workflow_files),
        "problems": problems_data(problems, cwd),
    }


def _show_result(
    invocation: Invocation, checked: CheckedFleet, name: str | None, problems: Sequence[Problem]
) -> None:
    """Problems are this command's data, so they go to standard output."""
    screen, cwd = invocation.screen, invocation.cwd
    errors = [one for one in problems if one.severity is Severity.ERROR]
    for notice in problems:
        if notice.severity is not Severity.ERROR:
            screen.say(notice_text(notice, cwd))
    if errors:
        screen.show(problems_text(errors, cwd))
        screen.flush()
        screen.say(f"{screen.err.bad('✗')} {ConfigInvalidError(errors).message}")
    else:
        file = shown_file(str(checked.file), cwd)
        what = name or counted(len(checked.workflow_files), "workflow")
        screen.show(f"{screen.out.good('✔ ok')} {file}: {what}")
    if checked.loaded is None and len(errors) < len(_errors(checked)):
        screen.flush()
        others = counted(len(_errors(checked)) - len(errors), "error")
        screen.say(f"{others} elsewhere in the fleet's files: nightherd config check")


def _errors(checked: CheckedFleet) -> list[Problem]:
    return [one for one in checked.problems if one.severity is Severity.ERROR]
