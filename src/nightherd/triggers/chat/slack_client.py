"""Calls of Slack's Web API with slack_sdk: each is tried once, and no answer has anything secret in it."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import anyio
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from nightherd.errors import ConfigError, NightherdError
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.settings import API_URL_VARIABLES
from nightherd.model.webhooks import is_loopback
from nightherd.triggers.chat.slack_errors import SlackAnswer, answer_of

SLACK = "slack.com"
API_URL = f"https://{SLACK}/api/"
TIMEOUT_S = 30.0
READ_TRIES = 3
CLOSING_S = 2.0
LONGEST_READ_PAUSE_S = 60.0
"""A read waits no longer than this when Slack asks to be left alone; it fails then."""
PAGE = 200
"""Messages asked for at once."""


class SlackClient:
    """The Web API, as one bot may use it."""

    def __init__(self, token: str, api_url: str | None) -> None:
        self._token = token
        self.api_url = checked_api_url(api_url)
        self.logger = silent_logger()
        self.web = self.new_web(token)
        self.on_refused: Callable[[SlackAnswer], None] = _ignore
        """Called when Slack does not accept the bot's token any more."""

    def new_web(self, token: str | None) -> AsyncWebClient:
        """Return a client of slack_sdk. It repeats nothing by itself: a message could be sent twice."""
        web = AsyncWebClient(
            token=token,
            base_url=self.api_url,
            timeout=int(TIMEOUT_S),
            logger=self.logger,
            retry_handlers=[],
        )
        if is_loopback(urlsplit(self.api_url).hostname or ""):
            web.proxy = None  # slack_sdk takes one from the environment for every address
        return web

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        """Keep connections open between calls while the context lasts."""
        session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S))
        self.web.session = session
        try:
            yield
        finally:
            self.web.session = None
            with anyio.move_on_after(CLOSING_S, shield=True):
                await session.close()

    async def call(self, method: str, *, token: str | None = None, **arguments: Any) -> SlackAnswer:
        """Call a method once. Arguments that are None are left out."""
        headers = None if token is None else {"Authorization": f"Bearer {token}"}
        try:
            response = await self.web.api_call(method, data=_form(arguments), headers=headers)
            answer = answer_of(response.data, response.status_code, response.headers)
        except SlackApiError as error:
            answer = _failed(error)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            answer = SlackAnswer(error="unreachable")
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError, RuntimeError):
            # RuntimeError: aiohttp's for a session that is closed meanwhile.
            answer = SlackAnswer(error="no_answer", is_uncertain=True)
        if answer.is_refusing and token is None:
            self.on_refused(answer)
        return answer

    async def read(self, method: str, **arguments: Any) -> SlackAnswer:
        """Call a method that changes nothing: again after a short pause, if Slack asks for one."""
        for _ in range(READ_TRIES - 1):
            answer = await self.call(method, **arguments)
            if answer.retry_after is None:
                return answer
            if answer.retry_after.total_seconds() > LONGEST_READ_PAUSE_S:
                return answer
            await anyio.sleep(answer.retry_after.total_seconds())
        return await self.call(method, **arguments)

    async def pages(
        self, method: str, **arguments: Any
    ) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        """Give the messages of a channel or thread page by page. `NightherdError` when Slack refuses.

        A thread that was deleted has none.
        """
        cursor: str | None = None
        while True:
            answer = await self.read(method, limit=PAGE, cursor=cursor, **arguments)
            if answer.error == "thread_not_found":
                return
            if not answer.is_ok:
                raise NightherdError(f"the history cannot be read: {answer.reason}")
            messages = answer.data.get("messages")
            yield [one for one in messages or () if isinstance(one, dict)]
            said = (answer.data.get("response_metadata") or {}).get("next_cursor")
            if not said or said == cursor:
                return
            cursor = str(said)

    def is_ours(self, url: str) -> bool:
        """Whether an address is one of the API's own host, or of Slack: only those see the token."""
        api, parts = urlsplit(self.api_url), urlsplit(url)
        host = parts.hostname or ""
        if parts.username is not None or parts.scheme != api.scheme:
            return False
        if (host, parts.port) == (api.hostname, api.port):
            return True
        families = (SLACK, api.hostname or SLACK)
        is_family = any(host == one or host.endswith(f".{one}") for one in families)
        return api.scheme == "https" and parts.port is None and is_family

    def auth_header(self) -> Mapping[str, str]:
        """What shows Slack that a download is ours. It is sent to Slack's own hosts only."""
        return {"Authorization": f"Bearer {self._token}"}

    def __repr__(self) -> str:
        return f"SlackClient({urlsplit(self.api_url).hostname!r})"


def checked_api_url(url: str | None) -> str:
    """Return the address of the Web API. `ConfigError` for one by which tokens could be read on the way."""
    if not url:
        return API_URL
    parts = urlsplit(url)
    is_safe = parts.scheme == "https" or (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    )
    if not is_safe or not parts.hostname or parts.username is not None:
        name = API_URL_VARIABLES[Platform.SLACK]
        raise ConfigError(
            f"{name} is not an https address", hint=f"unset {name}, or name the Web API's address"
        )
    return url if url.endswith("/") else f"{url}/"


def silent_logger() -> logging.Logger:
    """Return a logger that writes nothing: what the vendor's code logs may hold messages and addresses of sockets."""
    logger = logging.Logger("nightherd.slack", level=logging.CRITICAL + 1)  # noqa: LOG001 (of its own)
    logger.propagate = False
    logger.disabled = True
    return logger


def _form(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in arguments.items()
        if value is not None
    }


def _failed(error: SlackApiError) -> SlackAnswer:
    response = error.response
    status = getattr(response, "status_code", None) or getattr(response, "status", 0)
    return answer_of(getattr(response, "data", None), int(status or 0), dict(response.headers))


def _ignore(answer: SlackAnswer) -> None:
    """Do nothing."""
