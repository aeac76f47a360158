"""Located problems of a fleet file, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nightherd.cli.screen.text import neutralise
from nightherd.config.report import problem_data, render_problems, shown_file
from nightherd.model.problem import Problem, Severity


def problems_text(problems: Sequence[Problem], cwd: Path) -> str:
    """Every problem with its line and a mark under what is meant."""
    return render_problems(problems, "text", cwd=cwd).rstrip("\n")


def problems_data(problems: Sequence[Problem], cwd: Path) -> list[dict[str, Any]]:
    """Every problem as plain data."""
    return [problem_data(problem, cwd=cwd) for problem in problems]


def notice_text(notice: Problem, cwd: Path) -> str:
    """A notice on one line."""
    place = notice.place
    file = shown_file(place.file, cwd)
    kind = "error" if notice.severity is Severity.BLOCKED else "notice"
    return neutralise(f"{kind}: {file}:{place.line}:{place.column}: {notice.message}")
