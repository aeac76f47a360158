"""OpenFleet: a fleet at hand: submit and execute jobs, resume and fork sessions, ask what there is; RunnerResult: how a job came out."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nightherd.config.acceptance import Admission
from nightherd.config.discovery import find_fleet_file
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.fork import AtLastTurn, AtMessage
from nightherd.engine.operations.perform import perform
from nightherd.engine.operations.requests import Cancel as CancelRequest
from nightherd.engine.operations.requests import ForkOf, InSession, OwnSession, Resume, Submit
from nightherd.engine.operations.wait import run_and_wait
from nightherd.errors import ConfigNotFoundError, RefusedError, RunnerError, UsageError
from nightherd.library.cancel import Cancel
from nightherd.library.inbox import Inbox
from nightherd.library.runs import WorkflowRuns
from nightherd.library.workspaces import Workspaces
from nightherd.model.agents.mcp import InjectedMcpServerDef
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.failure import RunnerErrorDetails, details_of, error_of
from nightherd.model.jobs.job import Job, JobQuery, JobStatus, TriggerType
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.jobs.options import JobOptions
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, payload_of
from nightherd.model.journal.system import Denied, HookRan, Warned
from nightherd.model.sessions.session import Session, SessionQuery
from nightherd.ports import Journals, StateReader
from nightherd.views.jobs.jobs import find_job_id, get_job, observe_job, observe_jobs
from nightherd.views.jobs.troubles import troubles_of
from nightherd.views.sessions.conversation import find_session_id
from nightherd.views.sessions.sessions import get_session
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.reloads import admit_answered
from nightherd.wiring.running import open_worker, rescuer
from nightherd.wiring.runtimes import check_runtime
from nightherd.wiring.stores import system_clock

LOOK_BACK = 64
"""Events at the end of a record among which its error is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerResult:
    """How it came out. A job that is suspended is no success, and has no error either."""

    success: bool
    job_id: JobId
    job: ObservedJob
    session_id: SessionId | None = None
    runtime_session_id: str | None = None
    session_note: str | None = None
    """Why it did not continue in the session it would have had; None when it did, or there was none."""
    summary: str | None = None
    error: RunnerError | None = None
    """What a caller may raise."""
    error_details: RunnerErrorDetails | None = None
    duration_seconds: float | None = None
    denials: tuple[Denied, ...] = ()
    """Every call that was not allowed, in order."""
    failed_hooks: tuple[HookRan, ...] = ()
    """Every hook that failed, in order."""


def result_of(job: ObservedJob, reader: StateReader, journals: Journals) -> RunnerResult:
    """The result of a job as it stands."""
    texts = reader.find_texts(job.id)
    took = job.worked if job.finished_at is not None else None
    last = journals.last(job.id, LOOK_BACK) if job.error is not None else ()
    troubles = troubles_of(job, journals)
    return RunnerResult(
        success=job.status is JobStatus.COMPLETED,
        job_id=job.id,
        job=job,
        session_id=job.session_id,
        runtime_session_id=job.runtime_session_id,
        session_note=texts.session_note if texts is not None else None,
        summary=(texts.summary if texts is not None else None) or job.summary,
        error=error_of(job, _unread(last)),
        error_details=details_of(job, _stack(last)),
        duration_seconds=None if took is None else took.total_seconds(),
        denials=troubles.denials,
        failed_hooks=troubles.failed_hooks,
    )


def _stack(last: Sequence[Event]) -> str | None:
    """Where in a program of ours it went wrong, if it did."""
    stacks = [event.stack for event in last if isinstance(event, ErrorEvent) and event.stack]
    return stacks[-1] if stacks else None


def _unread(last: Sequence[Event]) -> object:
    """Return the last output that could not be parsed, in bounded length."""
    payloads = [payload_of(event) for event in last if isinstance(event, SystemEvent)]
    raws = [payload.raw for payload in payloads if isinstance(payload, Warned) and payload.raw]
    return raws[-1] if raws else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A piece of work asked of an agent, and in which session."""

    agent: str
    prompt: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    resume: str | None = None
    """A session, ours or the runtime's, by a unique prefix: the work continues in it."""
    fork: str | None = None
    """A session that the work begins with a branch of."""
    at_message: int | None = None
    """For `fork`: its last message that counts; None for all."""
    branch: bool = False
    """Run it in a branch of the session it would join (or of `resume`), at the last complete turn."""
    if_held: Literal["wait", "refuse"] = "wait"
    """What to do where a suspended job holds the session and waits for a person: queue the job, or refuse it."""
    channel: str | None = None
    priority: int = 0
    dedupe_key: str | None = None
    trigger_type: TriggerType = TriggerType.MANUAL
    trigger_id: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)


class OpenFleet(WorkflowRuns):
    """What a program can do with a fleet while it is open. Made by `open_fleet`."""

    def __init__(self, admission: Admission, state_dir: Path, context: WorkerContext) -> None:
        super().__init__(admission.fleet, state_dir, context, rescuer(context, admission.fleet))
        self.pending = admission.pending_texts
        """What the files give agents beyond that, and no person has accepted yet."""
        self.inbox = Inbox(context, state_dir, self._rescue)
        """What waits for a person."""
        self.workspaces = Workspaces(context, state_dir)
        """The directories that jobs work in, and what jobs changed."""

    async def submit(self, order: Order) -> Job:
        """Record the job and return once nothing can lose it; some worker runs it."""
        return (await perform(self._request(order), self._context, rescue=self._rescue)).job

    def _request(self, order: Order) -> Submit:
        return Submit(
            agent=order.agent,
            prompt=order.prompt,
            inputs=dict(order.inputs),
            options=JobOptions.from_document(order.overrides),
            session=self._session(order),
            priority=order.priority,
            trigger_type=order.trigger_type,
            trigger_id=order.trigger_id,
            refuses_held=order.if_held == "refuse",
            dedupe_key=order.dedupe_key,
        )

    def _session(self, order: Order) -> OwnSession | InSession | ForkOf:
        """The session that the order names."""
        reader = self._context.reader
        if order.resume is not None and order.fork is not None:
            raise UsageError("a job is resumed or forked, not both")
        if order.branch and order.fork is not None:
            raise UsageError("fork and branch both fork the session; use only one")
        if order.fork is not None:
            at = None if order.at_message is None else AtMessage(number=order.at_message)
            return ForkOf(session_id=find_session_id(reader, order.fork), at=at)
        if order.resume is None:
            return OwnSession(channel=order.channel, is_branch=order.branch)
        session_id = find_session_id(reader, order.resume)
        if order.branch:
            return ForkOf(session_id=session_id, at=AtLastTurn())
        return InSession(session_id=session_id)

    async def execute(
        self,
        order: Order,
        *,
        injected_servers: Sequence[InjectedMcpServerDef] = (),
        on_job_created: Callable[[Job], None] = lambda job: None,
        on_message: Callable[[Event], None] = lambda event: None,
        cancel: Cancel | None = None,
    ) -> RunnerResult:
        """Submit the job and see it done, here or by another worker; how it came out.

        `on_job_created` is called once the job is durable and before it runs, `on_message` with each event
        after it is on record.
        """
        runtime = agents_of(self._context).get(order.agent).runtime
        if injected_servers and not runtime.takes_servers:
            raise RefusedError(f"runtime {runtime.name!r} takes no injected servers")
        return await self._run(
            self._request(order), on_message, cancel, on_job_created, injected_servers
        )

    async def resume(
        self,
        job: str,
        *,
        prompt: str | None = None,
        on_message: Callable[[Event], None] = lambda event: None,
        cancel: Cancel | None = None,
    ) -> RunnerResult:
        """Go on with a job: the same one when it was suspended, a new one in its session when it had ended."""
        request = Resume(job_id=find_job_id(self._context.reader, job), prompt=prompt)
        return await self._run(request, on_message, cancel)

    async def cancel(self, job: str) -> Job:
        """End a job, wherever it runs; `RefusedError` when it has ended."""
        request = CancelRequest(job_id=find_job_id(self._context.reader, job))
        return await perform(request, self._context, rescue=self._rescue)

    def job(self, reference: str) -> ObservedJob:
        """One job, by its id, a unique prefix, `@last` or `@last-failed`; `lost` when its worker is gone."""
        reader = self._context.reader
        return self._observed(get_job(reader, find_job_id(reader, reference)))

    def jobs(self, query: JobQuery | None = None) -> Sequence[ObservedJob]:
        """Jobs, newest first; `lost` when their worker is gone."""
        reader, now = self._context.reader, self._context.clock.now()
        return observe_jobs(reader, reader.list_jobs(query or JobQuery()), is_at_work, now)

    def session(self, reference: str) -> Session:
        """One session, by our id or the runtime's, or a unique prefix."""
        reader = self._context.reader
        return get_session(reader, find_session_id(reader, reference))

    def sessions(self, query: SessionQuery | None = None) -> Sequence[Session]:
        """Sessions, newest first."""
        return self._context.reader.list_sessions(query or SessionQuery())

    async def _run(
        self,
        request: Submit | Resume,
        on_message: Callable[[Event], None],
        cancel: Cancel | None,
        on_job: Callable[[Job], None] = lambda job: None,
        injected: Sequence[InjectedMcpServerDef] = (),
    ) -> RunnerResult:
        agent = agents_of(self._context).find(request, self._context.reader)
        check_runtime(agent.runtime.name)
        ended = await run_and_wait(
            request,
            self._context,
            rescue=self._rescue,
            stopper=(cancel or Cancel()).stopper,
            on_job=on_job,
            on_event=on_message,
            injected=injected,
        )
        return result_of(self._observed(ended), self._context.reader, self._context.journals)

    def _observed(self, job: Job) -> ObservedJob:
        context = self._context
        return observe_job(context.reader, job, is_at_work, context.clock.now())


@asynccontextmanager
async def open_fleet(
    config: str | Path | None = None,
    *,
    state_dir: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> AsyncIterator[OpenFleet]:
    """The fleet of `config`, else of the fleet file found upward from `cwd`; everything is closed afterwards.

    The state directory stands beside the fleet file unless `state_dir` says otherwise.
    """
    variables = dict(os.environ) if environ is None else environ
    here = Path.cwd() if cwd is None else Path(cwd)
    file = Path(config) if config is not None else find_fleet_file(here)
    if file is None:
        raise ConfigNotFoundError(f"there is no fleet file in {here} or above it")
    named = Path(state_dir) if state_dir is not None else None
    declared = load_fleet(file, environ=variables, cwd=here, state_dir=named).fleet
    state = named or Path(declared.file).parent / ".nightherd"
    # Permissions that no person has accepted yet are left out, as everywhere that agents are run.
    admission = admit_answered(declared, state, at=system_clock().now())
    async with open_worker(state, admission.fleet, variables) as context:
        yield OpenFleet(admission, state, context)
