"""`/v1/schedules`: where they stand, why they fire when they do, and the switches."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from nightherd.config.origins import schedule_place
from nightherd.engine.operations.requests import RunSchedule, SetSchedule, with_key
from nightherd.model.access.role import Role
from nightherd.model.schedules.jobs import find_schedule
from nightherd.ports import StateReader
from nightherd.views.fleet.config import place_row
from nightherd.views.jobs.rows import JobRow
from nightherd.views.schedules.rows import PlaceRow, ScheduleDocument, ScheduleRow
from nightherd.views.schedules.schedules import list_views, schedule_row, view_of
from nightherd.views.schedules.why import schedule_document
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.web.jobs.jobs import IfHeld, Key, job_answer
from nightherd.web.operations import FromPerson, FromSender, Sender, perform_for
from nightherd.web.requests import REFUSE, WAIT, NewRule, Nothing
from nightherd.wiring.machine import is_at_work

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])


@router.get("", responses=answers("schedules", list[ScheduleRow]))
@needs(Role.VIEWER)
async def list_schedules(site: OnSite) -> Response:
    """Every declared schedule: its rule, where it stands, and when it is next."""
    now = site.context.clock.now()
    views = await site.ask(lambda reader: list_views(reader, site.fleet(), is_at_work, now))
    return document("schedules", [schedule_row(view) for view in views], now)


@router.get("/{agent}/{name}", responses=answers("schedule", ScheduleDocument, 404))
@needs(Role.VIEWER)
async def show_schedule(site: OnSite, agent: str, name: str) -> Response:
    """One schedule: where it is declared, and why it fires when it does. AGENT is also `workflow:NAME`."""
    owner, schedule = find_schedule(site.fleet().scheduled, f"{agent}/{name}")
    now = site.context.clock.now()
    is_kept = site.daemon(now) is not None

    def look(reader: StateReader) -> ScheduleDocument:
        view = view_of(reader, owner, schedule, is_at_work, now)
        slots = reader.list_slots(view.id, 1)
        return schedule_document(view, slots, _place(site, agent, name), is_kept=is_kept)

    return document("schedule", await site.ask(look), now)


@router.post(
    "/{agent}/{name}/run",
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


@router.post("/{agent}/{name}/enable", responses=answers("schedule", ScheduleRow, 404))
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


@router.post("/{agent}/{name}/disable", responses=answers("schedule", ScheduleRow, 404))
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


@router.post("/{agent}/{name}/set", responses=answers("schedule", ScheduleRow, 404))
@needs(Role.ADMIN)
async def set_rule(
    site: OnSite, sender: FromSender, person: FromPerson, agent: str, name: str, body: NewRule
) -> Response:
    """Give a schedule another rule than the fleet file says."""
    return await _override(site, sender, person, agent, name, rule=body.rule)


@router.post("/{agent}/{name}/reset", responses=answers("schedule", ScheduleRow, 404))
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


def _place(site: ApiContext, owner: str, name: str) -> PlaceRow | None:
    """Where the schedule is declared now."""
    loaded = site.config.read().loaded
    place = None if loaded is None else schedule_place(loaded, owner, name)
    return place_row(place, site.show_file)
