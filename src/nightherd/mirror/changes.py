"""What has changed, as ids: read from the change feed, and kept until the files of all of them are written."""

from __future__ import annotations

import msgspec

from nightherd.decoding import json_decoder
from nightherd.errors import InvalidValueError
from nightherd.model.agents.state import stands_for_workflow
from nightherd.model.ids import parse_job_id, parse_session_id
from nightherd.model.jobs.job import JOB_LIFECYCLE
from nightherd.ports import ChangeFeed, LedgerEntry

ENDED = frozenset(status.value for status in JOB_LIFECYCLE.terminal)
SHOWN = frozenset({"sessions", "jobs", "job_texts", "agents", "schedules"})
"""Tables whose rows the files show. An execution's row changes with that of its job."""


class _Row(msgspec.Struct, frozen=True):
    """As much of a row image as it takes to know what it is about. Unknown columns are ignored."""

    id: str = ""
    job_id: str = ""
    session_id: str | None = None
    runtime_session_id: str | None = None
    agent: str = ""
    name: str | None = None
    status: str = ""
    epoch: int = 0


_DECODER = json_decoder(_Row)


class Pending(msgspec.Struct, kw_only=True):
    """What has changed and is not in the files yet."""

    jobs: set[str] = msgspec.field(default_factory=set)
    ended: set[str] = msgspec.field(default_factory=set)
    """Jobs whose end is among the changes. A row may show it earlier; then the change is still to come."""
    runtime_ids: dict[str, str] = msgspec.field(default_factory=dict)
    """By job, the first id of the runtime that its row had: what was said before the runtime took another."""
    sessions: set[str] = msgspec.field(default_factory=set)
    agents: set[str] = msgspec.field(default_factory=set)
    """Agents with a changed row: their part of `state.yaml` has to be written."""
    redeclared: set[str] = msgspec.field(default_factory=set)
    """Agents that the fleet declares now, or not any more, or blocks for another reason."""
    agent_sessions: set[str] = msgspec.field(default_factory=set)
    """Agents whose session file has to be written."""
    is_state_due: bool = False
    faults: list[str] = msgspec.field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        due = (self.jobs, self.sessions, self.agents, self.redeclared, self.agent_sessions)
        return not self.is_state_due and not any(due)

    def note(self, entry: LedgerEntry) -> None:
        """Note what `entry` changed. A row that cannot be understood is noted as a fault and left out."""
        for table, row in entry.rows:
            if table not in SHOWN:
                continue
            try:
                self._note_row(table, _DECODER.decode(row))
            except ValueError as error:  # a ValidationError, or an id that could not be a file name
                self.faults.append(f"a row of {table} in the ledger: {error}")

    def _note_row(self, table: str, row: _Row) -> None:
        match table:
            case "jobs":
                self.jobs.add(parse_job_id(row.id))
                self.agents.add(row.agent)
                if row.status in ENDED:
                    self.ended.add(row.id)
                if row.runtime_session_id is not None:
                    self.runtime_ids.setdefault(row.id, row.runtime_session_id)
                if row.session_id is not None and row.epoch == 0:
                    self.sessions.add(parse_session_id(row.session_id))  # it has a new job
            case "job_texts":
                self.jobs.add(parse_job_id(row.job_id))
            case "sessions":
                self.sessions.add(parse_session_id(row.id))
                self.agents.add(row.agent)
                if not stands_for_workflow(row.agent):
                    self.agent_sessions.add(row.agent)
            case "agents" if row.name:
                self.agents.add(row.name)
            case "schedules" if row.agent:
                self.agents.add(row.agent)
            case _:
                raise InvalidValueError("it names no agent")


def changed_after(feed: ChangeFeed, change: int) -> Pending:
    """What the changes after `change` are about."""
    pending = Pending()
    for entry in feed.read(after=change):
        pending.note(entry)
    return pending
