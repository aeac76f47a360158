"""`/v1/doctor`: what the doctor finds in the state directory and on this machine."""

from __future__ import annotations

from fastapi import APIRouter, Response

from nightherd.model.access.role import Role
from nightherd.views.health.doctor import DoctorDocument
from nightherd.web.access.caller import FromCaller, needs, require
from nightherd.web.api_context import OnSite
from nightherd.web.documents import answers, document
from nightherd.web.problem import problem

PATIENCE_S = 60.0
"""How long a request waits for the doctor."""

router = APIRouter(prefix="/v1/doctor", tags=["fleet"])


@router.get("", responses=answers("doctor", DoctorDocument))
@needs(Role.VIEWER)
async def examine(site: OnSite, caller: FromCaller, verify: bool = False) -> Response:
    """What the doctor finds; it repairs nothing. Requests that come while it examines get the same result.

    `verify` reads every line of journals and ledger, for an operator. 503 after a minute: the examination continues,
    and the next request gets its result.
    """
    if verify:
        require(caller, Role.OPERATOR)
    diagnosis = await site.examiner.diagnose(is_deep=verify, patience_s=PATIENCE_S)
    if diagnosis is None:
        answer = problem(503, "not_yet", "the doctor is still examining; ask again")
        answer.headers["retry-after"] = "10"
        return answer
    return document("doctor", site.context.secrets.mask(diagnosis.data), diagnosis.as_of)
