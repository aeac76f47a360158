"""The gateway through the running fleet: it is asked, and when it does not do it, it is done without it.

What it refuses is tried directly, so that refusals are the same either way. When nobody knows whether it was
done, because the answer did not come, doing it directly does it no second time: what makes a job carries a
key, what is said twice is said once, and the running fleet does nothing any more that was given up here.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import quote

from msgspec.structs import replace

from nightherd.cli.gateway.direct import DirectGateway, Override
from nightherd.daemon.record import SERVING, SOCKET, find_daemon
from nightherd.engine.operations.fork import AtCheckpoint, AtEvent, AtLastTurn, AtMessage, ForkAt
from nightherd.engine.operations.resume import ResumeOptions
from nightherd.engine.operations.submit import SubmitRequest, prompt_of
from nightherd.errors import NoDaemonError
from nightherd.host.process import boot_id
from nightherd.model.agents.agent import Agent
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.limits.limits import written_limits
from nightherd.model.schedules.rule import Schedule
from nightherd.web.read_in_thread import UNTIL, until_text
from nightherd.web.requests import IF_HELD, REFUSE
from nightherd.web.socket_file import connect
from nightherd.wiring.stores import known_secrets, random_text, system_clock

PATIENCE_S = 5.0
"""How long the running fleet may take; it is busy, or frozen, when it takes longer."""
GRACE_S = 1.0
KEY_LENGTH = 24
DONE, UNCERTAIN = 300, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of a question: what was answered, or whether it may have been done all the same."""

    data: Mapping[str, Any] | None = None
    is_uncertain: bool = False


class SocketGateway:
    """Asks over the socket of `direct`'s state directory."""

    def __init__(self, direct: DirectGateway, patience_s: float = PATIENCE_S) -> None:
        self._direct = direct
        self._patience_s = patience_s

    def submit(self, request: SubmitRequest) -> Job:
        """A new job that waits for a worker."""
        key = _key()
        done = self._ask("/v1/jobs", self._body(request), key)
        again = replace(request, dedupe_key=f"api:{key}")
        return self._made(done) or self._direct.submit(again)

    def branch(self, request: SubmitRequest) -> Job:
        """A new job in a branch of the session that it would join; it waits for a worker."""
        key = _key()
        done = self._ask("/v1/jobs", {**self._body(request), "branch": True}, key)
        again = replace(request, dedupe_key=f"api:{key}")
        return self._made(done) or self._direct.branch(again)

    def cancel(self, job_id: JobId) -> Job:
        """The job, ended or about to be."""
        done = self._ask(f"/v1/jobs/{job_id}/cancel")
        if done.is_uncertain:
            job = self._direct.find_job(job_id)
            if job.cancel_requested_at is not None or job.status is JobStatus.CANCELLED:
                return job
        return self._made(done) or self._direct.cancel(job_id)

    def retry(self, job_id: JobId) -> Job:
        """A new job with the same work."""
        key = _key()
        done = self._ask(f"/v1/jobs/{job_id}/retry", key=key)
        return self._made(done) or self._direct.retry(job_id, f"retry:{job_id}:{key}")

    def resume(
        self, job_id: JobId, agent: Agent, wish: ResumeOptions, *, at_checkpoint: int | None = None
    ) -> Job:
        """The job that goes on, from that checkpoint if one is named, and waits for a worker."""
        key, before = _key(), self._direct.find_job(job_id)
        limits = written_limits(wish.overrides.limits or {})
        prompt = self._masked(wish.prompt)
        body = {"prompt": prompt, "limits": limits, "at_checkpoint": at_checkpoint}
        done = self._ask(f"/v1/jobs/{job_id}/resume", body, key)
        if done.is_uncertain and before.status is JobStatus.SUSPENDED:
            job = self._direct.find_job(job_id)
            if job.status is not JobStatus.SUSPENDED:
                return job
        key = f"resume:{job_id}:{key}"
        return self._made(done) or self._direct.resume(
            job_id, agent, wish, key, at_checkpoint=at_checkpoint
        )

    def go_on(self, session_id: SessionId, agent: Agent, wish: ResumeOptions) -> Job:
        """A new job in that session; it waits for a worker."""
        key = _key()
        done = self._ask("/v1/jobs", {**self._asked(agent, wish), "resume": session_id}, key)
        return self._made(done) or self._direct.go_on(session_id, agent, wish, f"api:{key}")

    def fork(
        self, session_id: SessionId, at: ForkAt | None, agent: Agent, wish: ResumeOptions
    ) -> Job:
        """A new job in a branch of that session, there or at its end; it waits for a worker."""
        key = _key()
        from_session = "resume" if isinstance(at, AtLastTurn) else "fork"
        body = {**self._asked(agent, wish), from_session: session_id, **_place(at)}
        done = self._ask("/v1/jobs", body, key)
        return self._made(done) or self._direct.fork(session_id, at, agent, wish, f"api:{key}")

    def resume_session(self, session_id: SessionId, agent: Agent, wish: ResumeOptions) -> Job:
        """The job that goes on in the session: the one that was cut off in it, else a new one."""
        key, before = _key(), self._direct.last_job(session_id)
        body = {"agent": agent.name, "prompt": self._masked(wish.prompt)}
        done = self._ask(f"/v1/sessions/{session_id}/resume", body, key)
        if done.is_uncertain and before is not None:
            now = self._direct.find_job(before.id)
            if _went_on(before, now):
                return now
        key = f"session:{session_id}:{key}"
        return self._made(done) or self._direct.resume_session(session_id, agent, wish, key)

    def run_schedule(self, agent: Agent, schedule: Schedule) -> Job:
        """A job of the schedule."""
        key, name = _key(), f"{agent.name}/{schedule.name}"
        done = self._ask(_path(agent, schedule, "run"), key=key)
        return self._made(done) or self._direct.run_schedule(
            agent, schedule, f"schedule:{name}:{key}"
        )

    def override(self, agent: Agent, schedule: Schedule, said: Override) -> None:
        """The schedule is so from now on."""
        body: dict[str, Any] = {"by": said.by}
        if said.reset:
            verb = "reset"
        elif said.rule is not None:
            verb, body = "set", {**body, "rule": said.rule}
        else:
            verb = "enable" if said.enabled else "disable"
        if self._ask(_path(agent, schedule, verb), body).data is None:
            self._direct.override(agent, schedule, said)

    def reset_agent(self, name: str) -> None:
        """The agent without its error."""
        if self._ask(f"/v1/agents/{quote(name, safe='')}/reset").data is None:
            self._direct.reset_agent(name)

    def _made(self, done: Asked) -> Job | None:
        """The job that was answered with, as it is on record."""
        return None if done.data is None else self._direct.find_job(JobId(done.data["id"]))

    def _body(self, request: SubmitRequest) -> dict[str, Any]:
        """The request in the API's words; secrets that only this process knows are not in it."""
        terms = request.session_terms
        wish = ResumeOptions(
            inputs=request.inputs, overrides=request.overrides, priority=request.priority
        )
        return {
            **self._wished(wish),
            "agent": request.agent.name,
            "prompt": self._masked(prompt_of(request)),
            "channel": request.channel_id,
            "session": None if terms is None else terms.mode.value,
        }

    def _asked(self, agent: Agent, wish: ResumeOptions) -> dict[str, Any]:
        prompt = self._masked(wish.prompt)
        return {**self._wished(wish), "agent": agent.name, "prompt": prompt}

    def _wished(self, wish: ResumeOptions) -> dict[str, Any]:
        kept = wish.overrides.document()
        limits = written_limits(kept.pop("limits", {}))
        inputs = self._masked(dict(wish.inputs))
        return {"inputs": inputs, "priority": wish.priority, "limits": limits, **kept}

    def _masked(self, value: Any) -> Any:
        direct = self._direct
        return known_secrets(direct.fleet, direct.environ, direct.state_dir).mask(value)

    def _ask(
        self, path: str, body: Mapping[str, Any] | None = None, key: str | None = None
    ) -> Asked:
        until = system_clock().monotonic() + self._patience_s
        headers = {UNTIL: until_text(boot_id(), until), IF_HELD: REFUSE}
        if body is not None:
            headers["content-type"] = "application/json"
        if key is not None:
            headers["idempotency-key"] = key
        data = None if body is None else json.dumps(body).encode()
        connection = SocketConnection(self._direct.state_dir, self._patience_s + GRACE_S)
        try:
            connection.request("POST", path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status < DONE:
                return Asked(data=json.loads(text)["data"])
            return Asked(is_uncertain=answer.status >= UNCERTAIN)
        except NoDaemonError:
            return Asked()
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return Asked(is_uncertain=True)
        finally:
            connection.close()


def _went_on(before: Job, now: Job) -> bool:
    """Whether the job that was cut off is so no more."""
    if before.status is JobStatus.SUSPENDED:
        return now.status is not JobStatus.SUSPENDED
    return before.status is JobStatus.RUNNING and now.status is JobStatus.PENDING


def _place(at: ForkAt | None) -> dict[str, Any]:
    """Where a branch begins, in the API's words."""
    match at:
        case None:
            return {}
        case AtLastTurn():
            return {"branch": True}
        case AtMessage(number=number):
            return {"at_message": number}
        case AtEvent(seq=seq, job_id=job_id):
            return {"at_seq": seq, "at_job": job_id}
        case AtCheckpoint(number=number, job_id=job_id):
            return {"at_checkpoint": number, "at_job": job_id}
    assert_never(at)


def _key() -> str:
    return random_text()(KEY_LENGTH)


def _path(agent: Agent, schedule: Schedule, verb: str) -> str:
    return f"/v1/schedules/{quote(agent.name, safe='')}/{quote(schedule.name, safe='')}/{verb}"


TIMEOUT_S = 60.0


class SocketConnection(http.client.HTTPConnection):
    """A connection to whoever serves `state_dir`."""

    def __init__(self, state_dir: Path, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._state_dir = state_dir
        self._timeout_s = timeout_s

    def connect(self) -> None:
        """Connect; `NoDaemonError` when nobody listens."""
        try:
            self.sock: socket.socket = connect(self._state_dir / SOCKET, self._timeout_s)
        except OSError as error:
            raise self._nobody() from error

    def _nobody(self) -> NoDaemonError:
        record = find_daemon(self._state_dir)
        if record is not None and record.socket is None:
            return NoDaemonError(
                f"process {record.pid} runs the fleet without its API",
                hint=f"{SERVING} and nightherd restart",
            )
        return NoDaemonError(
            f"nobody serves at {self._state_dir / SOCKET}", hint="nightherd start --detach"
        )
