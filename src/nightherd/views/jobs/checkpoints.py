"""Checkpoints as data: a job's bookmarks, and the job at one of them as one document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Any, TypedDict, TypeVar

import msgspec
from msgspec.structs import replace

from nightherd.errors import NotFoundError
from nightherd.model.checkpoints.checkpoint import Checkpoint, checkpoint_id
from nightherd.model.checkpoints.journal_checkpoints import bookmarks, ever, removed, saved_in
from nightherd.model.checkpoints.state_document import state_document
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobStatus, JobTexts
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import Event
from nightherd.model.journal.live_text import cut_off_event, unrecorded_texts
from nightherd.model.units import to_usd
from nightherd.model.usage import Usage
from nightherd.model.workflows.rows import skill_of
from nightherd.model.workflows.run import RunId
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs.jobs import get_job, timestamp

JobT = TypeVar("JobT", bound=Job)

RECENT = 64
"""How many lines at a journal's end are looked at for its last checkpoint: far more than a turn has."""
USED = Usage.__struct_fields__
"""Fields that rows of jobs and of checkpoints have as well."""
UNSETTLED = frozenset({JobStatus.PENDING, JobStatus.RUNNING})
"""A job in one of these may have more on record than its row says."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A job at a place of its record, as far as rows know."""

    job: Job
    texts: JobTexts | None
    place: Checkpoint
    directive: str | None = None
    """`WORKFLOW:PHASE` of a phase's job; None for others."""


def list_bookmarks(reader: StateReader, journals: Journals, job_id: JobId) -> list[Checkpoint]:
    """All checkpoints of the job, first to last. Reads its journal, if it has any."""
    rows = reader.list_checkpoints(job_id)
    return bookmarks(rows, journals.read(job_id, load_blobs=False)) if rows else []


class TakenAway(msgspec.Struct, frozen=True, kw_only=True):
    """How many checkpoints of a job there are no more, and when the last of them went, as far as that is known."""

    count: int = 0
    at: datetime | None = None


def taken_away(reader: StateReader, journals: Journals, job_id: JobId) -> TakenAway:
    """What retention took away of the job's checkpoints. Reads its journal, if it ever had any."""
    rows, gone = reader.list_checkpoints(job_id), reader.removed_checkpoints(job_id)
    if not gone and not any(removed(row) for row in rows):
        return TakenAway()
    lines = [one for one in journals.read(job_id, load_blobs=False) if saved_in(one) is not None]
    count = len(ever((*rows, *gone), lines)) - len(bookmarks(rows, lines))
    return TakenAway(
        count=count, at=max((row.removed_at for row in gone if row.removed_at), default=None)
    )


class CheckpointPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some checkpoints of a job, newest first."""

    checkpoints: list[Checkpoint]
    total: int
    next_before: int | None
    """The number below which the next page begins; None when this is the last."""


def checkpoint_page(
    reader: StateReader, journals: Journals, job_id: JobId, *, limit: int, before: int | None
) -> CheckpointPage:
    """Return the newest checkpoints of a job with numbers below `before`. Reads its journal, if it has any."""
    everything = list_bookmarks(reader, journals, job_id)
    newest = [one for one in reversed(everything) if before is None or one.number < before]
    shown = newest[:limit]
    more = len(newest) > limit
    return CheckpointPage(
        checkpoints=shown,
        total=len(everything),
        next_before=shown[-1].number if more else None,
    )


def latest_bookmark(reader: StateReader, journals: Journals, job_id: JobId) -> Checkpoint | None:
    """The job's last checkpoint, as far as its rows and the end of its journal show."""
    rows = reader.list_checkpoints(job_id)
    found = bookmarks(rows, journals.last(job_id, RECENT)) if rows else []
    return found[-1] if found else None


def latest_known(reader: StateReader, journals: Journals, job_id: JobId) -> Checkpoint | None:
    """The job's last checkpoint, or the last that retention took away: what it says of the job is still so."""
    there = latest_bookmark(reader, journals, job_id)
    if there is not None:
        return there
    gone = reader.removed_checkpoints(job_id)
    return gone[-1] if gone else None


def with_checkpoint_totals(job: JobT, last: Checkpoint | None) -> JobT:
    """The job with what its last checkpoint says that it has come to: its row is behind while it runs."""
    if last is None or job.status not in UNSETTLED:
        return job
    return replace(
        job,
        turns=max(job.turns, last.turn),
        **{name: max(getattr(job, name), getattr(last, name)) for name in USED},
    )


def find_checkpoint(
    reader: StateReader, journals: Journals, job_id: JobId, number: int | None
) -> Checkpoint:
    """The job's checkpoint of that number, else its last; `NotFoundError` when there is none."""
    found = list_bookmarks(reader, journals, job_id)
    for one in reversed(found):
        if number is None or one.number == number:
            return one
    there = ", ".join(str(one.number) for one in found)
    if (number is None or not there) and taken_away(reader, journals, job_id).count:
        raise NotFoundError(f"the checkpoints of job {job_id} were deleted by retention")
    if number is None or not there:
        raise NotFoundError(f"job {job_id} has no checkpoints")
    raise NotFoundError(f"job {job_id} has no checkpoint {number}; there are {there}")


def thread_state(
    reader: StateReader,
    journals: Journals,
    job_id: JobId,
    number: int | None = None,
    *,
    now: datetime,
) -> dict[str, Any]:
    """The job at that checkpoint as `state.json` has it; without a number, as the job stands now."""
    if number is not None:
        place = find_checkpoint(reader, journals, job_id, number)
        return documented(standing(reader, job_id, place, now=now), journals, now=now)
    found = at_end_of_record(standing(reader, job_id, now=now), journals)
    return documented(found, journals, now=now)


def at_end_of_record(found: Standing, journals: Journals) -> Standing:
    """The job as it stands, with what its journal says beyond its row. Reads no rows."""
    if found.job.status not in UNSETTLED:
        return found
    events = journals.read(found.job.id, load_blobs=False)
    return replace(found, place=caught_up(found.place, events))


def caught_up(place: Checkpoint, events: Iterable[Event]) -> Checkpoint:
    """The bookmark at the end of the record, and what the job has come to there: its row is behind while it runs."""
    tally, seq, duration_ms = Tally(), place.seq, place.duration_ms
    for event in events:
        tally, seq = tally.add(event), max(seq, event.seq)
        said = saved_in(event)
        if said is not None:
            duration_ms = max(duration_ms, said.duration_ms)
    return replace(
        place,
        seq=seq,
        turn=tally.turns,
        **msgspec.structs.asdict(tally.usage),
        duration_ms=duration_ms,
    )


def standing(
    reader: StateReader, job_id: JobId, place: Checkpoint | None = None, *, now: datetime
) -> Standing:
    """What rows say about the job at that checkpoint, else as it stands now."""
    job = get_job(reader, job_id)
    found = place if place is not None else present(reader, job, now)
    texts = reader.find_texts(job_id)
    return Standing(job=job, texts=texts, place=found, directive=_directive(reader, job))


def _directive(reader: StateReader, job: Job) -> str | None:
    """What the job carries out, where that is a phase of a workflow."""
    run = reader.find_run(RunId(job.workflow_run_id)) if job.workflow_run_id is not None else None
    return skill_of(run, job) if run is not None and job.node_id is not None else None


def documented(standing: Standing, journals: Journals, *, now: datetime) -> dict[str, Any]:
    """The same with what was said, as one document. Reads the whole journal."""
    job, place = standing.job, standing.place
    events: Iterable[Event] = journals.read(job.id)
    if place.number == 0 and job.status in UNSETTLED:
        events = chain(events, _streamed(journals, place))
    said = standing.directive
    return state_document(place, job, standing.texts, events, saved_at=now, directive=said)


def _streamed(journals: Journals, place: Checkpoint) -> Iterator[Event]:
    """Give the answer that is coming in, or was when its worker was killed."""
    deltas = journals.leftover_text(place.job_id)
    if not deltas:
        return
    after = min(delta.after for delta in deltas)
    event = cut_off_event(unrecorded_texts(deltas, journals.read(place.job_id, after=after)))
    if event is not None:
        yield msgspec.structs.replace(event, seq=place.seq)


def present(reader: StateReader, job: Job, now: datetime) -> Checkpoint:
    """A bookmark where the job stands now: what its row says, with what its last with a row knew besides."""
    known = reader.list_checkpoints(job.id) or reader.removed_checkpoints(job.id)
    last = known[-1] if known else None
    is_waiting = job.status is JobStatus.SUSPENDED
    header = dict(last.header) if last is not None else {}
    if not is_waiting:
        header.pop("suspension", None)
    executions = reader.list_executions(job.id)
    return Checkpoint(
        id=checkpoint_id(job.id, 0),
        job_id=job.id,
        number=0,
        epoch=job.epoch,
        seq=job.last_seq,
        trigger=last.trigger if last is not None else "",
        status=job.status.value,
        created_at=now,
        turn=job.turns,
        suspend_reason=job.suspend_reason.value if is_waiting and job.suspend_reason else None,
        **{name: getattr(job, name) for name in USED},
        duration_ms=sum(one.duration_ms or 0 for one in executions),
        header=header,
    )


class TakenRow(TypedDict):
    """How many checkpoints retention deleted, and when the last of them."""

    removed: int
    removed_at: str | None


class CheckpointRow(TypedDict):
    """A checkpoint as lists have it."""

    number: int
    trigger: str
    seq: int
    epoch: int
    status: str
    suspend_reason: str | None
    created_at: str
    turn: int
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    cost_usd: float
    duration_seconds: float


class CheckpointDocument(CheckpointRow):
    """A checkpoint with its header: what the job was doing, as far as it is not in its journal."""

    header: dict[str, Any]


def taken_row(gone: TakenAway) -> TakenRow:
    """What a list of checkpoints says beside them."""
    return {"removed": gone.count, "removed_at": timestamp(gone.at)}


def checkpoint_row(one: Checkpoint) -> CheckpointRow:
    """A checkpoint as lists and `checkpoint show` give it."""
    return {
        "number": one.number,
        "trigger": one.trigger,
        "seq": one.seq,
        "epoch": one.epoch,
        "status": one.status,
        "suspend_reason": one.suspend_reason,
        "created_at": timestamp(one.created_at),
        "turn": one.turn,
        "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens,
        "cache_creation_input_tokens": one.cache_creation_input_tokens,
        "cache_read_input_tokens": one.cache_read_input_tokens,
        "cost_usd": to_usd(one.cost_microusd),
        "duration_seconds": one.duration_ms / 1_000,
    }


def checkpoint_document(one: Checkpoint) -> CheckpointDocument:
    """A checkpoint with all that its row says."""
    return {**checkpoint_row(one), "header": dict(one.header)}
