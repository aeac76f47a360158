"""What comes in from Slack, taken in Bolt's middleware: Bolt acknowledges once that has returned, and not before.

Listeners run after the acknowledgement, so there are none. An exception here means no acknowledgement (Socket
Mode) or status 500 (HTTP): Slack delivers again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.webhook.async_client import AsyncWebhookClient

from nightherd.model.chat.platform import BotId
from nightherd.model.chat.text.slack import to_mrkdwn
from nightherd.model.webhooks import is_loopback
from nightherd.ports.chat import ChatReceiver
from nightherd.triggers.chat.slack_client import SlackClient
from nightherd.triggers.chat.slack_errors import SlackAnswer
from nightherd.triggers.chat.slack_events import (
    Me,
    Pressed,
    comment_view,
    incoming_message,
    is_spoken,
    order_key,
    pressed_button,
    slash_command,
    submitted_comment,
)
from nightherd.triggers.chat.slack_names import SlackNames
from nightherd.triggers.chat.slack_posts import SlackPosts
from nightherd.triggers.chat.slack_socket import SlackSocket
from nightherd.triggers.chat.slack_turns import Turns

ACKNOWLEDGED_WITHIN_S = 2.0
"""Slack waits three seconds for the answer to a command or a press; a later one is sent by itself."""
REMEMBERED = 5_000
"""Messages that were taken: Slack sends one that names the bot twice, and again what was acknowledged too late."""
TOO_LATE = "Slack did not open the window in time. Please press the button again."
FAILED = "That failed; the operator's log says more."


class SlackIntake:
    """Hands what comes in to the receiver, as long as the connection runs."""

    def __init__(
        self,
        client: SlackClient,
        names: SlackNames,
        posts: SlackPosts,
        bot: BotId,
        me: Me,
        receiver: ChatReceiver,
        tasks: TaskGroup,
        signing_secret: str | None,
    ) -> None:
        self._client = client
        self._names = names
        self._posts = posts
        self._bot = bot
        self._me = me
        self._receiver = receiver
        self._tasks = tasks
        self._turns = Turns()
        self._taken: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._app = self._new_app(signing_secret)

    def _new_app(self, signing_secret: str | None) -> AsyncApp:
        """Return the Bolt app. It has no token: nothing is sent by it, and what it would log holds none."""
        me = self._me

        async def authorize() -> AuthorizeResult:
            # Known already. Bolt's own way asks Slack, and acknowledges events when that fails.
            return AuthorizeResult(enterprise_id=None, team_id=me.team_id, bot_user_id=me.user_id)

        async def take(body: dict[str, Any]) -> BoltResponse:
            return await self._take(body)

        app = AsyncApp(
            name="nightherd",
            logger=self._client.logger,
            client=self._client.new_web(None),
            authorize=authorize,
            signing_secret=signing_secret or "",
            request_verification_enabled=signing_secret is not None,
            ignoring_self_events_enabled=False,
        )
        app.middleware(take)
        return app

    async def take_envelope(self, socket: SlackSocket, request: SocketModeRequest) -> None:
        """Take what came by Socket Mode, and acknowledge it then."""
        try:
            async with self._turns.turn(order_key(request.payload)):
                response = await run_async_bolt_app(self._app, request)
            await send_async_response(socket, request, response, 0.0)
        except Exception:  # noqa: BLE001 (an edge: what Bolt cannot read is not acknowledged, and ends no connection)
            return

    async def take_request(self, request: AsyncBoltRequest) -> BoltResponse:
        """Take what came by HTTP; the response is Slack's acknowledgement.

        It is done in a task of the connection: when that ends, nothing more is handed on, and the status is 503.
        """
        responses = [BoltResponse(status=503, body="")]
        is_done = anyio.Event()

        async def run() -> None:
            try:
                async with self._turns.turn(order_key(request.body)):
                    responses.append(await self._app.async_dispatch(request))
            finally:
                is_done.set()

        self._tasks.start_soon(run)
        await is_done.wait()
        return responses[-1]

    async def _take(self, body: Mapping[str, Any]) -> BoltResponse:
        """Take what came in; what this returns is the acknowledgement."""
        match body.get("type"):
            case "event_callback":
                await self._take_event(body.get("event") or {})
            case "block_actions":
                return await self._take_button(body)
            case "view_submission":
                pressed = submitted_comment(body)
                if pressed is not None:
                    await self._press(pressed)
            case _:
                if "command" in body:
                    return await self._take_command(body)
        return _done()

    async def _take_event(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "app_uninstalled":
            self._client.on_refused(SlackAnswer(error="app_uninstalled"))
        elif kind == "tokens_revoked" and self._me.user_id in (event.get("tokens") or {}).get("bot", ()):  # fmt: skip
            self._client.on_refused(SlackAnswer(error="token_revoked"))
        elif is_spoken(event, self._me) and isinstance(event.get("channel"), str):
            await self._take_message(event, event["channel"])

    async def _take_message(self, event: Mapping[str, Any], channel: str) -> None:
        key = (channel, event["ts"])
        if key in self._taken:
            return
        people, channels = await self._names.of_message(event)
        if self._names.is_bot(str(event.get("user"))):
            return
        message = incoming_message(
            event, channel=channel, bot=self._bot, me=self._me, people=people, channels=channels
        )
        await self._receiver.message(message)
        self._taken[key] = None
        while len(self._taken) > REMEMBERED:
            self._taken.popitem(last=False)

    async def _take_button(self, body: Mapping[str, Any]) -> BoltResponse:
        pressed = pressed_button(body)
        if pressed is None:
            return _done()
        if not pressed.opens_window:
            await self._press(pressed)
            return _done()
        answer = await self._client.call(
            "views.open", trigger_id=pressed.trigger_id, view=comment_view(pressed)
        )
        if not answer.is_ok:
            await self._posts.whisper(pressed.place, pressed.user_id, TOO_LATE)
        return _done()

    async def _press(self, pressed: Pressed) -> None:
        """Hand a press on. It is acknowledged when that is done, or when Slack would wait no longer."""

        async def press() -> None:
            names = await self._names.people([pressed.user_id])
            name = names.get(pressed.user_id, pressed.user_name)
            text = await self._receiver.press(pressed.press(self._bot, name))
            if text:
                await self._posts.whisper(pressed.place, pressed.user_id, to_mrkdwn(text))

        async def failed() -> None:
            await self._posts.whisper(pressed.place, pressed.user_id, FAILED)

        await self._within_time(press, failed)

    async def _take_command(self, body: Mapping[str, Any]) -> BoltResponse:
        user = str(body.get("user_id") or "")
        texts: list[str] = []
        is_late = False

        async def say(text: str) -> None:
            if is_late:
                await self._respond(str(body.get("response_url") or ""), to_mrkdwn(text))
            else:
                texts.append(text)

        async def carry_out() -> None:
            names = await self._names.people([user])
            name = names.get(user, str(body.get("user_name") or user))
            await say(await self._receiver.command(slash_command(body, self._bot, name)))

        async def failed() -> None:
            await say(FAILED)

        await self._within_time(carry_out, failed)
        is_late = not texts
        if is_late:
            return _done()
        shown = {"response_type": "ephemeral", "text": to_mrkdwn(texts[0])}
        headers: dict[str, str | Sequence[str]] = {"content-type": "application/json;charset=utf-8"}
        return BoltResponse(status=200, body=json.dumps(shown), headers=headers)

    async def _within_time(
        self, work: Callable[[], Awaitable[None]], failed: Callable[[], Awaitable[None]]
    ) -> None:
        """Return when the work is done, or when Slack would wait no longer; it goes on then."""
        is_done = anyio.Event()

        async def run() -> None:
            try:
                await work()
            except Exception:  # noqa: BLE001 (an edge: the person is told, and the connection goes on)
                await failed()
            finally:
                is_done.set()

        self._tasks.start_soon(run)
        with anyio.move_on_after(ACKNOWLEDGED_WITHIN_S):
            await is_done.wait()

    async def _respond(self, url: str, text: str) -> None:
        """Answer a command late. The address came with the command, and is Slack's own."""
        if not self._client.is_ours(url):
            return
        respond = AsyncWebhookClient(url, logger=self._client.logger, retry_handlers=[])
        if is_loopback(urlsplit(url).hostname or ""):
            respond.proxy = None
        try:
            await respond.send(text=text, response_type="ephemeral")
        except Exception:  # noqa: BLE001 (an edge: the answer of a command is not worth more)
            return


def _done() -> BoltResponse:
    return BoltResponse(status=200, body="")
