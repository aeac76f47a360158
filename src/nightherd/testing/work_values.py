"""Work items with little to say, for tests that need some."""

from __future__ import annotations

from datetime import datetime, timedelta

from nightherd.model.work.changes import HoldWork, ReserveWork, StartWork, StepWork
from nightherd.model.work.item import WorkItem, WorkStatus, work_id
from nightherd.model.work.source import WorkSource
from nightherd.testing.state_values import AGENT, BEGINNING

SOURCE = WorkSource(repo="acme/app")
CLAIM = "claim-1"


def at(seconds: float) -> datetime:
    """So many seconds later."""
    return BEGINNING + timedelta(seconds=seconds)


def reserve(issue: int = 7, *, claim: str = CLAIM, seconds: float = 0) -> ReserveWork:
    """Take an issue."""
    item = WorkItem(
        id=work_id(SOURCE.id, issue),
        source=SOURCE.id,
        issue=issue,
        agent=AGENT,
        schedule="nightly",
        status=WorkStatus.RESERVED,
        claim=claim,
        reserved_at=at(seconds),
        changed_at=at(seconds),
        terms=SOURCE.terms(),
        title="The fence is broken",
    )
    return ReserveWork(item=item)


def hold(issue: int = 7, *, claim: str = CLAIM) -> HoldWork:
    """The issue is ours."""
    return HoldWork(id=work_id(SOURCE.id, issue), claim=claim, at=at(1), title="Broken fence")


def start_work(issue: int = 7, *, claim: str = CLAIM) -> StartWork:
    """The issue of a slot's job."""
    return StartWork(id=work_id(SOURCE.id, issue), claim=claim)


def step(by: str, seconds: float, *, issue: int = 7, claim: str = CLAIM) -> StepWork:
    """Write about an issue for a minute."""
    return StepWork(
        id=work_id(SOURCE.id, issue), claim=claim, by=by, at=at(seconds), until=at(seconds + 60)
    )
