"""What work sources need: the fleet's stores, and the trackers that issues come from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext
from nightherd.errors import WorkSourceError
from nightherd.model.change import Applied
from nightherd.model.log import LogLevel, LogLine
from nightherd.model.text import time_text
from nightherd.model.work.changes import EndWork, NoteWork, SetSourceState, StepWork
from nightherd.model.work.item import HAND, WorkItem, WorkOutcome, lies_ahead
from nightherd.model.work.source import SourceState, SourceStatus, WorkSource
from nightherd.ports import Probe, no_probe
from nightherd.ports.work import OpenTracker, WorkTracker

FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 900.0
REFUSED_PAUSE_S = 300.0
"""How long a source is left alone that refuses: a token or a repository has to be put right by a person."""


class WorkContext(msgspec.Struct, kw_only=True):
    """The ports of work sources in one process. Only `fleet` is ever replaced: when the fleet has changed."""

    fleet: FleetContext
    open_tracker: OpenTracker
    by: str
    """The name of this process in what it has in hand; no other process has it."""
    fleet_name: str
    """What other fleets read about who has an issue."""
    probe: Probe = no_probe
    is_for_one: bool = False
    """Whether it does one thing that a person asked for. What such a process lacks is no trouble of the fleet."""
    trackers: dict[WorkSource, WorkTracker] = msgspec.field(default_factory=dict)
    """Those that were opened: each remembers what it was answered last."""

    def tracker(self, source: WorkSource) -> WorkTracker:
        """Return the tracker of the source. It uses the token that the fleet's environment has at each request."""
        if source not in self.trackers:
            self.trackers[source] = self.open_tracker(
                source, lambda: self.fleet.environment.get(source.token_env, "")
            )
        return self.trackers[source]

    def now(self) -> datetime:
        """The time."""
        return self.fleet.clock.now()

    def masked(self, text: str) -> str:
        """The text without secrets."""
        return str(self.fleet.secrets.mask(text))

    def log(
        self, event: str, item: WorkItem, message: str, level: LogLevel = LogLevel.INFO
    ) -> None:
        """Write a line about an issue for operators."""
        line = LogLine(
            at=self.now(),
            level=level,
            event=event,
            agent=item.agent,
            job=item.job_id,
            message=self.masked(message),
            data={"issue": item.id},
        )
        self.fleet.log.write(line)


async def take_in_hand(item: WorkItem, context: WorkContext) -> bool:
    """Have the issue in hand for a while longer; False when another process has it, or it was taken again since."""
    now = context.now()
    step = StepWork(id=item.id, claim=item.claim, by=context.by, at=now, until=now + HAND)
    (answer,) = await context.fleet.state.apply([step])
    return isinstance(answer, Applied)


async def note(
    item: WorkItem,
    context: WorkContext,
    *,
    is_labelled: bool | None = None,
    is_told: bool | None = None,
    is_relabelled: bool | None = None,
    comment_id: str | None = None,
    error: str | None = None,
    due_at: datetime | None = None,
) -> bool:
    """Record a step; False when another process has the issue in hand by now: stop then."""
    change = NoteWork(
        id=item.id,
        claim=item.claim,
        by=context.by,
        at=context.now(),
        is_labelled=is_labelled,
        is_told=is_told,
        is_relabelled=is_relabelled,
        comment_id=comment_id,
        error=None if error is None else context.masked(error),
        due_at=due_at,
    )
    (answer,) = await context.fleet.state.apply([change])
    return isinstance(answer, Applied)


async def end_claim(item: WorkItem, outcome: WorkOutcome, context: WorkContext) -> bool:
    """End the claim with that outcome; the tracker is told afterwards. False when it had ended, or may not yet."""
    end = EndWork(id=item.id, claim=item.claim, at=context.now(), outcome=outcome)
    (answer,) = await context.fleet.state.apply([end])
    return isinstance(answer, Applied)


def blocked_state(source_id: str, context: WorkContext) -> SourceState | None:
    """How the source is doing while it may not be asked; None when it may."""
    state = find_source_state(source_id, context)
    if state is None or not lies_ahead(state.blocked_until, context.now()):
        return None
    if context.is_for_one and state.status is not SourceStatus.LIMITED:
        return None  # this process may have what the others lack
    return state


def blocked_text(state: SourceState) -> str:
    """Say why a source is not asked, and until when."""
    until = (
        ""
        if state.blocked_until is None
        else f"; not asked before {time_text(state.blocked_until)}"
    )
    return f"{state.error or state.status}{until}"


async def note_failure(source_id: str, error: WorkSourceError, context: WorkContext) -> SourceState:
    """Record that the source could not be asked, and until when it is left alone."""
    now = context.now()
    known = find_source_state(source_id, context)
    status = SourceStatus(error.kind)
    failures = 1 if known is None else known.failures + 1
    state = SourceState(
        id=source_id,
        status=status,
        checked_at=now,
        blocked_until=now + timedelta(seconds=_pause_s(error, status, failures)),
        error=context.masked(error.message),
        failures=failures,
        open_issues=None if known is None else known.open_issues,
    )
    if context.is_for_one and status is not SourceStatus.LIMITED:
        return replace(state, blocked_until=None)
    await context.fleet.state.apply([SetSourceState(state=state)])
    if known is None or known.status is not status:
        line = LogLine(
            at=now,
            level=LogLevel.WARNING,
            event=f"work.{status}",
            message=state.error,
            data={"source": source_id},
        )
        context.fleet.log.write(line)
    return state


def _pause_s(error: WorkSourceError, status: SourceStatus, failures: int) -> float:
    growing = float(min(FIRST_PAUSE_S * 2 ** min(failures - 1, 10), LONGEST_PAUSE_S))
    if status in (SourceStatus.REFUSED, SourceStatus.MISSING):
        return error.wait_s or REFUSED_PAUSE_S
    # A limit that stays although its time is over wants longer pauses too.
    return max(error.wait_s or 0.0, growing) if failures > 1 else error.wait_s or growing


async def note_success(
    source_id: str, context: WorkContext, *, open_issues: int | None = None
) -> None:
    """Record that the source answered, and how many ready issues it has where that was asked."""
    known = find_source_state(source_id, context)
    if (
        known is not None
        and known.status is SourceStatus.OK
        and open_issues in (None, known.open_issues)
    ):
        return
    if open_issues is None and known is not None:
        open_issues = known.open_issues
    state = SourceState(
        id=source_id,
        status=SourceStatus.OK,
        checked_at=context.now(),
        open_issues=open_issues,
    )
    await context.fleet.state.apply([SetSourceState(state=state)])


def find_source_state(source_id: str, context: WorkContext) -> SourceState | None:
    """How the source is doing; None when it was never asked."""
    states = context.fleet.reader.list_work_sources()
    return next((one for one in states if one.id == source_id), None)


async def forgive_refusals(sources: Iterable[WorkSource], context: WorkContext) -> None:
    """Ask sources again that refused: a person has changed the fleet or begun anew, perhaps with another token.

    Waits that a tracker asked for stay.
    """
    refusing = (SourceStatus.REFUSED, SourceStatus.MISSING)
    for source in sources:
        state = find_source_state(source.id, context)
        if state is not None and state.status in refusing and state.blocked_until is not None:
            asked_again = replace(state, blocked_until=None)
            await context.fleet.state.apply([SetSourceState(state=asked_again)])
