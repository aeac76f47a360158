"""Executions of Last Light: what each was, how it ended, and which lines of its session's log are its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from nightherd.decoding import convert
from nightherd.engine.imports.context import Unreadable
from nightherd.engine.imports.foreign_runs import Events, ForeignExecution, ForeignSession
from nightherd.imports.claude import ClaudeFile
from nightherd.imports.lastlight_database import EXECUTIONS, Tables
from nightherd.imports.lastlight_events import SessionLog
from nightherd.imports.lastlight_rows import Columns, Damage, Row, plain
from nightherd.model.jobs.job import ExitReason, TriggerType
from nightherd.model.jobs.outcome import EXIT_OF_CODE
from nightherd.model.journal.event import ErrorEvent, Event
from nightherd.model.units import FREE, MicroUsd
from nightherd.model.usage import NOTHING_USED, Usage

TRIGGERS: Mapping[str, TriggerType] = {
    "webhook": TriggerType.WEBHOOK,
    "cron": TriggerType.SCHEDULE,
    "chat": TriggerType.CHAT,
    "api": TriggerType.MANUAL,
}
"""What its words for triggers are here; `EXECUTION_WORD` is the other way round."""
CODES: Mapping[str, str] = {
    "error_timeout": "timeout",
    "error_aborted": "cancelled",
    "error_max_rounds": "max_turns",
    "skipped": "cancelled",
}
"""The codes of its stop reasons that mean another exit reason than `error`."""
NOT_MET = "condition_not_met"
"""The stop reason of a check that ran and said no: no failure."""
NOBODY = "no reason was recorded"
BRIEF = (
    "started_at",
    "id",
    "workflow_run_id",
    "skill",
    "session_id",
    "trigger_type",
    "duration_ms",
    "cost_usd",
)


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan of an import needs to know of an execution."""

    place: int
    id: str
    run: str | None
    label: str
    session: str | None
    started_at: datetime
    trigger: TriggerType | None
    worked_ms: int = 0
    cost: MicroUsd = FREE


def label_of(skill: str) -> str:
    """Return the phase that `WORKFLOW:PHASE` names; empty for anything else."""
    return skill.partition(":")[2]


class ExecutionIndex:
    """Every execution in the order of starting, by session and by run."""

    def __init__(self, tables: Tables) -> None:
        self.sessions: dict[str, list[Brief]] = {}
        self.runs: dict[str, list[Brief]] = {}
        self.order: list[Brief | int] = []
        """Each execution; of one that cannot be planned with, only its place."""
        for place, row in tables.places(EXECUTIONS, BRIEF):
            brief = _brief(place, Columns(row))
            self.order.append(brief if brief is not None else place)
            if brief is None:
                continue
            if brief.session is not None:
                self.sessions.setdefault(brief.session, []).append(brief)
            if brief.run is not None:
                self.runs.setdefault(brief.run, []).append(brief)
        for briefs in (*self.sessions.values(), *self.runs.values()):
            briefs.sort(key=lambda brief: (brief.started_at, brief.id))


def _brief(place: int, columns: Columns) -> Brief | None:
    try:
        return Brief(
            place=place,
            id=columns.text("id"),
            run=columns.find_text("workflow_run_id") or None,
            label=label_of(columns.text("skill")),
            session=columns.find_text("session_id") or None,
            started_at=columns.at("started_at"),
            trigger=TRIGGERS.get(columns.text("trigger_type")),
            worked_ms=columns.find_count("duration_ms") or 0,
            cost=columns.cost("cost_usd") or FREE,
        )
    except ValueError:
        return None  # reported when its turn comes


class Executions:
    """Reads executions as they are gone through: those of one session together, in the order of its first."""

    def __init__(
        self,
        tables: Tables,
        index: ExecutionIndex,
        logs: Mapping[str, ClaudeFile],
        damage: Damage,
        runs: Collection[str],
        nodes: Mapping[str, str],
    ) -> None:
        self._tables = tables
        self._index = index
        self._logs = logs
        self._damage = damage
        self._runs = runs
        self._nodes = nodes

    def sessions(self) -> Iterator[ForeignSession]:
        """Yield every session with its executions, and each execution without one by itself."""
        seen: set[str] = set()
        for brief in self._index.order:
            if isinstance(brief, int) or brief.session is None:
                place = brief if isinstance(brief, int) else brief.place
                yield ForeignSession(id=None, executions=self._read([place], None))
            elif brief.session not in seen:
                seen.add(brief.session)
                yield self._session(brief.session, brief)

    def _session(self, session: str, first: Brief) -> ForeignSession:
        briefs, file = self._index.sessions[session], self._logs.get(session)
        log = None
        if file is not None:
            log = SessionLog(file.path, [brief.started_at for brief in briefs])
        elif self._logs:
            self._damage.report.skip(f"session {session}", "there is no event log of it")
        slug = file.path.parent.name if file is not None else ""
        row = self._tables.row(EXECUTIONS, first.place)
        skill = plain(row.values.get("skill")) if row is not None else None
        return ForeignSession(
            id=session,
            executions=self._read([brief.place for brief in briefs], log),
            source=file.source if file is not None else self._damage.file,
            name=skill if isinstance(skill, str) else "",
            working_directory=slug.replace("-", "/"),
        )

    def _read(self, places: Sequence[int], log: SessionLog | None) -> Iterator[ForeignExecution]:
        for part, place in enumerate(places):
            row = self._tables.row(EXECUTIONS, place)
            if row is None:
                continue
            try:
                yield self._execution(row, None if log is None else partial(log.events, part))
            except ValueError as error:
                self._damage.row(row, error)

    def _execution(self, row: Row, said: Events | None) -> ForeignExecution:
        columns = Columns(row)
        word, id = columns.text("trigger_type"), columns.text("id")
        if word not in TRIGGERS:
            raise ValueError(f"trigger_type is {word[:80]!r}, which is not known")
        run = columns.find_text("workflow_run_id") or None
        usage, stop = _usage(columns), columns.find_text("stop_reason")
        reason, error = _ending(columns, stop, usage)
        source = f"{self._damage.file}: {row.record}"
        execution = ForeignExecution(
            id=id,
            source=source,
            trigger_type=TRIGGERS[word],
            trigger_id=columns.text("trigger_id"),
            skill=columns.text("skill"),
            started_at=columns.at("started_at"),
            finished_at=columns.find_at("finished_at"),
            exit_reason=reason,
            events=partial(_events, said, error),
            run=run,
            node=self._nodes.get(id),
            session=columns.find_text("session_id") or None,
            repo=qualified(columns),
            issue_number=columns.find_count("issue_number"),
            turns=columns.find_count("turns"),
            duration_ms=columns.find_count("duration_ms"),
            api_duration_ms=columns.find_count("api_duration_ms"),
            stop_reason=stop,
            usage=usage if error is None else None,
            output_text=columns.find_text("output_text"),
        )
        if run is not None and run not in self._runs:
            self._damage.report.skip(source, f"it is imported without its run {run}")
        return execution


def qualified(columns: Columns) -> str | None:
    """Return the repository with its owner, where that is known."""
    owner, repo = columns.find_text("owner"), columns.find_text("repo")
    return f"{owner}/{repo}" if owner and repo and "/" not in repo else repo


def _usage(columns: Columns) -> Usage | None:
    cost = columns.cost("cost_usd")
    names = (
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    )
    counts = {name: columns.find_count(name) for name in names}
    given = {name: count for name, count in counts.items() if count is not None}
    if cost is None and not given:
        return None
    usage = convert(given, Usage)
    return usage if cost is None else msgspec.structs.replace(usage, cost_microusd=cost)


def _ending(
    columns: Columns, stop: str | None, usage: Usage | None
) -> tuple[ExitReason | None, ErrorEvent | None]:
    """How it ended, and what its journal says last when that is no success."""
    success, message = columns.find_flag("success"), columns.find_text("error")
    if success is None or columns.find_at("finished_at") is None:
        return None, None
    if success or stop == NOT_MET:
        return ExitReason.SUCCESS, None
    code = CODES.get(stop or "", stop)
    used = msgspec.to_builtins(usage) if usage is not None and usage != NOTHING_USED else None
    error = ErrorEvent(
        message=message or stop or NOBODY,
        code=code,
        extra={"usage": used} if used is not None else None,
    )
    return EXIT_OF_CODE.get(code or "", ExitReason.ERROR), error


def _events(
    said: Events | None, error: ErrorEvent | None, on_unreadable: Callable[[Unreadable], None]
) -> Iterator[Event]:
    if said is not None:
        yield from said(on_unreadable)
    if error is not None:
        yield error
