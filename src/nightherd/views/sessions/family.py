"""A session among its like: what was forked from what, and where two of them part."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NotRequired, TypedDict

import msgspec

from nightherd.model.ids import SessionId
from nightherd.model.jobs.job import ExitReason, Job, JobStatus
from nightherd.model.sessions.session import Session
from nightherd.model.units import MicroUsd, to_usd
from nightherd.ports import ChangedPath, Journals, StateReader
from nightherd.views.sessions.conversation import (
    DEEPEST,
    Place,
    Segment,
    count_messages,
    place_of,
    segments_of,
)
from nightherd.views.sessions.sessions import SessionRow, session_row, up_to_now
from nightherd.views.workspaces.snapshots import Comparison as TreeComparison
from nightherd.views.workspaces.snapshots import PathRow, path_row
from nightherd.views.workspaces.snapshots import compare_sessions as compare_files

if TYPE_CHECKING:
    from nightherd.views.jobs.jobs import IsAtWork


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """A session and those forked from it, first to last."""

    session: Session
    forks: tuple[Branch, ...] = ()


def family_of(
    reader: StateReader,
    journals: Journals,
    session: Session,
    is_at_work: IsAtWork,
    now: datetime,
) -> Branch:
    """The whole family of a session, from the first of it; those cleaned up are in it too."""
    known: set[SessionId] = set()
    while session.parent_session_id is not None and len(known) < DEEPEST:
        parent = reader.find_session(session.parent_session_id)
        if parent is None or parent.id in known:
            break
        known.add(parent.id)
        session = parent
    return _branch(reader, journals, session, is_at_work, now, frozenset())


def _branch(
    reader: StateReader,
    journals: Journals,
    session: Session,
    is_at_work: IsAtWork,
    now: datetime,
    above: frozenset[SessionId],
) -> Branch:
    above |= {session.id}
    forks = [one for one in reader.sessions_of_parent(session.id) if one.id not in above]
    return Branch(
        session=up_to_now(reader, journals, session, is_at_work, now),
        forks=tuple(_branch(reader, journals, fork, is_at_work, now, above) for fork in forks),
    )


class SessionTree(SessionRow):
    """A session, and below it the trees of those forked from it, first to last."""

    forks: list[SessionTree]


def branch_document(branch: Branch) -> SessionTree:
    """The family as nested data."""
    forks = [branch_document(fork) for fork in branch.forks]
    return {**session_row(branch.session), "forks": forks}


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of two sessions, from where they part."""

    session: Session
    messages: int
    """Said after they part."""
    jobs: Sequence[Job]
    """Those that had a part in it."""
    cost_microusd: MicroUsd
    """What these jobs cost."""

    @property
    def outcome(self) -> Job | None:
        """The job that says how it came out."""
        return self.jobs[-1] if self.jobs else None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two conversations, side by side."""

    common: int
    """Messages that both begin with."""
    place: Place | None
    """Where the last of these ends; None when there is none."""
    sides: tuple[Side, Side]
    files: TreeComparison | None = None
    """The last files of both; None where one of them has no snapshot."""


def compare(
    reader: StateReader,
    journals: Journals,
    one: Session,
    other: Session,
    is_at_work: IsAtWork,
    now: datetime,
) -> Comparison:
    """Where the two part, and what became of each since."""
    left = segments_of(reader, journals, one)
    right = segments_of(reader, journals, other)
    common = _common(left, right)
    return Comparison(
        common=common,
        place=place_of(journals, left, common) if common else None,
        sides=(
            _side(up_to_now(reader, journals, one, is_at_work, now, left), left, common),
            _side(up_to_now(reader, journals, other, is_at_work, now, right), right, common),
        ),
        files=compare_files(reader, journals, one, other),
    )


def _common(left: Sequence[Segment], right: Sequence[Segment]) -> int:
    """How many messages both have: as long as they are of the same jobs."""
    common = 0
    for mine, yours in zip(left, right, strict=False):
        if mine.job.id != yours.job.id:
            break
        common = min(mine.last, yours.last)
        if mine.last != yours.last:
            break
    return common


def _side(session: Session, parts: Sequence[Segment], common: int) -> Side:
    later = [part for part in parts if part.last > common or (part.first > common)]
    return Side(
        session=session,
        messages=count_messages(parts) - common,
        jobs=[part.job for part in later],
        cost_microusd=MicroUsd(sum(part.job.cost_microusd for part in later)),
    )


class OutcomeRow(TypedDict):
    """How the last job of a session came out."""

    job_id: str
    status: JobStatus
    exit_reason: ExitReason | None
    summary: str | None
    error: str | None


class SideDocument(SessionRow):
    """One of two sessions, with what happened in it after they part."""

    messages_since: int
    cost_usd_since: float
    jobs_since: list[str]
    outcome: OutcomeRow | None


class SessionComparison(TypedDict):
    """Where two sessions part, and both since; `files` differ from the first to the second, null without snapshots."""

    common_messages: int
    job_id: str | None
    seq: int | None
    sessions: list[SideDocument]
    files: list[PathRow] | None
    patch: NotRequired[str]


def comparison_document(
    comparison: Comparison,
    paths: Sequence[ChangedPath] | None = None,
    patch: bytes | None = None,
) -> SessionComparison:
    """The comparison as plain data; `paths` are the files that differ, None where files cannot be compared."""
    place = comparison.place
    document: SessionComparison = {
        "common_messages": comparison.common,
        "job_id": place.job_id if place is not None else None,
        "seq": place.seq if place is not None else None,
        "sessions": [_side_document(side) for side in comparison.sides],
        "files": None if paths is None else [path_row(path) for path in paths],
    }
    if patch is not None:
        document["patch"] = patch.decode("utf-8", "replace")
    return document


def _side_document(side: Side) -> SideDocument:
    job = side.outcome
    return {
        **session_row(side.session),
        "messages_since": side.messages,
        "cost_usd_since": to_usd(side.cost_microusd),
        "jobs_since": [one.id for one in side.jobs],
        "outcome": {
            "job_id": job.id,
            "status": job.status,
            "exit_reason": job.exit_reason,
            "summary": job.summary,
            "error": job.error,
        }
        if job is not None
        else None,
    }
