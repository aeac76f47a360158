"""What the doctor found, as `doctor --json` and the API show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from nightherd.model.doctor import Finding, Level
from nightherd.next_step import Advice, SpellStep


class FindingRow(TypedDict):
    """One thing found, and what to do about it."""

    level: Level
    message: str
    path: str | None
    job_id: str | None
    remedy: str | None
    is_fixable: bool
    is_fixed: bool


class CheckRow(TypedDict):
    """One check with what it found; `notes` are findings that are only information."""

    name: str
    title: str
    level: Level
    notes: list[str]
    findings: list[FindingRow]


class DoctorDocument(TypedDict):
    """What the doctor found in a state directory and on this machine."""

    state_dir: str
    level: Level
    kept_aside: list[str]
    lost: list[str]
    checks: list[CheckRow]


def check_row(
    name: str, title: str, level: Level, findings: Sequence[Finding], spell: SpellStep
) -> CheckRow:
    """One check as plain data."""
    return {
        "name": name,
        "title": title,
        "level": level,
        "notes": [one.message for one in findings if one.level is Level.OK],
        "findings": [finding_row(one, spell) for one in findings if one.level is not Level.OK],
    }


def finding_row(finding: Finding, spell: SpellStep) -> FindingRow:
    """One finding as plain data."""
    return {
        "level": finding.level,
        "message": finding.message,
        "path": finding.path,
        "job_id": finding.job_id,
        "remedy": remedy_of(finding, spell),
        "is_fixable": finding.is_fixable,
        "is_fixed": finding.is_fixed,
    }


def remedy_of(finding: Finding, spell: SpellStep) -> str | None:
    """What to do about a finding, with its step as `spell` writes it."""
    return Advice(finding.remedy, finding.next_step).text(spell)


def doctor_document(
    state_dir: str, checks: Sequence[CheckRow], kept: Sequence[str] = (), lost: Sequence[str] = ()
) -> DoctorDocument:
    """What was found, with the worst level."""
    order = list(Level)
    return {
        "state_dir": state_dir,
        "level": max((one["level"] for one in checks), key=order.index, default=Level.OK),
        "kept_aside": [*kept],
        "lost": [*lost],
        "checks": [*checks],
    }
