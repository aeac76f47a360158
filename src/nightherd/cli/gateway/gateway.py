"""Gateway: how commands have something done to jobs and schedules.

There are two: on the state directory itself, which always works, and through the running fleet's socket,
where it takes effect at once. What a command says and ends with is the same either way.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from nightherd.cli.gateway.direct import DirectGateway, Override
from nightherd.cli.invocation import Invocation
from nightherd.daemon.record import DaemonRecord, find_daemon
from nightherd.engine.operations.fork import ForkAt
from nightherd.engine.operations.resume import ResumeOptions
from nightherd.engine.operations.submit import SubmitRequest
from nightherd.errors import ConfigNotFoundError
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.schedules.rule import Schedule


class Gateway(Protocol):
    """What can be done about work. Everything is on record once it returns."""

    def submit(self, request: SubmitRequest) -> Job:
        """A new job that waits for a worker."""

    def branch(self, request: SubmitRequest) -> Job:
        """A new job in a branch of the session that it would join; it waits for a worker."""

    def cancel(self, job_id: JobId) -> Job:
        """The job, ended or about to be."""

    def retry(self, job_id: JobId) -> Job:
        """A new job with the same work."""

    def resume(
        self, job_id: JobId, agent: Agent, wish: ResumeOptions, *, at_checkpoint: int | None = None
    ) -> Job:
        """The job that goes on, from that checkpoint if one is named, and waits for a worker."""

    def go_on(self, session_id: SessionId, agent: Agent, wish: ResumeOptions) -> Job:
        """A new job in that session; it waits for a worker."""

    def fork(
        self, session_id: SessionId, at: ForkAt | None, agent: Agent, wish: ResumeOptions
    ) -> Job:
        """A new job in a branch of that session, there or at its end; it waits for a worker."""

    def resume_session(self, session_id: SessionId, agent: Agent, wish: ResumeOptions) -> Job:
        """The job that goes on in the session: the one that was cut off in it, else a new one."""

    def run_schedule(self, agent: Agent, schedule: Schedule) -> Job:
        """A job of the schedule."""

    def override(self, agent: Agent, schedule: Schedule, said: Override) -> None:
        """The schedule is so from now on."""

    def reset_agent(self, name: str) -> None:
        """The agent without its error."""


def open_gateway(invocation: Invocation, fleet: Fleet | None = None) -> Gateway:
    """The way to take now; `fleet` is what the command itself found in the fleet file."""
    from nightherd.cli.gateway.socket import SocketGateway

    state_dir = invocation.new_state_directory()
    direct = DirectGateway(state_dir, invocation.environ, fleet)
    record = find_daemon(state_dir)
    if record is None or record.socket is None or not _is_up_to_date(record, _file(invocation)):
        return direct
    made: Gateway = SocketGateway(direct)
    return made


def _file(invocation: Invocation) -> Path | None:
    try:
        return invocation.fleet_file()
    except ConfigNotFoundError:
        return None


def _is_up_to_date(record: DaemonRecord, file: Path | None) -> bool:
    """Whether the running fleet is the one of that file, as it is now: else it would do something else."""
    if file is None:
        return True
    try:
        changed_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError:
        return False
    return record.config == str(file) and not record.problems and changed_at < record.loaded_at
