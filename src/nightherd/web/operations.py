"""`/v1/operations`, and requests carried out for their sender: one that gives agents more is refused for an agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, overload

import msgspec
from anyio import to_thread
from fastapi import APIRouter, Depends, Request, Response

from nightherd.engine.operations.inbox import Answered
from nightherd.engine.operations.new_job import Submitted
from nightherd.engine.operations.perform import gives_more, perform
from nightherd.engine.operations.requests import (
    Answer,
    Cancel,
    Resume,
    ResumeSession,
    Retry,
    RunSchedule,
    SetSchedule,
    Submit,
    decode_request,
)
from nightherd.engine.operations.requests import Request as Operation
from nightherd.errors import RefusedError
from nightherd.model.access.role import Role
from nightherd.model.inbox.item import Verdict
from nightherd.model.jobs.job import Job
from nightherd.web.access.caller import FromCaller, caller_of, needs, require
from nightherd.web.api_context import ApiContext, OnSite, context_of
from nightherd.web.documents import JSON
from nightherd.web.socket_file import OPERATIONS
from nightherd.wiring.machine import find_agent_above

PEER = "nightherd.peer"
"""In the scope of a request: what finds the pid of its sender, where that is known."""
PEER_USER = "nightherd.peer_user"
"""In the scope of a request: what finds the user that its sender runs as, where that is known."""


router = APIRouter(include_in_schema=False)


class Sender:
    """Who sent a request."""

    def __init__(self, find_pid: Callable[[], int | None], directory: str) -> None:
        self._find_pid = find_pid
        self._directory = directory

    async def refuse_agents(self, what: str) -> None:
        """`RefusedError` when an agent of this fleet sent it: only a person may give agents more."""
        execution = await to_thread.run_sync(self._agent_above)
        if execution is not None:
            raise RefusedError(
                f"{what} gives agents more permissions, and an agent sent the request (execution {execution})",
                hint="send the request from your own shell",
            )

    async def must_be_person(self, what: str) -> None:
        """`RefusedError` when an agent of this fleet sent the request: only a person may do `what`."""
        execution = await to_thread.run_sync(self._agent_above)
        if execution is not None:
            raise RefusedError(
                f"only a person may {what}, and an agent sent the request (execution {execution})",
                hint="send the request from your own shell",
            )

    def _agent_above(self) -> str | None:
        pid = self._find_pid()
        return None if pid is None else find_agent_above(pid, self._directory)


def sender_of(request: Request) -> Sender:
    """The sender of the request."""
    return Sender(request.scope.get(PEER, lambda: None), context_of(request).directory)


@overload
async def perform_for(site: ApiContext, sender: Sender, request: Submit) -> Submitted: ...


@overload
async def perform_for(
    site: ApiContext,
    sender: Sender,
    request: Retry | Resume | ResumeSession | RunSchedule | Cancel,
) -> Job: ...


@overload
async def perform_for(site: ApiContext, sender: Sender, request: Answer) -> Answered: ...


@overload
async def perform_for(
    site: ApiContext, sender: Sender, request: Operation
) -> Submitted | Job | Answered | None: ...


async def perform_for(
    site: ApiContext, sender: Sender, request: Operation
) -> Submitted | Job | Answered | None:
    """Carry out a request for its sender, and wake the worker and the schedules that may act on it at once."""
    context = site.context
    more = gives_more(request, context.agents)
    if more is not None:
        await sender.refuse_agents(more)
    result = await perform(request, context, rescue=site.rescue)
    site.wake()
    if isinstance(request, Answer) and request.verdict is Verdict.ACCEPT:
        site.reload()
    return result


FromSender = Annotated[Sender, Depends(sender_of)]
"""What an endpoint asks for that carries out a request."""


def person_of(request: Request) -> str:
    """The name of who sent the request, as the guard found it."""
    return caller_of(request).name


FromPerson = Annotated[str, Depends(person_of)]
"""What an endpoint asks for that records who did something."""


@router.post(OPERATIONS)
@needs(Role.OPERATOR)
async def perform_request(
    site: OnSite, sender: FromSender, caller: FromCaller, request: Request
) -> Response:
    """Carry out a request of a command on this machine, served on the socket only (`guard.py`); answered, with the id of its job, once nothing can lose it."""
    operation = decode_request(await request.body())
    if isinstance(operation, SetSchedule):
        require(caller, Role.ADMIN)
    if isinstance(operation, Answer) and operation.verdict is Verdict.ACCEPT:
        require(caller, Role.ADMIN)
    if isinstance(operation, SetSchedule | Answer):
        operation = msgspec.structs.replace(operation, by=caller.name)
    result = await perform_for(site, sender, operation)
    job = result.job if isinstance(result, Submitted | Answered) else result
    data = {"job_id": None if job is None else job.id}
    return Response(msgspec.json.encode(data), media_type=JSON)
