"""`nightherd doctor`: check and repair a state directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click
from msgspec.structs import replace

from nightherd.cli.fleet.load import load_all
from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.cli.next_steps import command_for
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.config.acceptance import pending_of
from nightherd.engine.doctor.doctor import Check, Examined, OnStep, examine, no_step
from nightherd.errors import ConfigError, ConfigNotFoundError, RefusedError, StateFileError
from nightherd.model.doctor import Finding, Level
from nightherd.next_step import Action, NextStep
from nightherd.views.health.doctor import DoctorDocument, check_row, doctor_document, remedy_of
from nightherd.wiring.files import refresh_mirror
from nightherd.wiring.repair import doctor_checks, night_checks, noted_damage, rebuild_database
from nightherd.wiring.stores import open_repair, system_clock

if TYPE_CHECKING:
    from nightherd.state.repair import NotedDamage

MARKS = {Level.OK: "✔", Level.WARNING: "!", Level.PROBLEM: "✗"}
SHOWN = 10
WRITTEN_FIRST = ["schema"]
"""All that `nightherd init` makes in a state directory."""
LASTING = "journals"
"""The check whose findings cannot be repaired: lines that are not events stay where they are."""
COUNTING = frozenset(("ledger", "agreement", "orphans"))
"""Checks whose repair may start a new ledger."""


@click.command("doctor", epilog="Example: nightherd doctor --fix")
@click.option("--fix", is_flag=True, help="Repair what can be repaired.")
@click.option("--verify", is_flag=True, help="Check every journal and ledger line (slow).")
@click.option("--rebuild", is_flag=True, help="Rebuild the database from ledger and journals.")
@click.option(
    "--salvage", is_flag=True, help="Rebuild from a damaged ledger, without what it lost."
)
@click.option(
    "--acknowledge", is_flag=True, help="Verify, and note problems that cannot be repaired."
)
@json_option
@click.pass_context
def doctor(
    ctx: click.Context, fix: bool, verify: bool, rebuild: bool, salvage: bool, acknowledge: bool
) -> None:
    """Check and repair the state directory. Also checks whether this machine can run the fleet.

    Ends with exit code 1 when a problem is left.
    """
    invocation = invocation_of(ctx)
    screen, state = invocation.screen, invocation.new_state_directory()
    if not _is_begun(state):
        state = invocation.state_directory()
        night = anyio.run(_examine_night, invocation, state)
        _show_no_state(screen, state, night)
        ctx.exit(_exit_code(night))
    rebuild, lost = rebuild or salvage, list[str]()
    kept: Sequence[Path] = ()
    with _steps(screen) as on_step:
        if rebuild:
            on_change = partial(on_step, "rebuilding: changes")
            kept = rebuild_database(state, on_change, lost.append if salvage else None)
        is_deep = verify or acknowledge
        examined = anyio.run(_examine, state, fix or rebuild, is_deep, acknowledge, on_step)
        examined += _examine_acceptance(invocation, state)
        mirror = _refresh_mirror(state, examined, is_new=rebuild) if fix or rebuild else None
        examined += anyio.run(_examine_night, invocation, state)
    for what in lost:
        screen.say(f"lost: {neutralise(what)}")
    for path in kept:
        screen.say(f"kept aside: {neutralise(str(path))}")
    if mirror is not None:
        screen.say(f"the readable files are as they were: {mirror}")
    _show_report(screen, state, examined, kept, lost)
    ctx.exit(_exit_code(examined))


def _exit_code(examined: Sequence[Examined]) -> int:
    return 1 if any(one.level is Level.PROBLEM for one in examined) else 0


def _examine_acceptance(invocation: Invocation, state: Path) -> list[Examined]:
    """Return the permissions that no person has accepted yet; nothing without a valid fleet file."""
    try:
        fleet = load_all(invocation).fleet
    except ConfigError:
        return []
    try:
        texts = [one.text for one in pending_of(fleet, state)]
    except StateFileError as error:
        texts = [error.message]
    findings = [
        Finding(
            check="acceptance",
            level=Level.WARNING,
            message=f"not in effect until a person accepts it: {text}",
            next_step=NextStep(Action.ACCEPT_CONFIG),
        )
        for text in texts
    ]
    if not findings:
        return []
    check = Check("acceptance", "accepted configuration", lambda: iter(findings))
    return [Examined(check=check, findings=findings)]


def _is_begun(state: Path) -> bool:
    """Return whether there is more than what `init` writes."""
    if not state.is_dir():
        return state.exists() or state.is_symlink()
    return [one.name for one in state.iterdir()] != WRITTEN_FIRST


async def _examine(
    state: Path, is_fixing: bool, is_deep: bool, is_noting: bool, on_step: OnStep
) -> list[Examined]:
    async with open_repair(state, is_examining=True) as record:
        checks = doctor_checks(state, record, on_step)
        found = await examine(checks, is_deep=is_deep, is_fixing=is_fixing, on_step=on_step)
        if not is_noting:
            return found
        notes, at = noted_damage(state), record.clock.now()
        return [_noted(one, notes, at) if one.check.name == LASTING else one for one in found]


async def _examine_night(invocation: Invocation, state: Path) -> list[Examined]:
    """Check whether this machine can run the fleet unattended. Without a fleet file there is nothing to check."""
    try:
        checks = night_checks(state, load_all(invocation).fleet, invocation.environ)
        return await examine(checks, is_deep=False, is_fixing=False)
    except ConfigNotFoundError:
        return []
    except ConfigError as error:
        finding = Finding(
            check="fleet",
            level=Level.PROBLEM,
            message=error.message,
            next_step=NextStep(Action.CHECK_CONFIG),
        )
        return [Examined(check=Check("fleet", "fleet file", lambda: ()), findings=[finding])]


def _noted(examined: Examined, notes: NotedDamage, at: datetime) -> Examined:
    """Acknowledge the damage of journals: it is still reported, but no longer a problem."""
    new = [finding for finding in examined.findings if finding.level is Level.PROBLEM]
    notes.add([(one.job_id, one.message) for one in new], at)
    return replace(examined, findings=list(examined.check.examine()))


def _refresh_mirror(state: Path, examined: list[Examined], *, is_new: bool) -> str | None:
    """Write the mirror files again; return why not, if another process writes them.

    A new ledger numbers changes from 1, so positions that the files name are no longer valid.
    """
    began_anew = any(
        finding.is_fixed
        for one in examined
        if one.check.name in COUNTING
        for finding in one.findings
    )
    try:
        refresh_mirror(state, is_new=is_new or began_anew)
    except RefusedError as error:
        return error.message
    return None


@contextmanager
def _steps(screen: Screen) -> Iterator[OnStep]:
    """Show the progress in one line on a terminal, and nowhere else."""
    if not screen.can_animate:
        yield no_step
        return
    from nightherd.cli.screen.progress import Busy

    with Busy(screen.talk, is_colored=screen.err.is_colored) as busy:
        yield busy.update


def _show_no_state(screen: Screen, state: Path, night: list[Examined]) -> None:
    if not screen.is_json:
        screen.show(f"{state}: does not exist yet; no problems")
    _show_report(screen, state, night, (), ())


def _show_report(
    screen: Screen,
    state: Path,
    examined: list[Examined],
    kept: Sequence[Path],
    lost: Sequence[str],
) -> None:
    if screen.is_json:
        screen.document("doctor", _document(state, examined, kept, lost), system_clock().now())
        return
    shown: set[str] = set()
    for one in examined:
        fixed = sum(finding.is_fixed for finding in one.findings)
        note = f", {fixed} fixed" if fixed else ""
        screen.show(f"{MARKS[one.level]} {one.level.value} {one.check.title}{note}")
        left = [finding for finding in one.findings if not finding.is_fixed]
        for finding in left[:SHOWN]:
            if finding.message in shown:
                screen.show("    as above")
                continue
            shown.add(finding.message)
            screen.show(f"    {neutralise(finding.message)}")
            remedy = remedy_of(finding, command_for)
            if remedy is not None:
                screen.show(f"      {'--fix: ' if finding.is_fixable else ''}{remedy}")
        if len(left) > SHOWN:
            screen.show(f"    and {len(left) - SHOWN} more; --json has them all")


def _document(
    state: Path, examined: list[Examined], kept: Sequence[Path], lost: Sequence[str]
) -> DoctorDocument:
    checks = [
        check_row(one.check.name, one.check.title, one.level, one.findings, command_for)
        for one in examined
    ]
    return doctor_document(str(state), checks, [str(path) for path in kept], lost)
