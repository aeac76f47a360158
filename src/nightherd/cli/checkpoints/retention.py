"""`nightherd retention`: plan and apply the deletion of old checkpoints."""

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

HEADING = ("JOB", "DELETE", "WHY", "KEEP", "THEN")


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
    planned = _planned(invocation, job)
    if screen.is_json:
        screen.document("retention", [plan_row(plan) for plan in planned], now, is_dry_run=True)
        return
    if not planned:
        screen.say("no checkpoints to delete")
        return
    screen.show(
        table(HEADING, [_cells(plan) for plan in planned], width=screen.width, style=screen.out)
    )
    screen.flush()
    screen.say("apply it: nightherd retention apply")


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
        rows = [plan_row(plan) for plan in done]
        screen.document("retention", rows, now, is_dry_run=False, failures=dict(failures))
    else:
        count = sum(len(plan.going) for plan in done)
        deleted = f"deleted {counted(count, 'checkpoint')} of {counted(len(done), 'job')}"
        screen.say(deleted if done or failures else "no checkpoints to delete")
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


def plan_row(plan: JobPlan) -> dict[str, Any]:
    """Return a job's plan for programs."""
    return {
        "job_id": plan.job_id,
        "going": [{"number": number, "reason": why.value} for number, why in plan.going],
        "needed": [{"number": number, "reason": why.value} for number, why in plan.needed],
        "archived": plan.is_archived,
        "deleted": plan.is_deleted,
    }


def _cells(plan: JobPlan) -> tuple[str, str, str, str, str]:
    reasons = ", ".join(sorted({why.value for _, why in plan.going}))
    needed = ", ".join(f"{number} ({why.value})" for number, why in plan.needed) or "-"
    then = "archived" if plan.is_archived else "deleted" if plan.is_deleted else "-"
    return plan.job_id, ", ".join(str(number) for number in plan.numbers), reasons, needed, then
