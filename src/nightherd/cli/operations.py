"""How commands carry out requests: through the daemon where one runs, else on the state directory.

What the daemon refuses is tried directly, so that a command says the same either way. When the answer does not
come, doing it directly does it no second time: a request that makes a job carries a key, the others are
idempotent, and the daemon drops what it reads after its sender has given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import overload

import anyio
import msgspec

from nightherd.cli.invocation import Invocation
from nightherd.config.acceptance import ensure_recorded
from nightherd.daemon.record import DaemonRecord, find_daemon
from nightherd.decoding import decode_json
from nightherd.engine.operations.agents import Agents
from nightherd.engine.operations.bulk import Bulk, perform_bulk, plan_bulk
from nightherd.engine.operations.inbox import Answered, get_item
from nightherd.engine.operations.new_job import Submitted
from nightherd.engine.operations.perform import check_prompt, gives_more, masked_request, perform
from nightherd.engine.operations.requests import (
    Answer,
    Cancel,
    JobRequest,
    NewJobRequest,
    Request,
    ResetAgent,
    Resume,
    ResumeSession,
    Retry,
    RunSchedule,
    SetSchedule,
    Submit,
    encode_request,
    with_key,
)
from nightherd.engine.operations.resume import OPEN
from nightherd.engine.operations.schedules import check_makes_job
from nightherd.engine.operations.tokens import TOKEN_VARIABLE
from nightherd.errors import AgentBlockedError, ConfigNotFoundError, NoDaemonError
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.ids import JobId
from nightherd.model.jobs.bulk import BulkOutcome
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.views.jobs.jobs import get_job
from nightherd.wiring.machine import boot_id, refuse_agents
from nightherd.wiring.running import is_same_directory, open_fleet_context, rescuer, rescuer_of_job
from nightherd.wiring.runtimes import check_runtime, keeps_claude_transcripts
from nightherd.wiring.stores import known_secrets, open_reader, random_text, system_clock

PATIENCE_S = 5.0
"""How long the daemon may take; it is busy, or frozen, when it takes longer."""
ISSUE_PATIENCE_S = 45.0
"""The same where it may have to ask a tracker of issues first."""
GRACE_S = 1.0
KEY_LENGTH = 24
DONE, UNCERTAIN = 300, 500


class _Done(msgspec.Struct, frozen=True):
    """What the daemon answers."""

    job_id: JobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What became of a request: done, or whether it may have been done all the same."""

    done: _Done | None = None
    is_uncertain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetClient:
    """Carries out requests for the fleet of a state directory."""

    state_dir: Path
    environ: Mapping[str, str]
    fleet: Fleet | None = None
    """The fleet as the command found it; None for requests that need no agent."""
    asks_daemon: bool = False
    patience_s: float = field(default_factory=lambda: PATIENCE_S)

    @overload
    def perform(self, request: JobRequest) -> Job: ...

    @overload
    def perform(self, request: SetSchedule | ResetAgent) -> None: ...

    def perform(self, request: JobRequest | SetSchedule | ResetAgent) -> Job | None:
        """Carry out the request and return its job; everything is on record then."""
        agent = self.check(request) if isinstance(request, NewJobRequest) else None
        if not self.asks_daemon:
            return self.perform_directly(request)
        if isinstance(request, NewJobRequest):
            request = with_key(request, random_text()(KEY_LENGTH))
        if isinstance(request, Submit):
            request = msgspec.structs.replace(request, has_own_key=True)
        earlier = self._find_subject(request)
        answer = self._send(request, agent)
        if answer.done is not None:
            job_id = answer.done.job_id
            return None if job_id is None else self._find_job(job_id)
        if answer.is_uncertain and earlier is not None:
            job = self._find_job(earlier.id)
            if _has_happened(request, earlier, job):
                return job
        return self.perform_directly(request)

    def answer(self, request: Answer) -> Answered:
        """Record an answer to the inbox, and return the item as it is then."""
        refuse_agents(self.state_dir, "answering the inbox")
        if self.asks_daemon:
            sent = self._send(request, None)
            if sent.done is not None or (sent.is_uncertain and self._is_answered(request)):
                job = None if sent.done is None else sent.done.job_id
                with closing(open_reader(self.state_dir)) as reader:
                    found = None if job is None else get_job(reader, job)
                    return Answered(item=get_item(reader, request.item_id), job=found)
        return anyio.run(self._answer, request)

    async def _answer(self, request: Answer) -> Answered:
        fleet = self.known_fleet()
        async with open_fleet_context(self.state_dir, fleet, self.environ) as context:
            ensure_recorded(fleet, self.state_dir, context.clock.now())
            return await perform(request, context, rescue=rescuer(context, fleet))

    def _is_answered(self, request: Answer) -> bool:
        """Whether an answer that the daemon did not acknowledge decided the item all the same."""
        with closing(open_reader(self.state_dir)) as reader:
            item = get_item(reader, request.item_id)
        return (item.decided_by, item.verdict) == (request.by, request.verdict)

    def check(self, request: NewJobRequest) -> Agent:
        """Return the agent of the request. Raises what is wrong with it before there is anything to record it in."""
        agents = agents_of_fleet(self.known_fleet())
        if isinstance(request, RunSchedule):
            check_makes_job(request)
        if isinstance(request, Submit | RunSchedule):
            agent, is_open = agents.get(request.agent), False
        else:
            with closing(open_reader(self.state_dir)) as reader:
                agent = agents.find(request, reader)
                job = get_job(reader, request.job_id) if isinstance(request, Resume) else None
                is_open = job is not None and job.status in OPEN
        if agent.blocked_by:
            raise AgentBlockedError(agent.name, agent.blocked_by)
        if not is_open:
            check_runtime(agent.runtime.name)
        more = gives_more(request, agents.agents)
        if more is not None:
            refuse_agents(self.state_dir, more)
        check_prompt(request, agent)
        return agent

    def perform_directly(self, request: JobRequest | SetSchedule | ResetAgent) -> Job | None:
        """Carry out the request on the state directory, without the daemon."""
        fleet = None if isinstance(request, Cancel) else self.known_fleet()
        result = anyio.run(self._perform, request, fleet)
        return result.job if isinstance(result, Submitted) else result

    async def _perform(
        self, request: JobRequest | SetSchedule | ResetAgent, fleet: Fleet | None
    ) -> Submitted | Job | None:
        async with open_fleet_context(self.state_dir, fleet, self.environ) as context:
            if fleet is not None:
                ensure_recorded(fleet, self.state_dir, context.clock.now())
                rescue = rescuer(context, fleet)
            else:
                assert isinstance(request, Cancel)  # noqa: S101 (the only one without a fleet)
                rescue = rescuer_of_job(context, request.job_id)
            return await perform(request, context, rescue=rescue)

    async def perform_bulk(self, request: Bulk) -> list[BulkOutcome]:
        """Carry out the request for each job on the state directory, and return what became of each."""
        async with open_fleet_context(self.state_dir, self.fleet, self.environ) as context:
            if self.fleet is not None:
                ensure_recorded(self.fleet, self.state_dir, context.clock.now())

            async def carry_out(one: Cancel | Retry) -> Job:
                if self.fleet is None:
                    rescue = rescuer_of_job(context, one.job_id)
                else:
                    rescue = rescuer(context, self.fleet)
                return await perform(one, context, rescue=rescue)

            return await perform_bulk(request, carry_out, context.reader)

    async def plan(self, request: Bulk) -> list[BulkOutcome]:
        """Return what would become of each job."""
        async with open_fleet_context(self.state_dir, self.fleet, self.environ) as context:
            return plan_bulk(request, context)

    def known_fleet(self) -> Fleet:
        """Return the fleet; `ConfigNotFoundError` for a request that needs one where there is none."""
        if self.fleet is None:
            raise ConfigNotFoundError("there is no fleet file")
        return self.fleet

    def _find_job(self, job_id: JobId) -> Job:
        with closing(open_reader(self.state_dir)) as reader:
            return get_job(reader, job_id)

    def _find_subject(self, request: Request) -> Job | None:
        """The job as it is now that the request is about, if it is about one."""
        with closing(open_reader(self.state_dir)) as reader:
            if isinstance(request, Cancel | Resume):
                return get_job(reader, request.job_id)
            if isinstance(request, ResumeSession):
                jobs = reader.jobs_of_session(request.session_id)
                return jobs[-1] if jobs else None
        return None

    def _send(self, request: Request, agent: Agent | None) -> _Answer:
        """Ask the daemon; secrets that only this process knows are not in what is sent."""
        from http.client import HTTPException

        from nightherd.daemon.connection import SocketConnection
        from nightherd.web.read_in_thread import UNTIL, until_text
        from nightherd.web.socket_file import OPERATIONS

        secrets = known_secrets(self.fleet, self.environ, self.state_dir)
        data = encode_request(masked_request(request, agent, secrets))
        patience_s = self.patience_s
        if agent is not None and _may_claim(request, agent):
            patience_s = max(patience_s, ISSUE_PATIENCE_S)
        until = system_clock().monotonic() + patience_s
        headers = {UNTIL: until_text(boot_id(), until), "content-type": "application/json"}
        token = self.environ.get(TOKEN_VARIABLE, "").strip()
        if token:
            headers["authorization"] = f"Bearer {token}"
        connection = SocketConnection(self.state_dir, patience_s + GRACE_S)
        try:
            connection.request("POST", OPERATIONS, data, headers)
            response = connection.getresponse()
            text = response.read()
            if response.status < DONE:
                return _Answer(done=decode_json(text, _Done))
            return _Answer(is_uncertain=response.status >= UNCERTAIN)
        except NoDaemonError:
            return _Answer()
        except (OSError, HTTPException, msgspec.MsgspecError):
            return _Answer(is_uncertain=True)
        finally:
            connection.close()


def _may_claim(request: Request, agent: Agent) -> bool:
    """Whether the request may have to claim an issue."""
    takes_issues = any(one.work is not None for one in agent.schedules.values())
    return takes_issues and isinstance(request, RunSchedule | Retry | Resume | ResumeSession)


def agents_of_fleet(fleet: Fleet) -> Agents:
    """Return the agents that requests may name, where they run on this machine."""
    return Agents(
        agents=fleet.agents,
        withheld=fleet.withheld,
        is_same_directory=is_same_directory,
        keeps_transcripts=keeps_claude_transcripts,
    )


def _has_happened(request: Request, earlier: Job, job: Job) -> bool:
    """Whether the job shows that the request was carried out; `earlier` is the job before that."""
    if isinstance(request, Cancel):
        return job.cancel_requested_at is not None or job.status is JobStatus.CANCELLED
    if earlier.status is JobStatus.SUSPENDED:
        return job.status is not JobStatus.SUSPENDED
    says_more = isinstance(request, Resume | ResumeSession) and request.prompt is not None
    raises = isinstance(request, Resume) and bool(request.limits)
    is_rescued = earlier.status is JobStatus.RUNNING and job.status is JobStatus.PENDING
    return is_rescued and not (says_more or raises)


def open_client(invocation: Invocation, fleet: Fleet | None = None) -> FleetClient:
    """Return what carries out the command's requests; `fleet` is what the command found in the fleet file.

    A daemon is asked where one runs this very fleet, as its file is now.
    """
    state_dir = invocation.new_state_directory()
    record = find_daemon(state_dir)
    return FleetClient(
        state_dir=state_dir,
        environ=invocation.environ,
        fleet=fleet,
        asks_daemon=record is not None
        and record.socket is not None
        and _is_up_to_date(record, _fleet_file(invocation)),
    )


def _fleet_file(invocation: Invocation) -> Path | None:
    try:
        return invocation.fleet_file()
    except ConfigNotFoundError:
        return None


def _is_up_to_date(record: DaemonRecord, file: Path | None) -> bool:
    """Whether the daemon runs the fleet of that file, as it is now: else it would do something else."""
    if file is None:
        return True
    try:
        changed_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError:
        return False
    return record.config == str(file) and not record.problems and changed_at < record.loaded_at
