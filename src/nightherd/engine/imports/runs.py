"""Adopting the workflows of another tool: raw copies, jobs with their journals, runs with their nodes and gates.

What a row names is there before it: copies and journals, then sessions and jobs, then runs. Ids follow from those of
the other tool, so an import that was killed is completed by the next one, and a second one changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from nightherd.engine.imports.context import (
    ForeignJob,
    ImportContext,
    OnProgress,
    Report,
    hashed_text,
    session_id_for,
)
from nightherd.engine.imports.copies import copy_files, keep_aside, mark_copies
from nightherd.engine.imports.foreign_runs import (
    ForeignExecution,
    ForeignRun,
    ForeignSession,
    ForeignWorkflows,
)
from nightherd.engine.imports.jobs import JobAdoption, adopt_rows, mask
from nightherd.engine.imports.run_rows import approval_rows, run_rows
from nightherd.engine.imports.switches import import_switches
from nightherd.engine.imports.transcripts import NAME_LIMIT
from nightherd.model.change import Row
from nightherd.model.ids import JobId, SessionId, generate_job_id
from nightherd.model.inbox.item import InboxItem
from nightherd.model.journal.recollection import RebuiltRows
from nightherd.model.journal.system import Header
from nightherd.model.sessions.changes import RefreshAdopted
from nightherd.model.sessions.session import Session, SessionMode, SessionStatus
from nightherd.model.sessions.shared import with_job
from nightherd.model.text import shorten
from nightherd.model.units import MicroUsd
from nightherd.model.workflows.run import RunId, generate_run_id

BATCH = 50
"""Jobs, or runs and approvals, that share one commit of their rows."""


async def import_workflows(
    found: ForeignWorkflows, context: ImportContext, report: Report, on_progress: OnProgress
) -> None:
    """Take over what is not here yet. What is here under the same name with other content is left alone."""
    copied = copy_files(found, context, report)
    adoption = WorkflowAdoption(found, context, report)
    for session in found.sessions:
        for name in adoption.take_session(session):
            on_progress(name)
        if adoption.jobs.batch.jobs >= BATCH:
            await adoption.jobs.record()
        keep_aside(found, context)
    await adoption.jobs.record()
    for run in found.runs:
        await adoption.take_run(run)
        keep_aside(found, context)
        on_progress(run.id)
    await adoption.record_runs()
    await import_switches(found, context, report)
    keep_aside(found, context)
    mark_copies(found, copied, context)


class WorkflowAdoption:
    """Takes over sessions with their executions, and then runs; rows a batch at a time."""

    def __init__(self, found: ForeignWorkflows, context: ImportContext, report: Report) -> None:
        self._found = found
        self._tool = found.tool
        self._context = context
        self._report = report
        self._job_ids: dict[JobId, str] = {}
        self._run_ids: dict[str, RunId] = {}
        self._rows: list[Row] = []
        self._counts: dict[str, int] = {}
        self._by_execution: dict[str, JobId] = {}
        self.jobs = JobAdoption(found.tool, context, report)
        taken: set[RunId] = set()
        for run, at in found.run_starts.items():
            self._run_ids[run] = self._run_id(run, at, taken)
            taken.add(self._run_ids[run])

    def _key(self, id: str) -> str:
        """What marks a row as made from the foreign one by that id."""
        return f"{self._tool}:{id}"

    def _run_id(self, run: str, at: datetime, taken: set[RunId]) -> RunId:
        salt = 0
        while True:
            run_id = generate_run_id(at, hashed_text(f"{self._tool}\n{run}\n{salt}"))
            known = self._context.reader.find_run(run_id)
            is_ours = known is None or known.dedupe_key == self._key(run)
            if is_ours and run_id not in taken:
                return run_id
            salt += 1

    def _job_id(self, execution: ForeignExecution) -> JobId:
        salt, key = 0, self._key(execution.id)
        while True:
            text = hashed_text(f"{self._tool}\n{execution.id}\n{salt}")
            job_id = generate_job_id(execution.started_at, text)
            known = self._context.reader.find_job(job_id)
            is_ours = known is None or known.dedupe_key == key
            if is_ours and self._job_ids.setdefault(job_id, execution.id) == execution.id:
                return job_id
            salt += 1

    # -- executions ------------------------------------------------------------------------------

    def take_session(self, found: ForeignSession) -> Iterator[str]:
        """Write the journals of the session's jobs and plan all rows; yields the name of each execution."""
        session: Session | None = None
        new: Session | None = None
        for execution in found.executions:
            if session is None and found.id is not None:
                session = self._session(found.id, found, execution)
            job = self._job(execution, session)
            self._by_execution[execution.id] = job.id
            rows = self.jobs.take(job, session)
            if rows is not None and rows.session is not None:
                new = with_job(new, rows.session)
            yield execution.id
        if session is not None and new is not None:
            self._plan_session(session, new)

    def _session(self, id: str, found: ForeignSession, first: ForeignExecution) -> Session:
        """The session as it is here, or as it will be."""

        def is_same(known: Session) -> bool:
            return known.agent == self._tool and known.runtime_session_id == id

        session_id: SessionId = session_id_for(self._tool, id, is_same, self._context)
        known = self._context.reader.find_session(session_id)
        if known is not None:
            return known
        return Session(
            id=session_id,
            agent=self._tool,
            mode=SessionMode.FRESH_PER_JOB,
            status=SessionStatus.PAUSED,
            runtime_type=self._tool,
            runtime_session_id=id,
            working_directory=found.working_directory,
            created_at=first.started_at,
            last_active_at=first.started_at,
            name=shorten(mask(" ".join(found.name.split()), self._context) or id, NAME_LIMIT),
            imported_from=found.source,
        )

    def _plan_session(self, session: Session, new: Session) -> None:
        """The session's row, with what its new jobs add to it."""
        known_jobs = session.job_count
        whole = replace(
            session,
            last_active_at=max(session.last_active_at, new.last_active_at),
            job_count=session.job_count + new.job_count,
            turn_count=session.turn_count + new.turn_count,
            message_count=session.message_count + new.message_count,
            cost_microusd=MicroUsd(session.cost_microusd + new.cost_microusd),
            token_estimate=new.token_estimate or session.token_estimate,
        )
        if session.number:
            self.jobs.batch.grown.append(RefreshAdopted(session=whole, known_jobs=known_jobs))
        else:
            self.jobs.batch.rows.append(whole)
            self._report.count("sessions")

    def _job(self, execution: ForeignExecution, session: Session | None) -> ForeignJob:
        run_id = self._run_ids.get(execution.run) if execution.run is not None else None

        def amend(rows: RebuiltRows) -> RebuiltRows:
            return _amended(rows, execution, run_id, self._context)

        return ForeignJob(
            source=execution.source,
            header=Header(
                id=self._job_id(execution),
                agent=self._tool,
                trigger_type=execution.trigger_type.value,
                trigger_id=mask(execution.trigger_id, self._context),
                created_at=execution.started_at,
                dedupe_key=self._key(execution.id),
            ),
            prompt="",
            exit_reason=execution.exit_reason,
            events=execution.events,
            finished_at=execution.finished_at,
            runtime_session_id=None if session is None else session.runtime_session_id,
            summary=execution.output_text,
            usage=execution.usage,
            amend=amend,
        )

    # -- runs ------------------------------------------------------------------------------------

    async def take_run(self, run: ForeignRun) -> None:
        """Plan the rows of a run and of what people were asked by it."""
        run_id = self._run_ids[run.id]
        rows = run_rows(
            run_id, self._key(run.id), run, self._by_execution, self._tool, self._context
        )
        known = self._context.reader.find_run(run_id)
        if known is None:
            self._rows += rows
            self._count("runs")
        elif known.updated_at == run.updated_at:
            self._report.unchanged += 1
        else:
            self._report.skip(run.source, f"it is {run_id} here, as it was when it was imported")
        for approval in run.approvals:
            asked = approval_rows(run_id, run, approval, self._tool, self._context)
            item = next(row for row in asked if isinstance(row, InboxItem))
            if self._context.reader.find_item(item.id) is None:
                self._rows += asked
                self._count("approvals")
            else:
                self._report.unchanged += 1
        if sum(self._counts.values()) >= BATCH:
            await self.record_runs()

    def _count(self, kind: str) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1

    async def record_runs(self) -> None:
        """Record the rows planned since the last time."""
        rows, self._rows = self._rows, []
        counts, self._counts = self._counts, {}
        if rows and self._context.writers is not None:
            await adopt_rows(rows, self._tool, self._context.writers)
        for kind, number in counts.items():
            self._report.count(kind, number)


def _amended(
    rows: RebuiltRows, execution: ForeignExecution, run_id: RunId | None, context: ImportContext
) -> RebuiltRows:
    """The rows with what only the other tool's own row says."""
    node = f"{run_id}/{execution.node}" if run_id is not None and execution.node else None
    turns = rows.job.turns or execution.turns or 0
    executions = [
        replace(
            row,
            skill=execution.skill,
            repo=execution.repo,
            issue_number=execution.issue_number,
            turns=turns,
            duration_ms=row.duration_ms if execution.duration_ms is None else execution.duration_ms,
            api_duration_ms=execution.api_duration_ms,
            stop_reason=execution.stop_reason,
            workflow_run_id=run_id,
            output_text=mask(execution.output_text, context),
        )
        for row in rows.executions
    ]
    job = replace(rows.job, turns=turns, workflow_run_id=run_id, node_id=node)
    return replace(rows, job=job, executions=tuple(executions))
