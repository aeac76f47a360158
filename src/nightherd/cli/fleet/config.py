"""`nightherd config`: check the fleet file, show the resolved configuration, print the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import click

from nightherd.cli.fleet.load import load_all, notice_text, problems_data, problems_text
from nightherd.cli.invocation import Invocation, complete_agents, invocation_of, json_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.config.json_schema import FileKind, json_schema
from nightherd.config.load import CheckedFleet
from nightherd.config.report import render_problems, shown_file
from nightherd.config.show import DEFAULT, render_show
from nightherd.config.show import show as show_fleet
from nightherd.errors import ConfigInvalidError
from nightherd.model.problem import Severity
from nightherd.model.text import counted
from nightherd.wiring.fleets import check_fleet
from nightherd.wiring.runtimes import runtime_names
from nightherd.wiring.stores import system_clock


@click.group(
    "config",
    cls=LazyGroup,
    entries={
        "check": Entry("nightherd.cli.fleet.config:check", "Report every error in the fleet file."),
        "show": Entry("nightherd.cli.fleet.config:show", "Show the resolved configuration."),
        "schema": Entry(
            "nightherd.cli.fleet.config:schema", "Print the JSON Schema of the fleet file."
        ),
    },
    default="show",
    elsewhere={"validate": "check"},
    epilog="Example: nightherd config check",
)
def config() -> None:
    """Check and show the fleet file."""


@click.command("check", epilog="Example: nightherd config check --format github")
@click.argument("path", metavar="[PATH]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    help="Output format (default: text).",
)
@json_option
@click.pass_context
def check(ctx: click.Context, path: Path | None, form: str) -> None:
    """Report every error in the fleet file. Also checks the files it names; ends with exit code 78 if there is an error."""
    invocation = invocation_of(ctx)
    screen, cwd = invocation.screen, invocation.cwd
    screen.is_json = screen.is_json or form == "json"
    file = cwd / path if path is not None else invocation.fleet_file()
    checked = check_fleet(
        file, environ=invocation.environ, cwd=cwd, state_dir=invocation.named_state
    )
    if screen.is_json:
        screen.document("check", check_data(checked, cwd), system_clock().now())
    elif form == "github":
        for annotation in render_problems(checked.problems, "github", cwd=cwd).splitlines():
            screen.show(annotation)
    else:
        _show_result(checked, invocation)
    ctx.exit(0 if is_good(checked) else ConfigInvalidError.exit_code)


def is_good(checked: CheckedFleet) -> bool:
    """Whether all of the fleet can run."""
    return checked.loaded is not None and not checked.loaded.blocked


def check_data(checked: CheckedFleet, cwd: Path) -> dict[str, Any]:
    """What a check found, as plain data."""
    loaded = checked.loaded
    return {
        "file": shown_file(str(checked.file), cwd),
        "ok": is_good(checked),
        "agents": list(loaded.fleet.agents) if loaded is not None else [],
        "workflows": list(loaded.fleet.workflows) if loaded is not None else [],
        "problems": problems_data(checked.problems, cwd),
    }


def _show_result(checked: CheckedFleet, invocation: Invocation) -> None:
    """Problems are this command's data, so they go to standard output."""
    screen, cwd = invocation.screen, invocation.cwd
    errors = [problem for problem in checked.problems if problem.severity is not Severity.NOTICE]
    for notice in checked.problems[len(errors) :]:
        screen.say(notice_text(notice, cwd))
    file = shown_file(str(checked.file), cwd)
    if is_good(checked) and checked.loaded is not None:
        fleet = checked.loaded.fleet
        declared = counted(len(fleet.agents), "agent")
        if fleet.workflows:
            declared += f", {counted(len(fleet.workflows), 'workflow')}"
        screen.show(f"{screen.out.good('✔ ok')} {file}: {declared}")
        return
    screen.show(problems_text(errors, cwd))
    screen.flush()
    screen.say(f"{screen.err.bad('✗')} {ConfigInvalidError(errors).message}")
    for agent in checked.loaded.fleet.agents.values() if checked.loaded is not None else ():
        if agent.blocked_by:
            screen.say(f"  agent {agent.name} does not run; the others do")


@click.command("show", epilog="Example: nightherd config show hello --resolved --origin")
@click.argument("agent", metavar="[AGENT]", required=False, shell_complete=complete_agents)
@click.option("--resolved", is_flag=True, help="Also show default values.")
@click.option(
    "--origin", is_flag=True, help="Show where each value comes from: file:line, or default."
)
@json_option
@click.pass_obj
def show(invocation: Invocation, agent: str | None, resolved: bool, origin: bool) -> None:
    """Show the resolved configuration. Files are merged and variables filled in; AGENT shows one agent."""
    screen, cwd = invocation.screen, invocation.cwd
    shown = select(
        show_fleet(load_all(invocation), agent, cwd=cwd), resolved=resolved, origin=origin
    )
    if screen.is_json:
        screen.document("config", shown, system_clock().now())
        return
    screen.show(render_show(shown).rstrip("\n"))


def select(shown: Any, *, resolved: bool, origin: bool) -> Any:
    """Shown settings with origins, less the defaults or less the origins when those are not asked for."""
    if isinstance(shown, dict):
        if set(shown) == {"value", "origin"}:
            return shown if origin else shown["value"]
        return {
            key: select(inner, resolved=resolved, origin=origin)
            for key, inner in shown.items()
            if resolved or not is_default(inner)
        }
    if isinstance(shown, list):
        return [select(inner, resolved=resolved, origin=origin) for inner in shown]
    return shown


def is_default(shown: Any) -> bool:
    """Whether nothing in `shown` was written by anybody."""
    if isinstance(shown, dict):
        if set(shown) == {"value", "origin"}:
            return bool(shown["origin"] == DEFAULT)
        return bool(shown) and all(is_default(inner) for inner in shown.values())
    return False


@click.command("schema", epilog="Example: nightherd config schema > fleet.schema.json")
@click.argument(
    "kind", metavar="[fleet|agent|workflow]", type=click.Choice(get_args(FileKind)), default="fleet"
)
@json_option
@click.pass_obj
def schema(invocation: Invocation, kind: FileKind) -> None:
    """Print the JSON Schema of the fleet file. `agent` and `workflow` print those of their files."""
    screen, found = invocation.screen, json_schema(kind, runtimes=runtime_names())
    if screen.is_json:
        screen.document("schema", {"kind": kind, "json_schema": found}, system_clock().now())
        return
    screen.show(json.dumps(found, indent=2))
