"""`/v1/runs`: listing, showing, following and controlling runs of workflows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Query, Request, Response
from msgspec.structs import replace

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations import run_again
from nightherd.engine.operations import runs as operations
from nightherd.engine.operations.resume_run import resume_run
from nightherd.engine.operations.run_requests import (
    CancelRun,
    ForkRun,
    RaiseRunLimits,
    ResumeRun,
    RetryRun,
    RunRequest,
    SendRunEvent,
    SetRunScratch,
    key_for,
    run_gives_more,
)
from nightherd.engine.operations.runs import Started
from nightherd.model.access.role import Role
from nightherd.model.limits.limits import kept_limits
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.filter import parse_run_filter
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.ports import StateReader
from nightherd.views.runs.document import RunDocument, run_document, show_run
from nightherd.views.runs.outputs import OutputDocument, get_definition, output_of
from nightherd.views.runs.runs import (
    ResumedRunRow,
    RunRow,
    StartedRunRow,
    find_run,
    find_run_id,
    list_run_page,
    run_row,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import NEXT, answers, document
from nightherd.web.jobs.jobs import LARGEST, Filter, Key
from nightherd.web.operations import FromPerson, FromSender, Sender
from nightherd.web.problem import request_for
from nightherd.web.requests import NewFork, NewLimits, NewSignal, Scratch
from nightherd.web.streams.run_streams import EVENTS_ANSWERS, answer_events
from nightherd.wiring.machine import is_at_work

MOST = 1_000
ResultT = TypeVar("ResultT")

router = APIRouter(prefix="/v1/runs", tags=["runs"])


@router.get("", responses=answers("workflow_runs", list[RunRow], beside=NEXT))
@needs(Role.VIEWER)
async def list_runs(
    site: OnSite,
    q: Filter = None,
    workflow: Annotated[str | None, Query(max_length=200)] = None,
    status: RunStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 20,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> Response:
    """The newest runs, newest first; `before` is the `next_before` of the page before.

    `q` is a filter as that of jobs, with the keys workflow, status, cost, since, until, schedule and trigger.
    """
    now = site.context.clock.now()
    filter = None if q is None else parse_run_filter(q, now)
    query = RunQuery(workflow=workflow, status=status, filter=filter, before=before, limit=limit)
    page = await site.ask(lambda reader: list_run_page(reader, query))
    rows = [run_row(run, now) for run in page.runs]
    return document("workflow_runs", rows, now, next_before=page.next_before)


@router.get("/{run}", responses=answers("workflow_run", RunDocument, 404, 409))
@needs(Role.VIEWER)
async def show(site: OnSite, run: str) -> Response:
    """One run with its phases, inputs, scratch, limits and what it waits for. An id, a unique prefix, or `@last`."""
    now = site.context.clock.now()

    def look(reader: StateReader) -> RunDocument:
        view = show_run(reader, find_run_id(reader, run), now, is_at_work)
        return run_document(view, now, spell=request_for)

    return document("workflow_run", await site.ask(look), now)


@router.get(
    "/{run}/definition", responses=answers("workflow_definition", WorkflowDefinition, 404, 409)
)
@needs(Role.VIEWER)
async def definition(site: OnSite, run: str) -> Response:
    """The definition that a run keeps, whatever became of its workflow. 404 for an imported run without one."""

    def look(reader: StateReader) -> WorkflowDefinition:
        return get_definition(reader, find_run(reader, find_run_id(reader, run)))

    data = msgspec.to_builtins(await site.ask(look))
    return document("workflow_definition", data, site.context.clock.now())


@router.get(
    "/{run}/outputs/{phase:path}", responses=answers("workflow_output", OutputDocument, 404, 409)
)
@needs(Role.VIEWER)
async def output(site: OnSite, run: str, phase: str) -> Response:
    """The output of a phase that has ended: text, or a JSON value. PHASE is a path such as `plan` or `loop[2]/review`."""

    def look(reader: StateReader) -> OutputDocument:
        row = find_run(reader, find_run_id(reader, run))
        return {"phase": phase, "output": output_of(reader, row, phase)}

    return document("workflow_output", await site.ask(look), site.context.clock.now())


@router.post("/{run}/cancel", responses=answers("workflow_run", RunRow, 404, 409))
@needs(Role.OPERATOR)
async def cancel(site: OnSite, sender: FromSender, person: FromPerson, run: str) -> Response:
    """End a run. What waits in it ends at once; running jobs are stopped by their workers."""
    request = CancelRun(run_id=await _find(site, run), by=person)
    cancelled = await perform_on_runs(
        site, sender, request, lambda context: operations.cancel_run(request, context)
    )
    await site.rescue()  # a worker that is gone stops nothing
    return await _run_answer(site, cancelled.id)


@router.post(
    "/{run}/retry",
    status_code=201,
    responses=answers("workflow_run", StartedRunRow, 404, 409, status=201, also=(200,)),
)
@needs(Role.OPERATOR)
async def retry(
    site: OnSite, sender: FromSender, person: FromPerson, run: str, idempotency_key: Key = None
) -> Response:
    """Run what is left of an ended run, as a new run that keeps what is done; the same `Idempotency-Key` starts one."""
    request = RetryRun(run_id=await _find(site, run), by=person)
    request = replace(request, dedupe_key=key_for(request, idempotency_key))
    started = await perform_on_runs(
        site, sender, request, lambda context: run_again.retry_run(request, context)
    )
    return started_answer(started, site)


@router.post("/{run}/resume", responses=answers("workflow_run", ResumedRunRow, 404, 409))
@needs(Role.OPERATOR)
async def resume(site: OnSite, sender: FromSender, run: str) -> Response:
    """Resume the suspended jobs of a run; 409 when none can continue, and why. What waits for an answer still waits."""
    request = ResumeRun(run_id=await _find(site, run))
    resumed = await perform_on_runs(
        site,
        sender,
        request,
        lambda context: resume_run(request, context, rescue=site.rescue),
    )
    now = site.context.clock.now()
    data: ResumedRunRow = {
        **run_row(resumed.run, now),
        "resumed_jobs": [job.id for job in resumed.jobs],
        "refused": [error.message for error in resumed.refused],
    }
    return document("workflow_run", data, now)


@router.post(
    "/{run}/fork",
    status_code=201,
    responses=answers("workflow_run", StartedRunRow, 404, 409, status=201, also=(200,)),
)
@needs(Role.OPERATOR)
async def fork(
    site: OnSite,
    sender: FromSender,
    person: FromPerson,
    run: str,
    body: NewFork,
    idempotency_key: Key = None,
) -> Response:
    """Fork a run at a phase: a new run that keeps what is done, except that phase and all that depends on it.

    Other `inputs` are for people only. The same `Idempotency-Key` starts one.
    """
    request = ForkRun(
        run_id=await _find(site, run), at_phase=body.at, by=person, inputs=body.inputs
    )
    request = replace(request, dedupe_key=key_for(request, idempotency_key))
    started = await perform_on_runs(
        site, sender, request, lambda context: run_again.fork_run(request, context)
    )
    return started_answer(started, site)


@router.post("/{run}/signal", responses=answers("workflow_run", RunRow, 404, 409))
@needs(Role.OPERATOR)
async def signal(
    site: OnSite,
    sender: FromSender,
    person: FromPerson,
    run: str,
    body: NewSignal,
    idempotency_key: Key = None,
) -> Response:
    """Send an event to a run. The phase that waits for it, or will, takes it; the same `Idempotency-Key` sends one."""
    request = SendRunEvent(
        run_id=await _find(site, run),
        name=body.event,
        by=person,
        payload=body.payload,
        key=idempotency_key,
    )
    sent = await perform_on_runs(
        site, sender, request, lambda context: operations.send_event(request, context)
    )
    return await _run_answer(site, sent.id)


@router.post("/{run}/raise", responses=answers("workflow_run", RunRow, 404, 409))
@needs(Role.OPERATOR)
async def raise_limits(site: OnSite, sender: FromSender, run: str, body: NewLimits) -> Response:
    """Raise limits of a run, which only people may do; jobs that wait for them continue."""
    request = RaiseRunLimits(run_id=await _find(site, run), limits=kept_limits(body.limits))
    raised = await perform_on_runs(
        site, sender, request, lambda context: operations.raise_run_limits(request, context)
    )
    return await _run_answer(site, raised.id)


@router.patch("/{run}/scratch", responses=answers("workflow_scratch", dict[str, Any], 404, 409))
@needs(Role.OPERATOR)
async def set_scratch(site: OnSite, sender: FromSender, run: str, body: Scratch) -> Response:
    """Set values of the run's scratch, each key on its own; null removes one. Answers with the whole scratch."""
    request = SetRunScratch(run_id=await _find(site, run), values=body.root)
    scratch = await perform_on_runs(
        site, sender, request, lambda context: operations.set_scratch(request, context)
    )
    return document("workflow_scratch", dict(scratch), site.context.clock.now())


@router.get("/{run}/events", responses=EVENTS_ANSWERS)
@needs(Role.VIEWER)
async def events(
    site: OnSite,
    request: Request,
    run: str,
    after: Annotated[str, Query(max_length=16_000)] = "0",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 200,
) -> Response:
    """A run's events in order: a page after `after`, or, asked for as `text/event-stream`, a stream.

    `node` is a phase that changed, `inbox` a gate that was opened or answered, `run` a new state of the run, and `job`
    an event of one of its jobs. The stream ends with the run. `id` is a cursor: `Last-Event-ID` (or `after`) is where
    it continues, across restarts too. Nothing is left out and nothing comes twice.
    """
    return await answer_events(site, request, await _find(site, run), after, limit)


async def perform_on_runs(
    site: ApiContext,
    sender: Sender,
    request: RunRequest,
    operation: Callable[[WorkerContext], Awaitable[ResultT]],
) -> ResultT:
    """Carry out what the sender asks, unless only a person may; workers of this process look at once."""
    more = run_gives_more(request)
    if more is not None:
        await sender.refuse_agents(more)
    result = await operation(site.context)
    site.wake()
    return result


def started_answer(started: Started, site: ApiContext) -> Response:
    """A run that was started: 201, or 200 when the same request started it before."""
    now = site.context.clock.now()
    data: StartedRunRow = {**run_row(started.run, now), "is_new": started.is_new}
    answer = document("workflow_run", data, now, status=201 if started.is_new else 200)
    if started.is_new:
        answer.headers["location"] = f"/v1/runs/{started.run.id}"
    return answer


async def _run_answer(site: ApiContext, run_id: RunId) -> Response:
    def look(reader: StateReader) -> WorkflowRun:
        return find_run(reader, run_id)

    now = site.context.clock.now()
    return document("workflow_run", run_row(await site.ask(look), now), now)


async def _find(site: ApiContext, reference: str) -> RunId:
    return await site.ask(lambda reader: find_run_id(reader, reference))
