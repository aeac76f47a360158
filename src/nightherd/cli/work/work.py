"""`nightherd work`: the issues that schedules have taken, and giving one back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

import anyio
import click

from nightherd.cli.invocation import Invocation, invocation_for_completion, json_option, page_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import PAGE, Screen, neutralise, one_line, status_cell, table
from nightherd.engine.operations.work import release_issue
from nightherd.model.work.item import WorkId, WorkItem, WorkStatus, short_id
from nightherd.views.work.work import (
    failing_source_text,
    failing_sources,
    find_item,
    list_items,
    work_item_row,
    work_source_row,
)
from nightherd.wiring.machine import refuse_agents
from nightherd.wiring.stores import open_reader, open_store, system_clock

HEADING = ("ISSUE", "STATUS", "SCHEDULE", "JOB", "ATTEMPTS", "SINCE", "ABOUT")
SPARE = ("SCHEDULE", "SINCE")
MOST = 50


def complete_issues(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The issues that changed last, which begin so."""
    try:
        with closing(open_reader(invocation_for_completion(ctx).state_directory())) as reader:
            names = (short_id(item.id) for item in reader.list_work_items(MOST))
            return [name for name in names if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001 (an edge: a prompt that is being typed is no place for an error)
        return []


@click.group(
    "work",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.work.work:list_work", "List issues that schedules took."),
        "release": Entry("nightherd.cli.work.work:release", "Release an issue."),
        "locks": Entry("nightherd.cli.work.locks:list_locks", "List which fleet has which issue."),
        "unlock": Entry(
            "nightherd.cli.work.locks:unlock", "Remove the lock of a fleet that is gone for good."
        ),
    },
    default="list",
    epilog="Example: nightherd work list --open",
)
def work() -> None:
    """List and release issues that schedules took. An issue is released when a person gives it back.

    Locks say which fleet has an issue; one of a fleet that is gone for good can be removed.
    """


@click.command("list", epilog="Example: nightherd work list --open --json")
@click.option("--open", "is_open", is_flag=True, help="List only issues that are taken now.")
@page_option(PAGE)
@json_option
@click.pass_obj
def list_work(invocation: Invocation, is_open: bool, limit: int) -> None:
    """List issues that schedules took. Those that changed last come first."""
    screen, now = invocation.screen, system_clock().now()
    with closing(open_reader(invocation.state_directory())) as reader:
        items = list_items(reader, limit, is_open=is_open)
        sources = reader.list_work_sources()
        failing = failing_sources(reader)
    if screen.is_json:
        rows = [work_item_row(item) for item in items]
        screen.document("work", rows, now, sources=[work_source_row(one) for one in sources])
        return
    for state in failing:
        screen.show(screen.out.bad(neutralise(failing_source_text(state, now, screen.time))))
    if not items:
        screen.say("no issues were taken")
        return
    screen.show(work_table(items, screen, now))


@click.command("release", epilog="Example: nightherd work release acme/app#7")
@click.argument("issue", metavar="ISSUE", shell_complete=complete_issues)
@click.option(
    "--force",
    is_flag=True,
    help="Write nothing more to GitHub about an issue that cannot be settled.",
)
@json_option
@click.pass_obj
def release(invocation: Invocation, issue: str, force: bool) -> None:
    """Release an issue. Its attempts are forgotten; ISSUE is OWNER/NAME#7, or #7 where that is clear.

    A job that works on it has to end first: nightherd jobs cancel JOB.
    """
    state_dir, screen = invocation.state_directory(), invocation.screen
    refuse_agents(state_dir, "giving an issue back", "starts more jobs")
    with closing(open_reader(state_dir)) as reader:
        item = find_item(reader, issue)
    released = anyio.run(_release, item.id, state_dir, force)
    if screen.is_json:
        screen.document("work_item", work_item_row(released), system_clock().now())
        return
    screen.show(f"{short_id(released.id)} released")
    screen.flush()
    ready = released.terms.get("ready", "ready")
    if released.status is WorkStatus.SETTLING:
        screen.say("a daemon or worker takes it off its labels and its lock")
    else:
        screen.say(neutralise(f"it is taken again when it is open and has the label {ready!r}"))


async def _release(id: WorkId, state_dir: Path, is_forced: bool) -> WorkItem:
    clock = system_clock()
    state = open_store(state_dir, clock)
    try:
        return await release_issue(id, state, clock, is_forced=is_forced)
    finally:
        await state.close()


def work_table(items: Sequence[WorkItem], screen: Screen, now: datetime) -> str:
    """One line per issue."""
    rows = [
        (
            neutralise(short_id(item.id)),
            status_cell(item.status.value),
            item.schedule_id,
            item.job_id or "-",
            str(item.attempts),
            screen.when(item.changed_at, now),
            one_line(neutralise(item.last_error or item.title)),
        )
        for item in items
    ]
    return table(HEADING, rows, width=screen.width, style=screen.out, spare=SPARE)
