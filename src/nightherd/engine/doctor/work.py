"""Whether issues can be taken, and what is stuck on the way, as a check of the doctor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from nightherd.engine.doctor.doctor import Check
from nightherd.model.doctor import Finding, Level
from nightherd.model.work.item import WorkItem
from nightherd.model.work.source import SourceState, WorkSource
from nightherd.views.work.work import failing_source_text

NAME = "work"
MANY = 5
"""Failures of one step in a row that are worth a person's attention."""

LookAtWork = Callable[[], tuple[Sequence[SourceState], Sequence[WorkItem]]]
"""Returns how the sources do that fail, and the issues that are taken."""


def work_check(
    look: LookAtWork,
    sources: Mapping[str, WorkSource],
    environment: Mapping[str, str],
    now: datetime,
) -> Check:
    """The check of the sources that schedules take issues from."""

    def findings() -> Iterator[Finding]:
        for name in _without_token(sources, environment):
            yield _finding(
                f"no issue is taken: {name} is not set", f"set {name}, or put it into .env"
            )
        failing, items = look()
        for state in failing:
            if state.id in sources:
                yield _finding(failing_source_text(state, now), None)
        for item in items:
            if item.tries >= MANY:
                yield _finding(
                    f"{item.id} is {item.status} after {item.tries} tries: {item.last_error}", None
                )

    return Check(NAME, "sources of issues", findings)


def _without_token(sources: Mapping[str, WorkSource], environment: Mapping[str, str]) -> list[str]:
    names = {source.token_env for source in sources.values()}
    return sorted(name for name in names if not environment.get(name, "").strip())


def _finding(message: str, remedy: str | None) -> Finding:
    return Finding(check=NAME, level=Level.WARNING, message=message, remedy=remedy)
