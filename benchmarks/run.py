"""Runs every benchmark, each in a process of its own, and prints what they found as one table.

A benchmark is a script of this folder, and runs alone as `python -m benchmarks.NAME`. It measures both sides of its comparison in the same run, and ends
by printing one line per finding: `what: 3.2x (limit 8x)`, or `(at least 5x)` where more is better, or a
time or size, `what: 0.8 s (limit 1.5 s)`. Everything else it prints is detail. Ends with 1 when a limit is broken.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

FINDING = re.compile(
    r"(?P<what>[^:]+): (?P<value>\d[\d.,]*) ?(?P<unit>x|s|ms|us|MB)"
    r"(?: \((?P<bound>limit|at least) (?P<limit>\d[\d.,]*) ?(?P=unit)\))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One measured value and the limit it has to keep, if there is one."""

    benchmark: str
    what: str
    value: float
    unit: str
    bound: str | None = None
    limit: float | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the value is on the right side of its limit."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.bound == "at least" else self.value <= self.limit

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """The finding as a row of the table."""
        limit = f"{self.bound} {self.limit:g} {self.unit}" if self.limit is not None else ""
        verdict = ("kept" if self.is_kept else "BROKEN") if self.limit is not None else ""
        return self.benchmark, self.what, f"{self.value:,.4g} {self.unit}", limit, verdict


def number(text: str) -> float:
    return float(text.replace(",", "").rstrip("."))


def findings(benchmark: str, output: str) -> Iterator[Finding]:
    """What a benchmark's output says, line by line."""
    for line in output.splitlines():
        found = FINDING.fullmatch(line.strip())
        if found is not None:
            yield Finding(
                benchmark=benchmark,
                what=found["what"],
                value=number(found["value"]),
                unit=found["unit"],
                bound=found["bound"],
                limit=number(found["limit"]) if found["limit"] else None,
            )


def table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def main() -> int:
    """0 when every benchmark ran and every limit was kept."""
    found: list[Finding] = []
    broken: list[str] = []
    for script in sorted(FOLDER.glob("*.py")):
        if script == Path(__file__).resolve():
            continue
        print(f"== {script.stem}", flush=True)
        command = [sys.executable, "-m", f"{FOLDER.name}.{script.stem}"]
        done = subprocess.run(
            command, cwd=FOLDER.parent, stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout, flush=True)
        here = list(findings(script.stem, done.stdout))
        found += here
        if done.returncode != 0 or not here:
            broken.append(f"{script.stem} ended with {done.returncode} and {len(here)} findings")
    print(table([("benchmark", "what", "measured", "limit", ""), *(one.cells for one in found)]))
    broken += [f"{one.benchmark}: {one.what}" for one in found if not one.is_kept]
    for text in broken:
        print(f"!! {text}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
