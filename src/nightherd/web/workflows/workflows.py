"""`/v1/workflows`: the workflows of the fleet; starting their runs, and switching them off and on."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from msgspec.structs import replace

from nightherd.engine.operations import runs as operations
from nightherd.engine.operations.run_requests import SetWorkflow, StartWorkflow, key_for
from nightherd.engine.operations.runs import get_workflow
from nightherd.model.access.role import Role
from nightherd.model.workflows.rows import WorkflowOverride
from nightherd.views.runs.runs import StartedRunRow
from nightherd.views.workflows.workflows import (
    SwitchedWorkflow,
    SwitchedWorkflowRow,
    switch_row,
    workflow_document,
    workflow_row,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.jobs.jobs import Key
from nightherd.web.operations import FromPerson, FromSender
from nightherd.web.requests import NewRun, WorkflowSwitch
from nightherd.web.workflows.runs import perform_on_runs, started_answer

router = APIRouter(prefix="/v1/workflows", tags=["workflows"])


@router.get("", responses=answers("workflows", list[SwitchedWorkflowRow]))
@needs(Role.VIEWER)
async def list_workflows(site: OnSite) -> Response:
    """The workflows of the fleet: their inputs and triggers, and whether they are enabled."""
    switches = await _switches(site)
    rows: list[SwitchedWorkflowRow] = [
        {**workflow_row(definition), **switch_row(switches.get(name))}
        for name, definition in site.context.workflows.items()
    ]
    return document("workflows", rows, site.context.clock.now())


@router.get("/{workflow}", responses=answers("workflow", SwitchedWorkflow, 404, 409))
@needs(Role.VIEWER)
async def show(site: OnSite, workflow: str) -> Response:
    """One workflow with its whole definition."""
    return await _workflow_answer(site, workflow)


@router.patch("/{workflow}", responses=answers("workflow", SwitchedWorkflow, 404, 409))
@needs(Role.ADMIN)
async def switch(
    site: OnSite, sender: FromSender, person: FromPerson, workflow: str, body: WorkflowSwitch
) -> Response:
    """Enable or disable a workflow beside its file; null removes the switch. Only people may enable.

    A disabled workflow starts no runs; those that are open continue.
    """
    request = SetWorkflow(workflow=workflow, by=person, enabled=body.enabled)
    await perform_on_runs(
        site, sender, request, lambda context: operations.set_workflow(request, context)
    )
    return await _workflow_answer(site, workflow)


@router.post(
    "/{workflow}/runs",
    status_code=201,
    responses=answers("workflow_run", StartedRunRow, 404, 409, status=201, also=(200,)),
)
@needs(Role.OPERATOR)
async def start(
    site: OnSite,
    sender: FromSender,
    person: FromPerson,
    workflow: str,
    body: NewRun | None = None,
    idempotency_key: Key = None,
) -> Response:
    """Start a run; answered once nothing can lose it. The same `Idempotency-Key` never starts a second one: 200.

    409 when the workflow is disabled, not started by requests, or drops a further run; 422 for wrong inputs.
    """
    inputs: dict[str, Any] = {} if body is None else dict(body.inputs)
    request = StartWorkflow(workflow=workflow, inputs=inputs, by=person)
    request = replace(request, dedupe_key=key_for(request, idempotency_key))
    started = await perform_on_runs(
        site, sender, request, lambda context: operations.start_workflow(request, context)
    )
    return started_answer(started, site)


async def _workflow_answer(site: ApiContext, name: str) -> Response:
    definition = get_workflow(site.context, name)
    switches = await _switches(site)
    data: SwitchedWorkflow = {**workflow_document(definition), **switch_row(switches.get(name))}
    return document("workflow", data, site.context.clock.now())


async def _switches(site: ApiContext) -> dict[str, WorkflowOverride]:
    found = await site.ask(lambda reader: reader.list_workflow_overrides())
    return {override.name: override for override in found}
