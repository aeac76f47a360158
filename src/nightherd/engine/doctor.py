"""Doctor: examines a state directory check by check, and mends what can be mended.

A check looks, and says what it found; mending is a separate step, asked for. Nothing is ever thrown away:
what cannot be used is kept aside under a name that says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from nightherd.errors import NightherdError
from nightherd.model.finding import Finding, Level

Examine = Callable[[], Iterable[Finding]]
Mend = Callable[[Finding], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at. `is_deep` ones read everything there is and run only when asked."""

    name: str
    title: str
    examine: Examine
    mend: Mend | None = None
    is_deep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What one check came to."""

    check: Check
    findings: Sequence[Finding]

    @property
    def level(self) -> Level:
        """The worst that is still so."""
        left = {finding.level for finding in self.findings if not finding.is_fixed}
        return next((level for level in reversed(Level) if level in left), Level.OK)


async def examine(
    checks: Iterable[Check],
    *,
    is_deep: bool,
    is_fixing: bool,
    on_check: Callable[[Check], None] = lambda check: None,
) -> list[Examined]:
    """Run every check in order and, when fixing, mend what it finds before the next one looks.

    A check that cannot be carried out is a finding itself; the others still run.
    """
    examined = []
    for check in checks:
        if check.is_deep and not is_deep:
            continue
        on_check(check)
        findings = _look(check)
        if is_fixing and check.mend is not None:
            findings = [await _mended(check.mend, finding) for finding in findings]
        examined.append(Examined(check=check, findings=findings))
    return examined


def _look(check: Check) -> list[Finding]:
    try:
        return list(check.examine())
    except NightherdError as error:
        return [
            Finding(
                check=check.name,
                level=Level.PROBLEM,
                message=f"cannot be examined: {error.message}",
                remedy=error.hint,
            )
        ]


async def _mended(mend: Mend, finding: Finding) -> Finding:
    if not finding.is_fixable:
        return finding
    try:
        await mend(finding)
    except NightherdError as error:
        return replace(finding, message=f"{finding.message}; not mended: {error.message}")
    return replace(finding, is_fixed=True)
