"""Attend: be there while a job is done, by this process or by another worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count

import anyio
from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.oversight import Stopper, oversee
from nightherd.engine.jobs.recorder import OnEvent
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.new_job import Submitted
from nightherd.engine.operations.perform import perform
from nightherd.engine.operations.requests import NewJobRequest
from nightherd.engine.work.on_request import settle_job
from nightherd.errors import FencedError, NightherdError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import InjectedMcpServerDef
from nightherd.model.change import EndWorker
from nightherd.model.ids import JobId
from nightherd.model.jobs.changes import CancelJob, ResumeJob
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.journal.event import Event
from nightherd.model.worker import WorkerStatus
from nightherd.ports import Journals
from nightherd.views.jobs.jobs import get_job

LOOK_AGAIN_S = 0.2
LOOKS_PER_RESCUE = 5
"""While it waits for others, it looks whether they are still there."""

OnWait = Callable[[str], None]
Rescue = Callable[[], Awaitable[object]]


class _Viewer:
    """Shows each event once, whichever worker recorded it."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._seen = 0

    def __call__(self, event: Event) -> None:
        self._seen = event.seq
        self._on_event(event)

    def catch_up(self, job_id: JobId, journals: Journals) -> None:
        for event in journals.read(job_id, after=self._seen):
            self(event)


async def run_and_wait(
    request: NewJobRequest,
    context: WorkerContext,
    *,
    rescue: Rescue,
    stopper: Stopper,
    on_job: Callable[[Job], None],
    on_event: OnEvent,
    on_wait: OnWait = lambda reason: None,
    injected: Sequence[InjectedMcpServerDef] = (),
) -> Job:
    """Carry out the request and wait for its job, as `wait_for_job` does; return the job as it ended.

    `on_job` is called with the job once it is durable and before it runs.
    """
    agent = agents_of(context).find(request, context.reader)
    result = await perform(request, context, rescue=rescue)
    job = result.job if isinstance(result, Submitted) else result
    on_job(job)
    ended = await wait_for_job(
        job.id,
        agent,
        context,
        on_event=on_event,
        on_wait=on_wait,
        stopper=stopper,
        rescue=rescue,
        injected=injected,
    )
    await settle_job(ended, context, on_wait)
    return ended


async def wait_for_job(
    job_id: JobId,
    agent: Agent,
    context: WorkerContext,
    *,
    on_event: OnEvent,
    on_wait: OnWait,
    stopper: Stopper,
    rescue: Rescue | None = None,
    injected: Sequence[InjectedMcpServerDef] = (),
) -> Job:
    """Execute the job as soon as it may be, or follow it when another worker has it; the job as it ended.

    `on_wait` is called with why it has to wait, once for each reason; `rescue` is called now and then meanwhile, for the
    worker that is waited for may be gone. A job that goes first in its session and waits for a worker is run here
    before it. When stopped, the job is cancelled, wherever it runs. A job that is suspended, or
    is handed over because nobody waits for it any longer, is returned as it stands. `injected` are tools for
    the run here; another worker does not have them. A process that was frozen for longer than its lease signs
    on again: it follows the job when another worker has it by then, and continues it when nobody has.
    """
    show = _Viewer(on_event)
    reported = ""
    for look in count(1):
        context = await _with_lease(context, stopper, rescue, on_wait)
        if stopper.reason is not None:
            await context.state.apply([CancelJob(job_id=job_id, at=context.clock.now())])
        job = get_job(context.reader, job_id)
        try:
            if stopper.is_handed_over:
                show.catch_up(job_id, context.journals)
                return job
            if job.status is JobStatus.PENDING and _holds_lease(context):
                done = await _execute(
                    job_id, agent, context, on_event=show, stopper=stopper, injected=injected
                )
                # Else what it was to wait for has come meanwhile.
                if done.status is not JobStatus.PENDING or stopper.is_handed_over:
                    return done
        except FencedError:
            continue  # the lease is lost, or another worker has the job
        except RefusedError as error:  # it has to wait, or another worker was quicker
            if reported != error.message:
                on_wait(error.message)
                reported = error.message
            await _run_first(job, context, stopper, on_wait)
        else:
            show.catch_up(job_id, context.journals)
            if job.is_terminal or job.status is JobStatus.SUSPENDED:
                return job
        if look % LOOKS_PER_RESCUE == 0:
            await _look_after_others(rescue)
        await anyio.sleep(LOOK_AGAIN_S)
    raise AssertionError("looking never ends")


def _holds_lease(context: WorkerContext) -> bool:
    return context.lease.holds(context.clock.monotonic())


async def _with_lease(
    context: WorkerContext, stopper: Stopper, rescue: Rescue | None, on_wait: OnWait
) -> WorkerContext:
    """Return the context; after its lease was lost, with a new worker: the old one is given up, its job rescued."""
    if _holds_lease(context) or context.sign_on is None:
        return context
    on_wait("this process was stopped for longer than its lease; checking its job")
    at = context.clock.now()
    lost = EndWorker(worker_id=context.worker, status=WorkerStatus.LOST, at=at)
    await context.state.apply([lost])  # refused when another worker has given it up
    worker, lease = await context.sign_on()
    stopper.reuse()
    await _look_after_others(rescue)
    return replace(context, worker=worker, lease=lease)


async def _look_after_others(rescue: Rescue | None) -> None:
    with suppress(NightherdError):  # the worker reports what is wrong
        if rescue is not None:
            await rescue()


async def _run_first(job: Job, context: WorkerContext, stopper: Stopper, on_wait: OnWait) -> None:
    """Run the job that goes first in the session of `job`, if it waits for a worker; wake it if its time has come.

    There may be no other worker. Once `stopper` is set, the job is handed back. Why it could not be run
    is passed to `on_wait`: it is no failure of `job`.
    """
    ahead = context.reader.jobs_ahead(job, 1)
    first = ahead[0] if ahead else None
    agent = context.agents.get(first.agent) if first is not None else None
    if first is None or agent is None or not context.can_run(agent.runtime.name):
        return
    if first.status is JobStatus.SUSPENDED and first.not_before is not None:
        due = ResumeJob(job_id=first.id, at=context.clock.now(), only_due=True)
        await context.state.apply([due])  # refused before its time
    if first.status is not JobStatus.PENDING or not _holds_lease(context):
        return
    own = Stopper()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_hand_over_with, stopper, own)
        try:
            await _execute(first.id, agent, context, on_event=_unseen, stopper=own, injected=())
        except RefusedError:  # fenced, or another worker was quicker
            pass
        except NightherdError as error:
            on_wait(f"{first.id}: {error.message}")
        tasks.cancel_scope.cancel()


async def _hand_over_with(stopper: Stopper, own: Stopper) -> None:
    while stopper.reason is None and not stopper.is_handed_over:  # noqa: ASYNC110 (it tells nobody)
        await anyio.sleep(LOOK_AGAIN_S)
    own.hand_over()


def _unseen(event: Event) -> None:
    """Ignore the event; it is in the journal."""


async def _execute(
    job_id: JobId,
    agent: Agent,
    context: WorkerContext,
    *,
    on_event: OnEvent,
    stopper: Stopper,
    injected: Sequence[InjectedMcpServerDef],
) -> Job:
    """Execute the job, overseen: others may cancel it, and a lost lease ends it."""
    job: Job | None = None
    failure: NightherdError | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(oversee, {job_id: stopper}, context)
        try:
            job = await run_job(
                job_id, agent, context, on_event=on_event, stopper=stopper, injected=injected
            )
        except NightherdError as error:
            failure = error  # out of the task group as itself, not as a group
        tasks.cancel_scope.cancel()
    if job is None:
        raise failure or NightherdError("the job was neither done nor refused")
    return job
