"""`nightherd runs` and `runs list`: the runs of workflows, and what other commands share with the list."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from functools import partial

import click
from msgspec.structs import replace

from nightherd.cli.invocation import (
    MOST,
    Command,
    Invocation,
    before_option,
    invocation_for_completion,
    json_option,
    page_option,
    query_argument,
    status_option,
    watch,
    watch_option,
)
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import (
    PAGE,
    Screen,
    length,
    neutralise,
    next_page,
    one_line,
    status_cell,
    table,
)
from nightherd.model.units import format_usd
from nightherd.model.workflows.filter import parse_run_filter
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.run import RUN_PREFIX, RunStatus
from nightherd.views.jobs.jobs import LAST, LAST_FAILED
from nightherd.views.runs.runs import RunPage, list_run_page, run_row, took
from nightherd.wiring.stores import open_reader, system_clock

WAITED = {
    "person": "a person",
    "event": "an event",
    "time": "a time",
    "run": "a run below it",
    "job": "another job",
    "worker": "a worker",
}
"""What a phase can wait for, for people."""
JSON_HINT = "nightherd runs --json for one list; nightherd runs tail RUN -f --json to follow a run"


def complete_runs(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The newest run ids that begin so, and the two that need no id."""
    words = [word for word in (LAST, LAST_FAILED) if word.startswith(incomplete)]
    if words and incomplete:
        return words
    try:
        with closing(open_reader(invocation_for_completion(ctx).state_directory())) as reader:
            return [*reader.run_ids(incomplete or RUN_PREFIX, MOST), *words]
    except Exception:  # noqa: BLE001 (an edge: a prompt that is being typed is no place for an error)
        return words


def complete_workflows(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The names of the fleet's workflows that begin so."""
    from nightherd.wiring.fleets import load_fleet

    try:
        invocation = invocation_for_completion(ctx)
        loaded = load_fleet(invocation.fleet_file(), environ=invocation.environ, cwd=invocation.cwd)
    except Exception:  # noqa: BLE001 (an edge, as above)
        return []
    return [name for name in loaded.fleet.workflows if name.startswith(incomplete)]


def run_argument(command: Command) -> Command:
    """A run: its id, a unique prefix of it, `@last` or `@last-failed`."""
    return click.argument("run", metavar="RUN", shell_complete=complete_runs)(command)


@click.group(
    "runs",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.runs.list:list_runs", "List runs."),
        "show": Entry("nightherd.cli.runs.show:show", "Show a run."),
        "tail": Entry("nightherd.cli.runs.tail:tail", "Show a run's events."),
        "cancel": Entry("nightherd.cli.runs.actions:cancel", "Cancel a run."),
        "retry": Entry("nightherd.cli.runs.actions:retry", "Run what is left of an ended run."),
        "resume": Entry("nightherd.cli.runs.actions:resume", "Resume the jobs of a run."),
        "fork": Entry("nightherd.cli.runs.actions:fork", "Fork a run at a phase."),
        "signal": Entry("nightherd.cli.runs.actions:signal", "Send an event to a run."),
        "raise": Entry("nightherd.cli.runs.actions:raise_limit", "Raise a limit of a run."),
    },
    default="list",
    epilog="Example: nightherd runs show @last",
)
def runs() -> None:
    """List, show, follow and control runs of workflows. RUN is an id, a unique prefix or end of one, @last or @last-failed."""


@click.command("list", epilog="Example: nightherd runs list workflow:build status:failed since:7d")
@query_argument
@click.option(
    "--workflow",
    metavar="NAME",
    shell_complete=complete_workflows,
    help="Show only runs of this workflow.",
)
@status_option(RunStatus, "runs")
@page_option(PAGE)
@before_option
@watch_option
@json_option
@click.pass_obj
def list_runs(
    invocation: Invocation,
    words: tuple[str, ...],
    workflow: str | None,
    status: str | None,
    limit: int,
    before: int | None,
    is_watched: bool,
) -> None:
    """List runs. The newest come first.

    QUERY narrows the list: workflow, status, schedule, trigger, cost, since and until, each as KEY:VALUE, and words
    of the phase or error. Separate several values of a key by commas.
    """
    screen = invocation.screen
    query = RunQuery(
        workflow=workflow, status=RunStatus(status) if status else None, before=before, limit=limit
    )
    if is_watched:
        draw = partial(_draw, invocation, query, words)
        watch(screen, draw, command="nightherd runs", json_hint=JSON_HINT)
        return
    now = system_clock().now()
    page = _read(invocation, _narrowed(query, words, now))
    if screen.is_json:
        rows = [run_row(run, now) for run in page.runs]
        screen.document("workflow_runs", rows, now, next_before=page.next_before)
        return
    if not page.runs:
        is_filtered = bool(workflow or status or before or words)
        screen.say("no such runs" if is_filtered else "no runs yet")
        screen.say("  try: " + ("nightherd runs" if is_filtered else "nightherd workflow run NAME"))
        return
    screen.show(run_table(page.runs, screen, now))
    if page.next_before is not None:
        screen.flush()
        command = next_page(
            "nightherd runs list", page.next_before, limit, words, workflow=workflow, status=status
        )
        screen.say(f"more: {neutralise(command)}")


def _read(invocation: Invocation, query: RunQuery) -> RunPage:
    with closing(open_reader(invocation.state_directory())) as reader:
        return list_run_page(reader, query)


def _narrowed(query: RunQuery, words: Sequence[str], now: datetime) -> RunQuery:
    """The query with the filter that `words` spell."""
    if not words:
        return query
    return replace(query, filter=parse_run_filter(" ".join(words), now))


def _draw(invocation: Invocation, query: RunQuery, words: Sequence[str]) -> str:
    now = system_clock().now()
    page = _read(invocation, _narrowed(query, words, now))
    return run_table(page.runs, invocation.screen, now) if page.runs else "no such runs"


HEADING = ("ID", "WORKFLOW", "STATUS", "STARTED", "TOOK", "COST", "PHASE", "ABOUT")
SPARE = ("TOOK", "STARTED", "COST")
ABOUT_LIMIT = 100


def run_table(runs: Sequence[WorkflowRun], screen: Screen, now: datetime) -> str:
    """One line per run."""
    rows = [
        (
            run.id,
            neutralise(run.workflow_name),
            status_cell(run.status.value),
            screen.when(run.started_at, now),
            length(took(run, now)),
            format_usd(run.cost_microusd),
            run.current_phase or "-",
            one_line(run.error or run.stopping or trigger_text(run), ABOUT_LIMIT),
        )
        for run in runs
    ]
    return table(HEADING, rows, width=screen.width, style=screen.out, spare=SPARE)


def trigger_text(run: WorkflowRun) -> str:
    """What started the run, and who."""
    if run.parent_run_id is not None:
        return f"part of {run.parent_run_id}"
    if run.retried_from is not None:
        return f"retry of {run.retried_from}" + (f" by {run.started_by}" if run.started_by else "")
    if run.forked_from is not None:
        return f"fork of {run.forked_from}" + (f" by {run.started_by}" if run.started_by else "")
    what = f"{run.trigger_type.value} {run.schedule}" if run.schedule else run.trigger_type.value
    about = f" {run.repo}#{run.issue_number}" if run.repo and run.issue_number else ""
    return f"{what}{about}" + (f" by {run.started_by}" if run.started_by else "")
