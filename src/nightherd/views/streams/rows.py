"""The rows of a stream: which rows of lists a change of the ledger touched, and those rows as lists show them now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from nightherd.decoding import json_decoder
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import JobId, SessionId
from nightherd.model.inbox.item import ItemId
from nightherd.model.workflows.run import RunId
from nightherd.ports import Journals, LedgerEntry, StateReader
from nightherd.views.fleet.fleet import agent_row, show_fleet
from nightherd.views.jobs.jobs import IsAtWork, job_row, observe_jobs
from nightherd.views.people.inbox import item_row
from nightherd.views.runs.changes import node_change
from nightherd.views.runs.runs import run_row
from nightherd.views.schedules.schedules import list_views, schedule_row, view_of
from nightherd.views.sessions.sessions import session_row, up_to_now

JOB, ITEM, RUN, NODE = "job", "inbox", "run", "node"
SESSION, SCHEDULE, AGENT = "session", "schedule", "agent"
KINDS = (JOB, ITEM, RUN, NODE, SESSION, SCHEDULE, AGENT)
"""The events that rows are sent as, in a fixed order: new ones come last."""
ROOM = 16
"""Numbers for the events of one row of a change; more than there will be kinds."""
FEW = 3
"""So many schedules are looked up one by one."""


class _Image(msgspec.Struct, frozen=True):
    """As much of a row image as it takes to know which rows of lists show it. Unknown columns are ignored."""

    id: str = ""
    agent: str | None = None
    name: str | None = None
    schedule: str | None = None
    schedule_id: str = ""
    item_id: str = ""
    run_id: str | None = None
    workflow_run_id: str | None = None


_DECODER = json_decoder(_Image)


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a list that a change touched."""

    index: int
    """Its number within the change: the same whenever the change is read, and higher than that of the row before."""
    kind: str
    id: str
    run_id: str | None = None
    """The run it belongs to."""


def touched_rows(entry: LedgerEntry) -> Iterator[Touched]:
    """Yield the rows of lists that a change touched, in a fixed order. A row image that cannot be read is left out."""
    for number, (table, row) in enumerate((*entry.rows, *entry.deleted)):
        if table not in _TABLES:
            continue
        try:
            image = _DECODER.decode(row)
        except ValueError:
            continue
        for kind, id in sorted(_TABLES[table](image), key=lambda one: KINDS.index(one[0])):
            run_id = id if kind == RUN else image.run_id or image.workflow_run_id
            yield Touched(index=number * ROOM + KINDS.index(kind), kind=kind, id=id, run_id=run_id)


Shown = Iterator[tuple[str, str]]


def _job(image: _Image) -> Shown:
    yield JOB, image.id
    if image.agent is not None:
        yield AGENT, image.agent
        if image.schedule is not None:
            yield SCHEDULE, f"{image.agent}/{image.schedule}"


def _agent(image: _Image) -> Shown:
    if image.name is not None:
        yield AGENT, image.name


def _schedule(image: _Image) -> Shown:
    yield SCHEDULE, image.id
    yield AGENT, image.id.partition("/")[0]


def _node(image: _Image) -> Shown:
    yield NODE, image.id
    if image.run_id is not None:
        yield RUN, image.run_id


_TABLES: Mapping[str, Callable[[_Image], Shown]] = {
    "jobs": _job,
    "sessions": lambda image: iter([(SESSION, image.id)]),
    "agents": _agent,
    "schedules": _schedule,
    "schedule_overrides": _schedule,
    "slots": lambda image: iter([(SCHEDULE, image.schedule_id)]),
    "inbox_items": lambda image: iter([(ITEM, image.id)]),
    "inbox_answers": lambda image: iter([(ITEM, image.item_id)]),
    "workflow_runs": lambda image: iter([(RUN, image.id)]),
    "workflow_nodes": _node,
}
"""By table, the rows of lists that show a row of it."""

Row = Mapping[str, Any]


class StreamRows:
    """Reads rows as their lists have them now."""

    def __init__(
        self,
        fleet: Callable[[], Fleet],
        journals: Journals,
        is_at_work: IsAtWork,
        now: Callable[[], datetime],
    ) -> None:
        self._fleet = fleet
        self._journals = journals
        self._is_at_work = is_at_work
        self._now = now

    def read(
        self, reader: StateReader, wanted: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], Row]:
        """Return the rows of `wanted`, each a kind and an id; what no list shows is left out."""
        ids: dict[str, list[str]] = {}
        for kind, id in dict.fromkeys(wanted):
            ids.setdefault(kind, []).append(id)
        found: dict[tuple[str, str], Row] = {}
        for kind, some in ids.items():
            found.update({(kind, id): row for id, row in self._rows(reader, kind, some)})
        return found

    def _rows(self, reader: StateReader, kind: str, ids: list[str]) -> Iterator[tuple[str, Row]]:
        now = self._now()
        match kind:
            case "job":
                jobs = [job for id in ids if (job := reader.find_job(JobId(id))) is not None]
                for seen in observe_jobs(reader, jobs, self._is_at_work, now):
                    yield seen.id, job_row(seen)
            case "inbox":
                items = (reader.find_item(ItemId(id)) for id in ids)
                yield from ((item.id, item_row(item)) for item in items if item is not None)
            case "run":
                runs = (reader.find_run(RunId(id)) for id in ids)
                yield from ((run.id, run_row(run, now)) for run in runs if run is not None)
            case "node":
                nodes = (reader.find_node(id) for id in ids)
                yield from ((node.id, node_change(node)) for node in nodes if node is not None)
            case "session":
                for id in ids:
                    session = reader.find_session(SessionId(id))
                    if session is not None:
                        seen_now = up_to_now(reader, self._journals, session, self._is_at_work, now)
                        yield id, session_row(seen_now)
            case "schedule":
                yield from self._schedules(reader, ids, now)
            case _:
                agents = self._fleet().agents
                for view in show_fleet(reader, agents, self._is_at_work, now).agents:
                    if view.state.name in ids:
                        yield view.state.name, agent_row(view)

    def _schedules(
        self, reader: StateReader, ids: list[str], now: datetime
    ) -> Iterator[tuple[str, Row]]:
        fleet = self._fleet()
        if len(ids) > FEW:
            views = list_views(reader, fleet, self._is_at_work, now)
            yield from ((view.id, schedule_row(view)) for view in views if view.id in ids)
            return
        for id in ids:
            owner, _, name = id.partition("/")
            agent = fleet.scheduled.get(owner)
            schedule = agent.schedules.get(name) if agent is not None else None
            if agent is not None and schedule is not None:
                view = view_of(reader, agent, schedule, self._is_at_work, now)
                yield id, schedule_row(view)
