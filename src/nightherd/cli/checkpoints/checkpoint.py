"""`nightherd checkpoint`: a job's bookmarks, and the job at one of them as one document."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import click

from nightherd.cli.invocation import Invocation, complete_jobs, job_argument, json_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.limits.options import limit_text, suspension_text, tokens_text
from nightherd.cli.screen.render import Screen, length, table
from nightherd.model.checkpoints.checkpoint import Checkpoint, TriggerPoint
from nightherd.model.checkpoints.persistence import Persistence
from nightherd.model.checkpoints.state_document import as_written, check_state
from nightherd.model.checkpoints.state_schema import descriptions
from nightherd.model.units import format_usd
from nightherd.views.costs.limits import limits_at
from nightherd.views.jobs.checkpoints import (
    TakenAway,
    checkpoint_document,
    checkpoint_row,
    find_checkpoint,
    list_bookmarks,
    taken_away,
    taken_row,
    thread_state,
)
from nightherd.views.jobs.jobs import LAST, find_job_id
from nightherd.wiring.stores import load_persistence, open_journals, open_reader, system_clock

HEADING = ("NUMBER", "TRIGGER", "EVENT", "TURN", "COST", "MADE", "STATUS")


@click.group(
    "checkpoint",
    cls=LazyGroup,
    entries={
        "list": Entry(
            "nightherd.cli.checkpoints.checkpoint:list_checkpoints",
            "List a job's checkpoints.",
        ),
        "show": Entry("nightherd.cli.checkpoints.checkpoint:show", "Show a checkpoint."),
        "fields": Entry(
            "nightherd.cli.checkpoints.checkpoint:fields",
            "Show when checkpoints are saved and what state.json holds.",
        ),
    },
    default="list",
    epilog="Example: nightherd checkpoint list @last",
)
def checkpoint() -> None:
    """List and show checkpoints of jobs. You can resume or fork a job at each of them."""


@click.command("list", epilog="Example: nightherd checkpoint list @last")
@click.argument("job", metavar="[JOB]", default=LAST, shell_complete=complete_jobs)
@json_option
@click.pass_obj
def list_checkpoints(invocation: Invocation, job: str) -> None:
    """List a job's checkpoints. Without JOB, lists those of the newest job."""
    screen, now = invocation.screen, system_clock().now()
    state = invocation.state_directory()
    with closing(open_reader(state)) as reader:
        job_id, journals = find_job_id(reader, job), open_journals(state)
        bookmarks = list_bookmarks(reader, journals, job_id)
        gone = taken_away(reader, journals, job_id)
    if screen.is_json:
        data = [checkpoint_row(one) for one in bookmarks]
        screen.document("checkpoints", data, now, **taken_row(gone))
        return
    if not bookmarks:
        _show_no_checkpoints(screen, gone, now)
        return
    rows = [
        (
            str(one.number),
            one.trigger,
            str(one.seq),
            str(one.turn),
            format_usd(one.cost_microusd),
            screen.when(one.created_at, now),
            one.status + (f" ({one.suspend_reason})" if one.suspend_reason else ""),
        )
        for one in bookmarks
    ]
    screen.show(table(HEADING, rows, width=screen.width, style=screen.out))
    if gone.count:
        screen.flush()
        screen.say(f"{gone.count} more were deleted by retention")


def _show_no_checkpoints(screen: Screen, gone: TakenAway, now: datetime) -> None:
    """Why there is nothing to list."""
    if gone.count == 0:
        screen.say("the job never had checkpoints; agents without limits have them where they stop")
        return
    when = f" ({screen.when(gone.at, now)})" if gone.at is not None else ""
    screen.say(f"the job's checkpoints, {gone.count}, were deleted by retention{when}")
    screen.say("  its journal is complete: nightherd jobs tail JOB")


@click.command("show", epilog="Example: nightherd checkpoint show @last --state")
@job_argument
@click.argument("number", metavar="[NUMBER]", required=False, type=click.IntRange(1))
@click.option(
    "--state", "is_state", is_flag=True, help="Show the whole job as a state.json document."
)
@json_option
@click.pass_obj
def show(invocation: Invocation, job: str, number: int | None, is_state: bool) -> None:
    """Show a checkpoint. Without NUMBER, shows the last one, or with --state the job as it is now."""
    screen, now = invocation.screen, system_clock().now()
    state = invocation.state_directory()
    persistence = load_persistence(state)
    with closing(open_reader(state)) as reader:
        job_id = find_job_id(reader, job)
        if is_state:
            document = thread_state(reader, open_journals(state), job_id, number, now=now)
            show_state(document, persistence, screen, now)
            return
        found = find_checkpoint(reader, open_journals(state), job_id, number)
    if screen.is_json:
        screen.document("checkpoint", checkpoint_document(found), now)
        return
    screen.show(card(found, persistence))


def show_state(
    document: dict[str, Any], persistence: Persistence, screen: Screen, now: datetime
) -> None:
    """A job as one document, checked as if it were read from a file."""
    document = as_written(document, persistence)
    check_state(document, persistence)
    if screen.is_json:
        screen.document("thread_state", document, now)
    else:
        screen.show(json.dumps(document, indent=2, ensure_ascii=False))


@click.command("fields", epilog="Example: nightherd checkpoint fields")
@json_option
@click.pass_obj
def fields(invocation: Invocation) -> None:
    """Show when checkpoints are saved and what state.json holds."""
    screen, now = invocation.screen, system_clock().now()
    persistence = load_persistence(invocation.state_directory())
    triggers = [
        {
            "trigger": point.value,
            "enabled": one.enabled,
            "priority": one.priority,
            "description": one.description,
        }
        for point, one in persistence.triggers.items()
    ]
    said = dict(descriptions(persistence.schema))
    if screen.is_json:
        data = {"version": persistence.schema_version, "triggers": triggers, "fields": said}
        screen.document("checkpoint_fields", data, now)
        return
    rows = [
        (
            str(trigger["trigger"]),
            "yes" if trigger["enabled"] else "no",
            str(trigger["priority"]),
            str(trigger["description"]),
        )
        for trigger in triggers
    ]
    heading = ("TRIGGER", "ENABLED", "PRIORITY", "WHEN")
    screen.show(table(heading, rows, width=screen.width, style=screen.out))
    screen.show()
    screen.show(table(("FIELD", "SAYS"), list(said.items()), width=screen.width, style=screen.out))


def card(one: Checkpoint, persistence: Persistence) -> str:
    """One checkpoint as lines of `label  value`."""
    known = TriggerPoint(one.trigger) if one.trigger in set(TriggerPoint) else None
    trigger = persistence.triggers.get(known) if known is not None else None
    waited = suspension_text(one.header.get("suspension") or {})
    pairs = [
        ("job", one.job_id),
        ("number", str(one.number)),
        ("trigger", one.trigger + (f" ({trigger.description.lower()})" if trigger else "")),
        ("event", f"{one.seq} of execution {one.epoch}"),
        ("status", one.status + (f" ({one.suspend_reason})" if one.suspend_reason else "")),
        *([("waits", waited)] if waited is not None else []),
        ("turns", str(one.turn)),
        ("tokens", tokens_text(one)),
        ("cost", format_usd(one.cost_microusd)),
        ("ran", length(timedelta(milliseconds=one.duration_ms))),
        *(("limit", limit_text(limit)) for limit in limits_at(one)),
    ]
    return "\n".join(f"{label:<10}{value}" for label, value in pairs)
