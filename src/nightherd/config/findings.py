"""Findings: every problem of one load, each once, in the order of files and lines."""

from __future__ import annotations

from collections.abc import Iterable

from nightherd.model.problem import Place, Problem, Severity

MOST_PROBLEMS = 1_000
"""A file with more mistakes than this is not a configuration; the rest is not collected."""


class Findings:
    """Collects problems. The same message at the same place counts once, whichever agent met it."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int, int, str], Problem] = {}
        self._files: dict[str, int] = {}
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
        """What stands there could not be found out, as has been told: nothing more is said of it."""
        self._unknown.add((place.file, place.line, place.column))

    def extend(self, problems: Iterable[Problem]) -> None:
        """Record all of them."""
        for problem in problems:
            self.add(problem)

    def opened(self, file: str) -> None:
        """Remember when a file was first opened: problems are told in that order."""
        self._files.setdefault(file, len(self._files))

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
