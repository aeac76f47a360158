"""`/v1/status` and `/v1/agents`: what the fleet is doing, and what can be done about it."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Response

from nightherd.engine.limits.guard import job_limits
from nightherd.engine.operations.requests import ResetAgent
from nightherd.errors import NotFoundError
from nightherd.model.access.role import Role
from nightherd.model.jobs.options import NO_OPTIONS
from nightherd.model.limits.limits import NO_LIMITS
from nightherd.ports import StateReader
from nightherd.views.chat.bots import show_bots
from nightherd.views.fleet.agents import AgentDocument, agent_document
from nightherd.views.fleet.fleet import AgentRow, FleetView, agent_row, show_fleet
from nightherd.views.fleet.status import StatusDocument, status_document
from nightherd.views.jobs.document import failed_hooks
from nightherd.views.people.notifications import failing_targets
from nightherd.views.schedules.schedules import list_views, schedule_row
from nightherd.views.work.work import failing_sources, sources_of, unsettled_items
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.operations import FromSender, perform_for
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
    daemon = site.daemon(now)
    running = None if daemon is None else daemon["agents"]
    begun = None if daemon is None else datetime.fromisoformat(daemon["started_at"])
    bots = await site.ask(lambda reader: show_bots(reader, agents, running, begun, now))
    sources = await site.ask(lambda reader: failing_sources(reader, sources_of(agents.values())))
    unsettled = await site.ask(unsettled_items)
    data = status_document(view, daemon, failed, unsent, bots, sources, unsettled)
    return document("status", data, now)


@router.get("/agents", responses=answers("agents", list[AgentRow]))
@needs(Role.VIEWER)
async def list_agents(site: OnSite) -> Response:
    """Every agent that is declared or ever worked."""
    view = await look(site)
    return document("agents", [agent_row(agent) for agent in view.agents], site.context.clock.now())


@router.get("/agents/{name}", responses=answers("agent", AgentDocument, 404))
@needs(Role.VIEWER)
async def show_agent(site: OnSite, name: str) -> Response:
    """One agent: how it is set up, its schedules, what it may use and has used today, and its last failure."""
    return await _agent(site, name)


@router.post("/agents/{name}/reset", responses=answers("agent", AgentDocument, 404, 409))
@needs(Role.OPERATOR)
async def reset_agent(site: OnSite, sender: FromSender, name: str) -> Response:
    """Forget the error of an agent, so that it shows as idle again."""
    await perform_for(site, sender, ResetAgent(agent=name))
    return await _agent(site, name)


async def _agent(site: ApiContext, name: str) -> Response:
    view = await look(site)
    found = next((agent for agent in view.agents if agent.state.name == name), None)
    if found is None:
        raise NotFoundError(f"there is no agent {name!r}")
    now = site.context.clock.now()
    declared = found.declared
    limits = NO_LIMITS if declared is None else job_limits(declared, NO_OPTIONS)

    def read(reader: StateReader) -> AgentDocument:
        schedules = [
            schedule_row(one)
            for one in list_views(reader, site.fleet(), is_at_work, now)
            if one.agent.name == name
        ]
        return agent_document(reader, found, schedules, limits, site.context.secrets, now)

    return document("agent", await site.ask(read), now)


async def look(site: ApiContext) -> FleetView:
    """The fleet as it is right now."""
    now = site.context.clock.now()
    return await site.ask(lambda reader: show_fleet(reader, site.fleet().agents, is_at_work, now))
