"""`/v1/slack/AGENT`: requests of Slack for a bot in HTTP mode, signed by Slack and checked by the bot's connection."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from nightherd.errors import NotFoundError
from nightherd.model.chat.platform import Platform, bot_id
from nightherd.web.access.caller import public
from nightherd.web.api_context import OnSite

PREFIX = "/v1/slack"

router = APIRouter(prefix=PREFIX, tags=["chat"])


# Slack's own form, which no other client has a use for: it is not in the API's description.
@router.post("/{agent}", include_in_schema=False)
@public
async def take_request(site: OnSite, request: Request, agent: str) -> Response:
    """An event, a command or a press of a button for the agent's bot; answered once it cannot be lost."""
    connection = site.bot_requests(bot_id(Platform.SLACK, agent))
    if connection is None:
        raise NotFoundError(f"no bot {agent!r} takes requests of Slack")
    answer = await connection.take_request(dict(request.headers), await request.body())
    return Response(answer.text, status_code=answer.status, media_type=answer.media_type)
