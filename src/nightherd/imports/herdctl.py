"""herdctl's state directory: `state.yaml`, `sessions/*.json`, `jobs/*.yaml` with `jobs/*.jsonl`.

Every record is read by itself: one that cannot be read is put on the report and costs no other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from nightherd.engine.imports.context import ForeignJob, Report, Unreadable
from nightherd.engine.imports.jobs import ForeignFleet
from nightherd.errors import InvalidValueError, NotFoundError
from nightherd.files.reading import ReadFailed, ReadOk, safe_read_json, safe_read_yaml
from nightherd.imports.herdctl_events import read_events, usage_of
from nightherd.imports.lines import Fields, check_agent, opened, reason_of, shown
from nightherd.model.ids import JOB_ID, SessionId, check_name
from nightherd.model.jobs.job import STATUS_OF_EXIT, ExitReason, JobStatus, TriggerType
from nightherd.model.journal.system import Header
from nightherd.model.schedules.schedule import ScheduleState, ScheduleStatus, schedule_id
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.model.units import FREE, MicroUsd, parse_usd
from nightherd.model.usage import NOTHING_USED, Usage
from nightherd.next_step import Action, NextStep

TOOL = "herdctl"
DIRECTORY = ".herdctl"
DAY = len("job-YYYY-MM-DD")
MARKS = ("state.yaml", "jobs", "sessions")
"""What makes a directory one of herdctl's."""


class Ended(StrEnum):
    """The statuses of a job that has ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Unfinished(StrEnum):
    """The statuses of a job that has not."""

    PENDING = "pending"
    RUNNING = "running"


EXIT_OF = {
    Ended.COMPLETED: ExitReason.SUCCESS,
    Ended.FAILED: ExitReason.ERROR,
    Ended.CANCELLED: ExitReason.CANCELLED,
}


class HerdctlFleet(ForeignFleet, frozen=True, kw_only=True):
    """What was found, and how many jobs there are to go through."""

    job_total: int


def read_fleet(given: Path, report: Report) -> HerdctlFleet:
    """herdctl's records below `given`, which is its state directory or the directory that is in.

    Jobs are read as they are gone through. `NotFoundError` when there is nothing of herdctl's.
    """
    root = _locate(given)
    files = _children(root / "jobs", report)
    paths = [path for path in files if path.suffix == ".yaml"]
    known = {path.stem for path in paths}
    for path in files:
        if path.suffix == ".jsonl" and path.stem not in known:
            report.skip(shown(path), "there is no job file beside it")
    return HerdctlFleet(
        tool=TOOL,
        jobs=_jobs(paths, live_process(root), report),
        sessions=tuple(_sessions(root / "sessions", report)),
        schedules=tuple(_schedules(root / "state.yaml", report)),
        schedules_at=_written_at(root / "state.yaml"),
        job_total=len(paths),
    )


def _locate(given: Path) -> Path:
    for root in (given / DIRECTORY, given):
        if root.is_dir() and any((root / mark).exists() for mark in MARKS):
            return root
    raise NotFoundError(
        f"{shown(given)} is not a state directory of herdctl and contains none",
        next_step=NextStep(Action.IMPORT_HERDCTL),
    )


def live_process(root: Path) -> int | None:
    """The process that still works on this directory, if there is one."""
    try:
        pid = int((root / "herdctl.pid").read_text("utf-8").strip())
    except (OSError, ValueError):
        return None
    return pid if pid > 0 and _is_herdctl(pid) else None


def _is_herdctl(pid: int) -> bool:
    """Whether a process has this number that may be herdctl: numbers are given again one day."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # of another user, so it exists
    except (OSError, OverflowError):
        return False
    try:
        return TOOL.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


def _jobs(paths: list[Path], pid: int | None, report: Report) -> Iterator[ForeignJob]:
    """The jobs in the order they began; no more than one day's are held at a time."""
    for _, day in groupby(paths, key=lambda path: path.name[:DAY]):
        jobs = [job for path in day if (job := _job(path, pid, report)) is not None]
        yield from sorted(jobs, key=lambda job: (job.header.created_at, job.id))


def _job(path: Path, pid: int | None, report: Report) -> ForeignJob | None:
    fields = _read(path, safe_read_yaml, report)
    if fields is None:
        return None
    try:
        if fields.find_text("status") in list(Unfinished) and pid is not None:
            report.skip(shown(path), f"herdctl is running on it (process {pid}); stop it first")
            return None
        return _job_of(fields, path)
    except ValueError as error:
        report.unreadable.append(Unreadable(file=shown(path), reason=reason_of(error)))
        return None


def _job_of(fields: Fields, path: Path) -> ForeignJob:
    if fields.text("id") != path.stem or JOB_ID.fullmatch(path.stem) is None:
        raise ValueError(
            f"id {fields.text('id')[:80]!r} is not a job id, or differs from the file name"
        )
    parent = fields.find_text("forked_from")
    return ForeignJob(
        source=shown(path),
        header=Header(
            id=path.stem,
            agent=fields.name("agent"),
            trigger_type=fields.word("trigger_type", TriggerType).value,
            created_at=fields.at("started_at"),
            schedule=fields.find_text("schedule"),
            forked_from=parent if parent and JOB_ID.fullmatch(parent) else None,
        ),
        prompt=fields.find_text("prompt") or "",
        exit_reason=_exit_reason(fields),
        finished_at=fields.find_at("finished_at"),
        runtime_session_id=fields.find_text("session_id") or None,
        summary=fields.find_text("summary"),
        usage=_usage(Fields(fields.part("usage"))),
        events=partial(read_events, path.with_suffix(".jsonl")),
    )


def _exit_reason(fields: Fields) -> ExitReason | None:
    """Why it ended, None when it never did. Where reason and status disagree, the status counts."""
    if fields.find_word("status", Unfinished) is not None:
        return None
    status = fields.word("status", Ended)
    reason = fields.find_word("exit_reason", ExitReason)
    if reason is not None and STATUS_OF_EXIT[reason] is JobStatus(status.value):
        return reason
    return EXIT_OF[status]


def _usage(fields: Fields) -> Usage | None:
    """Tokens of all models, and the cost if there is one."""
    total = NOTHING_USED
    for part in fields.part("per_model").values():
        total += (usage_of(part) if isinstance(part, Mapping) else None) or NOTHING_USED
    cost = fields.raw("total_cost_usd")
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        total += Usage(cost_microusd=_micro(cost))
    return total if total != NOTHING_USED else None


def _micro(cost: float) -> MicroUsd:
    try:
        return parse_usd(cost)
    except InvalidValueError:
        return FREE


def _sessions(folder: Path, report: Report) -> Iterator[Session]:
    for path in _children(folder, report):
        if path.suffix != ".json":
            continue
        fields = _read(path, safe_read_json, report)
        try:
            if fields is not None:
                yield _session(fields, path)
        except ValueError as error:
            report.unreadable.append(Unreadable(file=shown(path), reason=reason_of(error)))


def _session(fields: Fields, path: Path) -> Session:
    created_at = fields.at("created_at")
    return Session(
        id=SessionId(""),
        agent=fields.name("agent_name"),
        mode=SessionMode.PERSISTENT,
        status=SessionStatus.PAUSED,
        runtime_type=fields.find_text("runtime_type") or "sdk",
        working_directory=fields.find_text("working_directory") or "",
        created_at=created_at,
        last_active_at=fields.find_at("last_used_at") or created_at,
        runtime_session_id=fields.text("session_id"),
        docker_enabled=fields.is_set("docker_enabled"),
        operation=fields.find_text("mode") or "autonomous",
        imported_from=shown(path),
        job_count=fields.count("job_count"),
    )


def _schedules(path: Path, report: Report) -> Iterator[ScheduleState]:
    if not path.exists() and not path.is_symlink():
        return
    fields = _read(path, safe_read_yaml, report, empty={})
    agents = fields.part("agents") if fields is not None else {}
    for agent, value in agents.items():
        for name, state in _schedules_of(value).items():
            try:
                yield _schedule(str(agent), str(name), Fields(state))
            except ValueError as error:
                where = f"schedule {agent}/{name}: {reason_of(error)}"
                report.unreadable.append(Unreadable(file=shown(path), reason=where))


def _written_at(path: Path) -> datetime | None:
    """When a file was written last; None when it is not there."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return None


def _schedules_of(value: Any) -> Mapping[str, Any]:
    return Fields(value).part("schedules") if isinstance(value, Mapping) else {}


def _schedule(agent: str, name: str, fields: Fields) -> ScheduleState:
    """One that ran is idle: nothing of herdctl's runs here. One that was disabled stays so."""
    status = fields.find_word("status", ScheduleStatus)
    is_disabled = status is ScheduleStatus.DISABLED
    return ScheduleState(
        id=schedule_id(check_agent(agent), check_name(name)),
        agent=agent,
        name=name,
        status=ScheduleStatus.DISABLED if is_disabled else ScheduleStatus.IDLE,
        last_run_at=fields.find_at("last_run_at"),
        last_error=fields.find_text("last_error"),
    )


def _read(
    path: Path,
    read: Callable[[Path], ReadOk[Any] | ReadFailed],
    report: Report,
    *,
    empty: object = None,
) -> Fields | None:
    """The fields of a file; None, and a line on the report, when there are none."""
    try:
        with opened(path):
            pass  # a pipe in the file's place would be waited for
        found = read(path)
        if isinstance(found, ReadOk):
            return Fields(found.data if found.data is not None else empty)
        raise ValueError(found.error.message)
    except (OSError, ValueError) as error:
        report.unreadable.append(Unreadable(file=shown(path), reason=reason_of(error)))
        return None


def _children(directory: Path, report: Report) -> list[Path]:
    if not directory.exists():
        return []
    try:
        return sorted(path for path in directory.iterdir() if not path.name.startswith("."))
    except OSError as error:
        report.unreadable.append(Unreadable(file=shown(directory), reason=reason_of(error)))
        return []
