"""`/v1/config` and `/v1/agents/AGENT/config`: what the fleet's files say, value by value, and where."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Response

from nightherd.config.acceptance import pending_of, subject_of
from nightherd.config.current import ConfigReading
from nightherd.config.load import LoadedFleet
from nightherd.config.origins import MOST_VALUES, agent_values, fleet_values
from nightherd.errors import AgentNotFoundError, StateFileError
from nightherd.model.access.role import Role
from nightherd.model.config_value import ConfigValue
from nightherd.model.problem import Problem
from nightherd.ports import StateReader
from nightherd.views.fleet.config import (
    AgentConfigDocument,
    ConfigDocument,
    ConfigView,
    FleetConfigDocument,
    config_document,
    pending_reload,
    problems_of_agent,
)
from nightherd.web.access.caller import needs
from nightherd.web.api_context import ApiContext, OnSite
from nightherd.web.documents import answers, document
from nightherd.wiring.stores import known_secrets

router = APIRouter(prefix="/v1", tags=["fleet"])


@router.get("/config", responses=answers("fleet_config", FleetConfigDocument))
@needs(Role.VIEWER)
async def show_fleet_config(site: OnSite) -> Response:
    """What the files say about the fleet itself, each value with its file, line and column; what is wrong in the files.

    `accepted` says whether a change that gives agents more waits for a person, and in which inbox item.
    """

    def look(reader: StateReader) -> FleetConfigDocument:
        reading = site.config.read()
        values = [] if reading.loaded is None else fleet_values(reading.loaded)
        return {
            "file": site.fleet().file,
            "files": [site.show_file(file) for file in reading.files],
            **_document(site, reader, reading, values, reading.problems),
        }

    return document("fleet_config", await site.ask(look), site.context.clock.now())


@router.get("/agents/{name}/config", responses=answers("agent_config", AgentConfigDocument, 404))
@needs(Role.VIEWER)
async def show_agent_config(site: OnSite, name: str) -> Response:
    """The same for one agent, with the layer of each value: its own entry, the defaults, or nobody's."""

    def look(reader: StateReader) -> AgentConfigDocument:
        reading = site.config.read()
        problems = problems_of_agent(reading.problems, name)
        values = _values_of_agent(site, reading.loaded, name)
        return {"agent": name, **_document(site, reader, reading, values, problems)}

    return document("agent_config", await site.ask(look), site.context.clock.now())


def _values_of_agent(
    site: ApiContext, loaded: LoadedFleet | None, name: str
) -> Sequence[ConfigValue]:
    """The agent's values; none for one that runs although the files do not have it any more."""
    if loaded is not None and name in loaded.agents:
        return agent_values(loaded, name)
    if name not in site.fleet().agents:
        raise AgentNotFoundError(f"the fleet has no agent {name!r}")
    return ()


def _document(
    site: ApiContext,
    reader: StateReader,
    reading: ConfigReading,
    values: Sequence[ConfigValue],
    problems: Sequence[Problem],
) -> ConfigDocument:
    fleet = site.fleet() if reading.loaded is None else reading.loaded.fleet
    try:
        pending = [one.text for one in pending_of(fleet, site.state_dir)]
    except StateFileError as error:
        pending = [error.message]
    subject = subject_of(site.state_dir, site.config.file)
    secrets = known_secrets(fleet, site.environ, site.state_dir)
    view = ConfigView(
        values=values,
        most=MOST_VALUES,
        is_valid=reading.is_valid,
        problems=problems,
        pending=pending,
        item_id=pending_reload(reader, subject),
    )
    return config_document(view, secrets.joined(site.context.secrets), site.show_file)
