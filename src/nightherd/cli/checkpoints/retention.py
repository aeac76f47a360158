"""`nightherd retention`: which checkpoints go, shown first, done when asked."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import anyio
import click

from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import table
from nightherd.engine.checkpoints.retention import Applied, ApplyRetention, apply_retention, plans
from nightherd.model.checkpoints.retention import JobPlan
from nightherd.model.text import counted
from nightherd.views.jobs import find_job_id
from nightherd.wiring.stores import (
    load_persistence,
    open_journals,
    open_reader,
    open_retention,
    system_clock,
)

HEADING = ("JOB", "GOING", "WHY", "NEEDED", "THEN")


@click.group(
    "retention",
    cls=LazyGroup,
    entries={
        "plan": Entry(
            "nightherd.cli.checkpoints.retention:show_plan",
            "List the checkpoints that would be deleted.",
        ),
        "apply": Entry(
            "nightherd.cli.checkpoints.retention:apply", "Delete the planned checkpoints."
        ),
    },
    default="plan",
    epilog="Example: nightherd retention plan",
)
def retention() -> None:
    """Plan and apply the deletion of old checkpoints. `retention` in state_persistence.yaml decides; jobs and journals stay."""


@click.command("plan", epilog="Example: nightherd retention plan --json")
@click.option("--job", metavar="JOB", help="Show only this job.")
@json_option
@click.pass_obj
def show_plan(invocation: Invocation, job: str | None) -> None:
    """List the checkpoints that would be deleted. Changes nothing."""
    screen, now = invocation.screen, system_clock().now()
    found = _planned(invocation, job)
    if screen.is_json:
        screen.document("retention", [plan_row(one) for one in found], now, is_dry_run=True)
        return
    if not found:
        screen.say("no checkpoints to delete")
        return
    screen.show(
        table(HEADING, [_cells(one) for one in found], width=screen.width, style=screen.out)
    )
    screen.flush()
    screen.say("to do it: nightherd retention apply")


@click.command("apply", epilog="Example: nightherd retention apply")
@click.option("--job", metavar="JOB", help="Show only this job.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted and change nothing.")
@json_option
@click.pass_context
def apply(ctx: click.Context, job: str | None, dry_run: bool) -> None:
    """Delete the planned checkpoints. Archives them first if the configuration says so."""
    invocation = invocation_of(ctx)
    if dry_run:
        ctx.invoke(show_plan, job=job)
        return
    screen, now = invocation.screen, system_clock().now()
    applied = anyio.run(_apply, invocation, job)
    done, failures = applied.done, applied.failures
    if screen.is_json:
        rows = [plan_row(one) for one in done]
        screen.document("retention", rows, now, is_dry_run=False, failures=dict(failures))
    else:
        count = sum(len(one.going) for one in done)
        went = f"{counted(count, 'checkpoint')} of {counted(len(done), 'job')} went"
        screen.say(went if done or failures else "no checkpoints to delete")
        for job_id, message in failures.items():
            screen.say(f"{job_id}: {message}")
    if failures:
        ctx.exit(1)


async def _apply(invocation: Invocation, job: str | None) -> Applied:
    async with open_retention(invocation.state_directory()) as room:
        job_id = find_job_id(room.reader, job) if job is not None else None
        return await apply_retention(ApplyRetention(job_id=job_id), room)


def _planned(invocation: Invocation, job: str | None) -> list[JobPlan]:
    state = invocation.state_directory()
    persistence = load_persistence(state)
    with closing(open_reader(state)) as reader:
        job_id = find_job_id(reader, job) if job is not None else None
        now = system_clock().now()
        return list(plans(reader, open_journals(state), persistence, now, job_id))


def plan_row(one: JobPlan) -> dict[str, Any]:
    """A job's plan for programs."""
    return {
        "job_id": one.job_id,
        "going": [{"number": number, "reason": why.value} for number, why in one.going],
        "needed": [{"number": number, "reason": why.value} for number, why in one.needed],
        "archived": one.is_archived,
        "deleted": one.is_deleted,
    }


def _cells(one: JobPlan) -> tuple[str, str, str, str, str]:
    reasons = ", ".join(sorted({why.value for _, why in one.going}))
    needed = ", ".join(f"{number} ({why.value})" for number, why in one.needed) or "-"
    then = "archived" if one.is_archived else "deleted" if one.is_deleted else "-"
    return one.job_id, ", ".join(str(number) for number in one.numbers), reasons, needed, then
