"""`/v1/home` and `/v1/visit`: what happened since the caller last looked, and that they look now."""

from __future__ import annotations

from fastapi import APIRouter, Response

from nightherd.engine.operations.visits import mark_visit
from nightherd.model.access.role import Role
from nightherd.model.access.visit import visit_at
from nightherd.ports import StateReader
from nightherd.views.costs.costs import read_zone
from nightherd.views.people.home import (
    HomeDocument,
    HomeSources,
    HomeView,
    Surroundings,
    VisitDocument,
    home_document,
    show_home,
    visit_document,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import OnSite
from nightherd.web.costs import When, ZoneName
from nightherd.web.documents import answers, document
from nightherd.web.operations import FromPerson, FromSender
from nightherd.web.requests import Nothing
from nightherd.wiring.machine import disk_space, is_at_work, local_zone

router = APIRouter(prefix="/v1", tags=["home"])


@router.get("/home", responses=answers("home", HomeDocument))
@needs(Role.VIEWER)
async def home(
    site: OnSite, person: FromPerson, since: When = None, tz: ZoneName = None
) -> Response:
    """What ended, what it cost, what waits for a person, what runs, what comes next, and what is in trouble.

    Counts from `since`, else from the caller's previous visit, else from a day ago. `since` is as for `/v1/costs`.
    """
    now, fleet = site.context.clock.now(), site.fleet()
    zone = read_zone(tz, local_zone())
    around = Surroundings(daemon=site.daemon(now), disk=disk_space(site.state_dir))

    def look(reader: StateReader) -> HomeView:
        sources = HomeSources(
            reader=reader,
            journals=site.context.journals,
            costs=site.costs,
            fleet=fleet,
            is_at_work=is_at_work,
        )
        return show_home(sources, person, since, zone.info, around, now)

    return document("home", home_document(await site.ask(look)), now)


@router.post("/visit", responses=answers("visit", VisitDocument))
@needs(Role.VIEWER)
async def visit(
    site: OnSite, sender: FromSender, person: FromPerson, body: Nothing | None = None
) -> Response:
    """The caller looks at the dashboard. A visit lasts until nobody says so for 30 minutes."""
    await sender.must_be_person("mark a visit")
    now = site.context.clock.now()
    await mark_visit(person, site.context.state, at=now)
    known = await site.ask(lambda reader: reader.find_visit(person))
    return document("visit", visit_document(visit_at(known, person, now)), now)
