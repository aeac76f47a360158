"""`/v1/status`, `/v1/agents` and `/v1/schedules`: what the fleet is doing, and what can be done about it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from nightherd.engine.operations.requests import ResetAgent, RunSchedule, SetSchedule, with_key
from nightherd.errors import NotFoundError
from nightherd.model.access.role import Role
from nightherd.model.schedules.jobs import find_schedule
from nightherd.views.fleet import AgentDocument, AgentRow, FleetView, agent_row, show_fleet
from nightherd.views.job_document import failed_hooks
from nightherd.views.job_rows import JobRow
from nightherd.views.notifications import failing_targets
from nightherd.views.schedule_rows import ScheduleRow
from nightherd.views.schedules import list_views, schedule_row, view_of
from nightherd.views.status import StatusDocument, status_document
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.caller import needs
from nightherd.web.documents import answers, document
from nightherd.web.jobs import IfHeld, Key, job_answer
from nightherd.web.operations import FromPerson, FromSender, Sender, perform_for
from nightherd.web.requests import REFUSE, WAIT, NewRule, Nothing
from nightherd.wiring.machine import is_at_work

router = APIRouter(prefix="/v1", tags=["fleet"])


@router.get("/status", responses=answers("status", StatusDocument))
@needs(Role.VIEWER)
async def status(site: OnSite) -> Response:
    """What the fleet is doing: agents, workers, what waits, and the process that serves this."""
    now = site.context.clock.now()
    view = await look(site)
    journals, agents = site.context.journals, site.fleet().agents
    failed = await site.ask(lambda reader: failed_hooks(reader, journals, agents))
    unsent = await site.ask(failing_targets)
    return document("status", status_document(view, site.daemon(now), failed, unsent), now)


@router.get("/agents", responses=answers("agents", list[AgentRow]))
@needs(Role.VIEWER)
async def list_agents(site: OnSite) -> Response:
    """Every agent that is declared or ever worked."""
    view = await look(site)
    return document("agents", [agent_row(agent) for agent in view.agents], site.context.clock.now())


@router.get("/agents/{name}", responses=answers("agent", AgentDocument, 404))
@needs(Role.VIEWER)
async def show_agent(site: OnSite, name: str) -> Response:
    """One agent and its schedules."""
    return await _agent(site, name)


@router.post("/agents/{name}/reset", responses=answers("agent", AgentDocument, 404, 409))
@needs(Role.OPERATOR)
async def reset_agent(site: OnSite, sender: FromSender, name: str) -> Response:
    """Forget the error of an agent, so that it shows as idle again."""
    await perform_for(site, sender, ResetAgent(agent=name))
    return await _agent(site, name)


@router.get("/schedules", responses=answers("schedules", list[ScheduleRow]))
@needs(Role.VIEWER)
async def list_schedules(site: OnSite) -> Response:
    """Every declared schedule: its rule, where it stands, and when it is next."""
    now = site.context.clock.now()
    views = await site.ask(lambda reader: list_views(reader, site.fleet(), is_at_work, now))
    return document("schedules", [schedule_row(view) for view in views], now)


@router.post(
    "/schedules/{agent}/{name}/run",
    status_code=201,
    responses=answers("job", JobRow, 404, 409, status=201),
)
@needs(Role.OPERATOR)
async def run_schedule(
    site: OnSite,
    sender: FromSender,
    agent: str,
    name: str,
    idempotency_key: Key = None,
    if_held: IfHeld = WAIT,
) -> Response:
    """A job of the schedule, now; no slot of the schedule is used up. The same `Idempotency-Key` makes one."""
    request = RunSchedule(agent=agent, schedule=name, refuses_held=if_held == REFUSE)
    job = await perform_for(site, sender, with_key(request, idempotency_key))
    return await job_answer(job, site, 201)


@router.post("/schedules/{agent}/{name}/enable", responses=answers("schedule", ScheduleRow, 404))
@needs(Role.ADMIN)
async def enable_schedule(
    site: OnSite,
    sender: FromSender,
    person: FromPerson,
    agent: str,
    name: str,
    body: Nothing | None = None,
) -> Response:
    """Enable a schedule, whatever the fleet file says; one that paused itself fires again."""
    return await _override(site, sender, person, agent, name, enabled=True)


@router.post("/schedules/{agent}/{name}/disable", responses=answers("schedule", ScheduleRow, 404))
@needs(Role.ADMIN)
async def disable_schedule(
    site: OnSite,
    sender: FromSender,
    person: FromPerson,
    agent: str,
    name: str,
    body: Nothing | None = None,
) -> Response:
    """Disable a schedule, whatever the fleet file says. Its running job continues."""
    return await _override(site, sender, person, agent, name, enabled=False)


@router.post("/schedules/{agent}/{name}/set", responses=answers("schedule", ScheduleRow, 404))
@needs(Role.ADMIN)
async def set_rule(
    site: OnSite, sender: FromSender, person: FromPerson, agent: str, name: str, body: NewRule
) -> Response:
    """Give a schedule another rule than the fleet file says."""
    return await _override(site, sender, person, agent, name, rule=body.rule)


@router.post("/schedules/{agent}/{name}/reset", responses=answers("schedule", ScheduleRow, 404))
@needs(Role.ADMIN)
async def reset_schedule(
    site: OnSite,
    sender: FromSender,
    person: FromPerson,
    agent: str,
    name: str,
    body: Nothing | None = None,
) -> Response:
    """Take away what was set: the schedule is as the fleet file says again."""
    return await _override(site, sender, person, agent, name, reset=True)


async def _override(
    site: ApiContext, sender: Sender, person: str, agent: str, name: str, **setting: Any
) -> Response:
    request = SetSchedule(agent=agent, schedule=name, by=person, **setting)
    await perform_for(site, sender, request)
    owner, schedule = find_schedule(site.fleet().scheduled, f"{agent}/{name}")
    now = site.context.clock.now()
    view = await site.ask(lambda reader: view_of(reader, owner, schedule, is_at_work, now))
    return document("schedule", schedule_row(view), now)


async def _agent(site: ApiContext, name: str) -> Response:
    view = await look(site)
    found = next((agent for agent in view.agents if agent.state.name == name), None)
    if found is None:
        raise NotFoundError(f"there is no agent {name!r}")
    now = site.context.clock.now()
    views = await site.ask(lambda reader: list_views(reader, site.fleet(), is_at_work, now))
    schedules = [schedule_row(one) for one in views if one.agent.name == name]
    data: AgentDocument = {**agent_row(found), "schedules": schedules}
    return document("agent", data, now)


async def look(site: ApiContext) -> FleetView:
    """The fleet as it is right now."""
    now = site.context.clock.now()
    return await site.ask(lambda reader: show_fleet(reader, site.fleet().agents, is_at_work, now))
