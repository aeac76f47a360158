"""`/v1/operations`: requests of commands on this machine, as they are; served on the socket only (`guard.py`)."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request, Response

from nightherd.engine.operations.inbox import Answered
from nightherd.engine.operations.new_job import Submitted
from nightherd.engine.operations.requests import decode_request
from nightherd.web.api_context import OnSite
from nightherd.web.documents import JSON
from nightherd.web.person import FromSender, perform_for
from nightherd.web.socket_file import OPERATIONS

router = APIRouter(include_in_schema=False)


@router.post(OPERATIONS)
async def perform_request(site: OnSite, sender: FromSender, request: Request) -> Response:
    """Carry out a request; answered, with the id of its job, once nothing can lose it."""
    result = await perform_for(site, sender, decode_request(await request.body()))
    job = result.job if isinstance(result, Submitted | Answered) else result
    data = {"job_id": None if job is None else job.id}
    return Response(msgspec.json.encode(data), media_type=JSON)
