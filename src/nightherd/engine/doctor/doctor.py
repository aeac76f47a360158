"""Doctor: examines a state directory check by check, and repairs what can be repaired.

A check reports findings; repairing is a separate step that has to be requested. Nothing is ever thrown away:
what cannot be used is kept aside under a name that says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from nightherd.engine.checkpoints.state_files import write_stopped
from nightherd.engine.contexts import ThreadFiles
from nightherd.engine.doctor.orphans import adopt_orphans, orphans
from nightherd.engine.doctor.reconcile import (
    DamagedBodies,
    Known,
    correct,
    damaged_journals,
    disagreements,
    no_bodies,
    no_one_knows,
)
from nightherd.engine.doctor.record import KillMarked, RepairContext
from nightherd.engine.doctor.stuck import end_stuck_jobs, give_up_workers, gone_workers, stuck_jobs
from nightherd.errors import NightherdError, message_of
from nightherd.model.doctor import Finding, Level
from nightherd.model.ids import JobId

Examine = Callable[[], Iterable[Finding]]
RepairOne = Callable[[Finding], Awaitable[None]]
RepairMany = Callable[[Sequence[Finding]], Awaitable[None]]
OnStep = Callable[[str, int], None]
"""Called with what is being checked or repaired, and how many of it so far."""


class Check(msgspec.Struct, frozen=True):
    """One thing to look at. `is_deep` ones read everything there is and run only when asked.

    Findings are repaired one by one (`repair`), or together (`repair_all`) where one depends on the others.
    """

    name: str
    title: str
    examine: Examine
    repair: RepairOne | None = None
    is_deep: bool = False
    repair_all: RepairMany | None = None


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    check: Check
    findings: Sequence[Finding]

    @property
    def level(self) -> Level:
        """The worst that is still so."""
        left = {finding.level for finding in self.findings if not finding.is_fixed}
        return next((level for level in reversed(Level) if level in left), Level.OK)


def no_step(title: str, count: int) -> None:
    """Show no progress."""


async def examine(
    checks: Iterable[Check], *, is_deep: bool, is_fixing: bool, on_step: OnStep = no_step
) -> list[Examined]:
    """Run every check in order and, when fixing, repair what it finds before the next one runs.

    A check that cannot be carried out is a finding itself; the others still run.
    """
    examined = []
    for check in checks:
        if check.is_deep and not is_deep:
            continue
        on_step(check.title, 0)
        findings = _look(check)
        if is_fixing:
            findings = await _repair(check, findings, on_step)
        examined.append(Examined(check=check, findings=findings))
    return examined


def _look(check: Check) -> list[Finding]:
    """Return the findings of a check, also those before it failed."""
    findings: list[Finding] = []
    try:
        for finding in check.examine():
            findings.append(finding)  # noqa: PERF402 - what came before an error must stay
    except Exception as error:  # noqa: BLE001 - damage may break anything, and the other checks must run
        findings.append(
            Finding(
                check=check.name,
                level=Level.PROBLEM,
                message=f"cannot be examined: {message_of(error)}",
                remedy=error.hint if isinstance(error, NightherdError) else None,
                next_step=error.next_step if isinstance(error, NightherdError) else None,
            )
        )
    return findings


async def _repair(check: Check, findings: list[Finding], on_step: OnStep) -> list[Finding]:
    if check.repair_all is not None and any(finding.is_fixable for finding in findings):
        return await _repair_together(check, check.repair_all, findings)
    if check.repair is None:
        return findings
    repaired = []
    for count, finding in enumerate(findings, 1):
        on_step(f"repairing: {check.title}", count)
        repaired.append(await _repair_one(check.repair, finding))
    return repaired


async def _repair_one(repair: RepairOne, finding: Finding) -> Finding:
    if not finding.is_fixable:
        return finding
    try:
        await repair(finding)
    except Exception as error:  # noqa: BLE001 - one that fails must not keep the others from it
        return _not_repaired(finding, error)
    return replace(finding, is_fixed=True)


async def _repair_together(
    check: Check, repair_all: RepairMany, findings: list[Finding]
) -> list[Finding]:
    """Repair all of them, then check again: what is not found any more was fixed."""
    fixable = [finding for finding in findings if finding.is_fixable]
    try:
        await repair_all(fixable)
    except Exception as error:  # noqa: BLE001 - one that fails must not keep the others from it
        left = set(_look(check))
        return [_not_repaired(one, error) if one in left else _done(one) for one in findings]
    left = set(_look(check))
    return [one if one in left else _done(one) for one in findings]


def _done(finding: Finding) -> Finding:
    return replace(finding, is_fixed=True)


def _not_repaired(finding: Finding, error: Exception) -> Finding:
    return replace(finding, message=f"{finding.message}; not fixed: {message_of(error)}")


LINES = "journals, every line"
ORPHANS = "journals without rows"


def record_checks(
    record: RepairContext,
    kill_marked: KillMarked,
    on_step: OnStep,
    known: Known = no_one_knows,
    damaged_bodies: DamagedBodies = no_bodies,
    *,
    threads: Callable[[], ThreadFiles | None] = lambda: None,
) -> tuple[list[Check], list[Check]]:
    """The quick checks, and those that read every line. `threads` writes the `state.json` of a job that is ended."""

    async def end(finding: Finding) -> None:
        await end_stuck_jobs(record, kill_marked, finding)
        await write_stopped(JobId(finding.job_id or ""), record, threads())

    quick = [
        Check(
            "stuck",
            "running jobs",
            partial(stuck_jobs, record),
            end,
        ),
        Check(
            "workers",
            "workers",
            partial(gone_workers, record),
            repair_all=partial(give_up_workers, record),
        ),
        Check(
            "record", "rows and journals", partial(disagreements, record), partial(correct, record)
        ),
        Check(
            "orphans",
            ORPHANS,
            partial(orphans, record),
            repair_all=partial(adopt_orphans, record, on_job=partial(on_step, ORPHANS)),
        ),
    ]
    damaged = partial(damaged_journals, record, partial(on_step, LINES), known, damaged_bodies)
    return quick, [Check("journals", LINES, damaged, is_deep=True)]
