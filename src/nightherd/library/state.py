"""A state directory opened for a program's own changes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec.structs import replace

from nightherd.config.discovery import find_fleet_file
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.operations.agents import reset_agent
from nightherd.engine.operations.requests import ResetAgent
from nightherd.errors import AgentNotFoundError, ConfigError, RefusedError
from nightherd.files.yaml_dump import atomic_write_yaml
from nightherd.model import ids
from nightherd.model.agents.state import AgentState, AgentStatus
from nightherd.model.ids import JobId, RandomText, SessionId
from nightherd.model.secrets import Secrets
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader
from nightherd.views.fleet.fleet import show_fleet
from nightherd.wiring import stores
from nightherd.wiring.files import (
    empty_schedule_state,
    read_fleet_state,
    refresh_mirror,
    refresh_stale_mirror,
)
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import (
    known_secrets,
    open_reader,
    open_repair,
    random_text,
    system_clock,
)

if TYPE_CHECKING:
    from nightherd.mirror.fleet_state import ScheduleState
    from nightherd.state.directory import StateDirectory


@asynccontextmanager
async def open_changes(state_dir: Path) -> AsyncIterator[RepairContext]:
    """Open the state and journals of an existing state directory for a program's own changes.

    Secrets are masked. Afterwards the readable files are up to date.
    """
    stores.validate_state_directory(state_dir)
    async with open_repair(state_dir) as record:
        yield replace(record, secrets=_secrets(state_dir))
    await to_thread.run_sync(lambda: refresh_mirror(state_dir, is_new=False))


def _secrets(state_dir: Path) -> Secrets:
    """Every secret that the fleet file beside the directory, or the environment, knows."""
    environ, here = dict(os.environ), state_dir.absolute().parent
    file = find_fleet_file(here)
    try:
        fleet = None if file is None else load_fleet(file, environ=environ, cwd=here).fleet
    except ConfigError:
        fleet = None
    environment = {**(fleet.environment if fleet is not None else {}), **environ}
    return known_secrets(fleet, environment, state_dir)


NAME = ".nightherd"
EMPTY: dict[str, dict[str, object]] = {"fleet": {}, "agents": {}}


def init_state_directory(path: str | Path = NAME) -> StateDirectory:
    """Make the state directory at `path` whole; what is there stays as it is.

    A `state.yaml` that is missing is written with an empty fleet; one that cannot be read, or is no fleet
    state, raises `StateFileError` and stays. `StateDirectoryCreateError` when a directory cannot be made.
    """
    found = stores.init_state_directory(Path(path))
    read_fleet_state(found.state_file)
    if not found.state_file.exists():
        atomic_write_yaml(found.state_file, EMPTY)
    return stores.validate_state_directory(found.root)


def get_state_directory(path: str | Path = NAME) -> StateDirectory:
    """Return the paths of a state directory without creating or checking anything."""
    return stores.state_directory(Path(path).absolute())


def generate_job_id(at: datetime | None = None, random: RandomText | None = None) -> JobId:
    """Return a fresh job id, `job-YYYY-MM-DD-xxxxxx`, with the UTC date of `at` (default: now).

    `random(length)` gives the last characters; tests pass their own. The store checks that an id is unique.
    """
    return ids.generate_job_id(at or system_clock().now(), random or random_text())


def generate_session_id(random: RandomText | None = None) -> SessionId:
    """Return a fresh session id, `sess-xxxxxxxx`."""
    return ids.generate_session_id(random or random_text())


def get_agent_state(state_dir: str | Path, agent: str) -> AgentState:
    """Return what an agent is doing now; `idle` for an agent that never had a job."""
    with reading(state_dir) as reader:
        view = show_fleet(reader, {}, is_at_work, system_clock().now())
    states = (one.state for one in view.agents if one.state.name == agent)
    return next(states, AgentState(name=agent))


async def update_agent_state(
    state_dir: str | Path, agent: str, *, status: str = AgentStatus.IDLE
) -> AgentState:
    """Clear the error of an agent (status `idle`) and return its state.

    Everything else about an agent follows from its jobs: `RefusedError` for another status.
    """
    root = Path(state_dir)
    if status != AgentStatus.IDLE:
        raise RefusedError(
            f"cannot set agent {agent!r} to {status}: its status follows from its jobs",
            hint="a program can set idle, which clears the error",
        )
    async with open_changes(root) as record:
        try:
            await reset_agent(ResetAgent(agent=agent), record)
        except RefusedError as error:
            raise AgentNotFoundError(
                error.message, next_step=NextStep(Action.LIST_AGENTS)
            ) from error
    return get_agent_state(root, agent)


def create_default_schedule_state() -> ScheduleState:
    """Return the state of a schedule that never ran: `idle`, everything else None."""
    return empty_schedule_state()


@contextmanager
def reading(state_dir: str | Path) -> Iterator[StateReader]:
    """Read the rows of `state_dir`. Readable files that a killed command left behind are brought up to date."""
    root = Path(state_dir)
    with closing(open_reader(root)) as reader:
        yield reader
    refresh_stale_mirror(root)
