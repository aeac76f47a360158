"""Bookmarks: a job's checkpoints, as its rows and the lines of its journal say them together.

The first checkpoint of each execution has a row, and so have those at which a job stops: what the job may
use is said there, once. The others are only lines. A row speaks for the lines of its execution: it has
their header, and says which of them were taken away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from nightherd.model.checkpoints.checkpoint import REMOVED, Checkpoint, checkpoint_id
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import Event, SystemEvent, payload_of
from nightherd.model.journal.system import CheckpointSaved, SystemSubtype
from nightherd.model.units import MicroUsd

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def bookmarks(rows: Sequence[Checkpoint], events: Iterable[Event]) -> list[Checkpoint]:
    """The checkpoints there are, first to last: `rows` that were not taken away, and lines among `events`."""
    if not rows:
        return []
    speaking = firsts(rows)
    gone = {epoch: removed(row) for epoch, row in speaking.items()}
    found = {row.number: _shown(row) for row in rows if row.number not in gone[row.epoch]}
    with_rows = {row.number for row in rows}
    for event in events:
        said = saved_in(event)
        row = speaking.get(event.epoch)
        if said is None or row is None or said.number <= row.number or said.number in with_rows:
            continue
        if said.number not in gone[event.epoch]:
            found[said.number] = _of_line(event, said, row)
    return [found[number] for number in sorted(found)]


def ever(rows: Iterable[Checkpoint], events: Iterable[Event]) -> list[Checkpoint]:
    """The checkpoints there ever were: of `rows`, with those that were taken away, and lines among `events`."""
    return bookmarks([_shown(row) for row in rows], events)


def last_number(rows: Sequence[Checkpoint], events: Iterable[Event]) -> int:
    """The highest number that was ever given, as far as these know."""
    said = (one.number for event in events if (one := saved_in(event)) is not None)
    return max((*(row.number for row in rows), *said), default=0)


def saved_in(event: Event) -> CheckpointSaved | None:
    """The checkpoint that a line is; None for other lines, and for those of an older nightherd."""
    if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.CHECKPOINT:
        payload = payload_of(event)
        if isinstance(payload, CheckpointSaved) and payload.seq > 0:
            return payload
    return None


def firsts(rows: Iterable[Checkpoint]) -> dict[int, Checkpoint]:
    """The first row of each execution, by epoch: the one that speaks for its lines."""
    found: dict[int, Checkpoint] = {}
    for row in sorted(rows, key=lambda row: row.number):
        found.setdefault(row.epoch, row)
    return found


def removed(row: Checkpoint) -> set[int]:
    """The numbers that a row says were taken away, its own perhaps among them."""
    ranges = row.header.get(REMOVED) or ()
    return {number for first, last in ranges for number in range(first, last + 1)}


def with_removed(row: Checkpoint, numbers: Collection[int]) -> Checkpoint:
    """The row, saying that these were taken away too."""
    ranges: list[list[int]] = []
    for number in sorted(removed(row) | set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return replace(row, header={**row.header, REMOVED: ranges})


def _of_line(event: Event, said: CheckpointSaved, row: Checkpoint) -> Checkpoint:
    return Checkpoint(
        id=checkpoint_id(row.job_id, said.number),
        job_id=row.job_id,
        number=said.number,
        epoch=event.epoch,
        seq=said.seq,
        trigger=said.trigger,
        status=JobStatus.RUNNING.value,
        created_at=event.timestamp or LONG_AGO,
        turn=said.turn,
        input_tokens=said.input_tokens,
        output_tokens=said.output_tokens,
        cache_creation_input_tokens=said.cache_creation_input_tokens,
        cache_read_input_tokens=said.cache_read_input_tokens,
        cost_microusd=MicroUsd(said.cost_microusd),
        duration_ms=said.duration_ms,
        header=without_removed(row.header),
    )


def _shown(row: Checkpoint) -> Checkpoint:
    return replace(row, header=without_removed(row.header)) if REMOVED in row.header else row


def without_removed(header: Mapping[str, Any]) -> Mapping[str, Any]:
    """The header as people see it: without what it says of checkpoints that were taken away."""
    if REMOVED not in header:
        return header
    return {name: value for name, value in header.items() if name != REMOVED}
