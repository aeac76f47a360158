"""What a job was set to do its work with: the recorded settings of an execution, compared with those of now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

import msgspec

from nightherd.errors import JournalError, NotFoundError
from nightherd.model.config_value import Layer
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.settings import DECODER, StoredSettings, StoredValue
from nightherd.model.journal.event import FullOutput, SystemEvent
from nightherd.model.journal.settings_ref import SettingsRef, settings_ref
from nightherd.model.journal.system import SystemSubtype
from nightherd.ports import Journals
from nightherd.views.fleet.config import DEFAULT, ConfigValueRow
from nightherd.views.jobs.jobs import timestamp

ORIGINS: Mapping[Layer, str] = {
    Layer.HELD: "accepted before",
    Layer.SCHEDULE: "the schedule",
    Layer.RUN: "the workflow run",
    Layer.REQUEST: "given with the job",
}
"""The origin of a value of that layer that stands in no file."""
NOT_RECORDED = "The settings of this execution were not recorded: it began under an older nightherd, or its agent is in no file."
NOT_STARTED = "The job has not started, so it has no settings yet."


class JobSettingRow(ConfigValueRow):
    """A setting that an execution had, and what has become of it."""

    change: Literal["changed", "removed"] | None
    """None: it is the same now, or nothing is known of now."""
    now: Any
    """Its value now, where that is another."""


class SettingsOfRow(TypedDict):
    """An execution, and which settings it had: the same hash is the same settings."""

    id: str
    epoch: int
    worker: str
    started_at: str | None
    hash: str | None


class JobConfigDocument(TypedDict):
    """The settings that one execution of a job had."""

    job_id: str
    agent: str
    epoch: int
    is_recorded: bool
    note: str | None
    """Why there are no settings."""
    values: list[JobSettingRow]
    is_cut: bool
    is_compared: bool
    """Whether the fleet has the agent now, so that the settings could be compared."""
    added: list[ConfigValueRow]
    """Settings that an execution would have now, and this one had not."""
    executions: list[SettingsOfRow]


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """An execution as the journal has it."""

    epoch: int
    worker: str
    at: datetime | None
    settings: SettingsRef | None


def begun_executions(journals: Journals, job_id: JobId) -> Iterator[Begun]:
    """Yield the executions of a job, first to last."""
    for event in journals.read(job_id, load_blobs=False):
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.EXECUTION_STARTED:
            extra = event.extra or {}
            yield Begun(
                epoch=event.epoch,
                worker=str(extra.get("worker", "")),
                at=event.timestamp,
                settings=settings_ref(extra),
            )


def job_config(
    journals: Journals, job: Job, now: StoredSettings | None, epoch: int | None = None
) -> JobConfigDocument:
    """Return the settings of one execution, the last one unless `epoch` says which; `now` is what one would have now."""
    begun = list(begun_executions(journals, job.id))
    meant = next((one for one in reversed(begun) if epoch in (None, one.epoch)), None)
    if meant is None and epoch is not None:
        raise NotFoundError(f"job {job.id} has no execution {epoch}")
    ref = None if meant is None else meant.settings
    stored = None if ref is None else _read(journals, ref)
    known = {one.key: one for one in (() if now is None else now.values)}
    values = () if stored is None else stored.values
    had = {one.key for one in values}
    return {
        "job_id": job.id,
        "agent": job.agent,
        "epoch": 0 if meant is None else meant.epoch,
        "is_recorded": stored is not None,
        "note": None if stored is not None else NOT_STARTED if meant is None else NOT_RECORDED,
        "values": [_row(one, known, is_compared=now is not None) for one in values],
        "is_cut": stored is not None and stored.is_cut,
        "is_compared": now is not None,
        "added": [
            _value_row(one) for key, one in known.items() if key not in had and stored is not None
        ],
        "executions": [_execution_row(job, one) for one in begun],
    }


def _read(journals: Journals, ref: SettingsRef) -> StoredSettings:
    text = journals.read_output(FullOutput(sha256=ref.sha256, size=ref.size))
    try:
        return DECODER.decode(text)
    except msgspec.MsgspecError as error:
        raise JournalError(
            f"the settings in blob {ref.sha256} cannot be read: {error}", code="settings"
        ) from error


def _row(one: StoredValue, known: Mapping[str, StoredValue], *, is_compared: bool) -> JobSettingRow:
    now = known.get(one.key)
    change: Literal["changed", "removed"] | None = None
    if is_compared:
        change = "removed" if now is None else "changed" if now.value != one.value else None
    return {
        **_value_row(one),
        "change": change,
        "now": now.value if now is not None and change == "changed" else None,
    }


def _value_row(one: StoredValue) -> ConfigValueRow:
    is_placed = one.file is not None
    return {
        "key": one.key,
        "value": one.value,
        "origin": f"{one.file}:{one.line}" if is_placed else ORIGINS.get(one.layer, DEFAULT),
        "file": one.file,
        "line": one.line if is_placed else None,
        "column": one.column if is_placed else None,
        "layer": one.layer,
    }


def _execution_row(job: Job, one: Begun) -> SettingsOfRow:
    return {
        "id": generate_execution_id(job.id, one.epoch),
        "epoch": one.epoch,
        "worker": one.worker,
        "started_at": timestamp(one.at),
        "hash": None if one.settings is None else one.settings.sha256,
    }
