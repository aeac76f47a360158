"""Findings: every problem of one load, each once, in the order of files and lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from nightherd.model.problem import MOST_PROBLEMS, Place, Problem, Severity


class Findings:
    """Collects problems. The same message at the same place counts once, whichever agent met it."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int, int, str], Problem] = {}
        self._files: dict[str, int] = {}
        self._directories: dict[str, None] = {}
        self._unknown: set[tuple[str, int, int]] = set()

    def add(self, problem: Problem) -> None:
        """Record `problem` unless it is there already."""
        if self.full:
            return
        place = problem.place
        if (place.file, place.line, place.column) in self._unknown:
            return
        self._files.setdefault(place.file, len(self._files))
        self._seen.setdefault((place.file, place.line, place.column, problem.message), problem)

    def value_unknown(self, place: Place) -> None:
        """The value is unknown, as another problem says: no further problems are reported for it."""
        self._unknown.add((place.file, place.line, place.column))

    def extend(self, problems: Iterable[Problem]) -> None:
        """Record all of them."""
        for problem in problems:
            self.add(problem)

    def opened(self, file: str) -> None:
        """Remember when a file was first opened: problems are reported in that order."""
        self._files.setdefault(file, len(self._files))

    def looked_in(self, directory: str) -> None:
        """Remember a directory whose files count, there or not: a new file in it is a change."""
        self._directories[directory] = None

    @property
    def directories(self) -> tuple[str, ...]:
        """Every directory that files were looked for in."""
        return tuple(self._directories)

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that was opened, or that something was found about."""
        return tuple(self._files)

    @property
    def full(self) -> bool:
        """Whether nothing more is collected."""
        return len(self._seen) >= MOST_PROBLEMS

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What stops the fleet from being used."""
        return self._sorted(Severity.ERROR)

    @property
    def blocked(self) -> tuple[Problem, ...]:
        """What stops single agents."""
        return self._sorted(Severity.BLOCKED)

    @property
    def notices(self) -> tuple[Problem, ...]:
        """What only has to be said."""
        return self._sorted(Severity.NOTICE)

    def _sorted(self, severity: Severity) -> tuple[Problem, ...]:
        chosen = [problem for problem in self._seen.values() if problem.severity is severity]
        chosen.sort(key=lambda one: (self._files[one.place.file], one.place.line, one.place.column))
        return tuple(chosen)


ReportFormat = Literal["text", "json", "github"]


def render_problems(
    problems: Iterable[Problem], format: ReportFormat = "text", *, cwd: Path
) -> str:
    """The problems in their order, files named relative to `cwd`. Ends with a newline unless empty."""
    if format == "json":
        return json.dumps([problem_data(one, cwd=cwd) for one in problems], indent=2) + "\n"
    render = as_annotation if format == "github" else as_text
    return "".join(render(problem, cwd) + "\n" for problem in problems)


def shown_file(file: str, cwd: Path) -> str:
    """A file's name relative to `cwd` where it is below it, else in full."""
    relative = os.path.relpath(file, cwd)
    return file if relative.startswith("..") else relative


def problem_data(problem: Problem, *, cwd: Path) -> dict[str, Any]:
    """One problem as plain data."""
    return {
        "file": shown_file(problem.place.file, cwd),
        "line": problem.place.line,
        "column": problem.place.column,
        "severity": problem.severity.value,
        "message": problem.message,
        "path": problem.path,
        "hint": problem.hint,
    }


def as_text(problem: Problem, cwd: Path) -> str:
    """`file:line:column: message  [path]`, the source line, a line that marks the spot, and the hint."""
    place = problem.place
    kind = "notice: " if problem.severity is Severity.NOTICE else ""
    where = f"  [{printable(problem.path)}]" if problem.path else ""
    head = f"{shown_file(place.file, cwd)}:{place.line}:{place.column}"
    lines = [f"{head}: {kind}{printable(problem.message)}{where}"]
    if problem.text is not None and problem.text.strip():
        before = problem.text[: place.column - 1]
        # Tabs stay tabs, so that the mark stands under what it marks however wide they are shown.
        indent = "".join("\t" if char == "\t" else " " for char in before)
        width = max(1, min(problem.width, len(problem.text) - len(before)))
        lines += [f"    {printable(problem.text)}", f"    {indent}{'^' * width}"]
    if problem.hint is not None:
        lines.append(f"    {printable(problem.hint)}")
    return "\n".join(lines)


def as_annotation(problem: Problem, cwd: Path) -> str:
    """One workflow command of GitHub Actions."""
    place = problem.place
    level = "notice" if problem.severity is Severity.NOTICE else "error"
    properties = {
        "file": shown_file(place.file, cwd),
        "line": str(place.line),
        "col": str(place.column),
        "endColumn": str(place.column + problem.width),
    }
    options = ",".join(f"{name}={escaped(value, ':,')}" for name, value in properties.items())
    message = problem.message if problem.hint is None else f"{problem.message} ({problem.hint})"
    return f"::{level} {options}::{escaped(message)}"


def escaped(text: str, more: str = "") -> str:
    """`text` as the workflow command syntax wants it."""
    return "".join(f"%{ord(char):02X}" if char in "%\r\n" + more else char for char in text)


def printable(text: str) -> str:
    """`text` without anything that could move a terminal's cursor; tabs stay."""
    return "".join(
        char
        if char == "\t" or char.isprintable()
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
