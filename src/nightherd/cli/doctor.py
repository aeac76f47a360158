"""`nightherd doctor`: is everything as it should be, and if not, put it right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import click

from nightherd.cli.invocation import Invocation
from nightherd.cli.options import json_option
from nightherd.cli.render import Screen
from nightherd.engine.doctor import Check, Examined, examine
from nightherd.engine.reconcile import workers_at_work
from nightherd.errors import RefusedError, StateError
from nightherd.model.finding import Finding, Level
from nightherd.wiring import (
    doctor_checks,
    open_mirror,
    open_record,
    rebuild_database,
    system_clock,
)

MARKS = {Level.OK: "✔", Level.WARNING: "!", Level.PROBLEM: "✗"}
SHOWN = 10


@click.command("doctor", epilog="Example: nightherd doctor --fix")
@click.option("--fix", is_flag=True, help="Mend what can be mended.")
@click.option("--verify", is_flag=True, help="Read everything there is: slow, and sure.")
@click.option("--rebuild", is_flag=True, help="Make the database again from ledger and journals.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool, verify: bool, rebuild: bool) -> None:
    """Examine the state directory. Exit code 1 when a problem is left."""
    invocation = ctx.find_object(Invocation)
    assert invocation is not None  # noqa: S101 (the group above puts it there)
    screen, state = invocation.screen, invocation.state_directory()
    if not state.is_dir():
        _tell_nothing_there(screen, state)
        return
    if rebuild:
        _rebuild(screen, state)
    examined = anyio.run(_examine, screen, state, fix or rebuild, verify)
    _tell(screen, state, examined)
    ctx.exit(1 if any(one.level is Level.PROBLEM for one in examined) else 0)


async def _examine(screen: Screen, state: Path, is_fixing: bool, is_deep: bool) -> list[Examined]:
    def say(check: Check) -> None:
        if check.is_deep and screen.can_animate:
            screen.say(screen.err.dim(f"reading: {check.title}"))

    async with open_record(state) as record:
        checks = doctor_checks(state, record)
        return await examine(checks, is_deep=is_deep, is_fixing=is_fixing, on_check=say)


def _rebuild(screen: Screen, state: Path) -> None:
    _refuse_while_at_work(state)
    for path in rebuild_database(state):
        screen.say(f"kept aside: {path}")
    open_mirror(state).rebuild()


def _refuse_while_at_work(state: Path) -> None:
    """A worker whose database is swapped under it would lose its job; one that is gone does not matter."""

    async def at_work() -> list[str]:
        async with open_record(state) as record:
            return [str(worker.pid) for worker in workers_at_work(record)]

    try:
        pids = anyio.run(at_work)
    except StateError:
        return  # a database that cannot be read names no workers; that is why it is rebuilt
    if pids:
        raise RefusedError(
            f"a worker is running (pid {', '.join(pids)})", hint="let it finish, or stop it, first"
        )


def _tell_nothing_there(screen: Screen, state: Path) -> None:
    now = system_clock().now()
    if screen.is_json:
        screen.document("doctor", {"state_dir": str(state), "level": "ok", "checks": []}, now)
        return
    screen.show(f"{state}: nothing there yet, and nothing wrong")


def _tell(screen: Screen, state: Path, examined: list[Examined]) -> None:
    if screen.is_json:
        screen.document("doctor", _document(state, examined), system_clock().now())
        return
    for one in examined:
        fixed = sum(finding.is_fixed for finding in one.findings)
        note = f", {fixed} mended" if fixed else ""
        screen.show(f"{MARKS[one.level]} {one.level.value} {one.check.title}{note}")
        left = [finding for finding in one.findings if not finding.is_fixed]
        for finding in left[:SHOWN]:
            screen.show(f"    {finding.message}")
            if finding.remedy:
                screen.show(f"      {'--fix: ' if finding.is_fixable else ''}{finding.remedy}")
        if len(left) > SHOWN:
            screen.show(f"    and {len(left) - SHOWN} more; --json has them all")


def _document(state: Path, examined: list[Examined]) -> dict[str, Any]:
    order = list(Level)
    worst = max((one.level for one in examined), key=order.index, default=Level.OK)
    return {
        "state_dir": str(state),
        "level": worst.value,
        "checks": [
            {
                "name": one.check.name,
                "title": one.check.title,
                "level": one.level.value,
                "findings": [_finding_document(finding) for finding in one.findings],
            }
            for one in examined
        ],
    }


def _finding_document(finding: Finding) -> dict[str, Any]:
    return {
        "level": finding.level.value,
        "message": finding.message,
        "path": finding.path,
        "job_id": finding.job_id,
        "remedy": finding.remedy,
        "is_fixable": finding.is_fixable,
        "is_fixed": finding.is_fixed,
    }
