"""Finding: what a check says about a definition, and which part of it that is about."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nightherd.model.problem import Severity
from nightherd.model.workflows.expressions.tree import Mistake

PathStep = str | int
DefinitionPath = tuple[PathStep, ...]
"""Fields and indexes that lead to a part: `("phases", 2, "action", "prompt")`."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a definition, or worth saying."""

    path: DefinitionPath
    message: str
    severity: Severity = Severity.ERROR
    start: int | None = None
    """Where in the text at `path`, if it is about a part of it."""
    width: int = 1
    hint: str | None = None
    word: str = ""
    """The name that is unknown, if one is."""
    known: tuple[str, ...] = ()
    """The names that `word` could have been."""


def of_mistakes(path: DefinitionPath, mistakes: Iterable[Mistake]) -> list[Finding]:
    """Return the mistakes of the expression or template at `path`."""
    return [
        Finding(
            path=path,
            message=mistake.message,
            start=mistake.start,
            width=mistake.width,
            hint=mistake.hint,
            word=mistake.word,
            known=mistake.known,
        )
        for mistake in mistakes
    ]


def errors_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that stop a definition from being used."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)
