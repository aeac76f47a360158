"""The process that sends notifications: each line of standard input is one, and is answered by a line of JSON.

It sends what is due for one target, ends by itself when a message takes too long or its parent is gone, and is told
nothing but the messages.
Nothing that Apprise or a server says is passed on, except the status and `Retry-After`, and warnings of services
without either, which the parent masks.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import apprise
import requests
from apprise.manager_plugins import NotificationManager

from nightherd.model.notifications.target import DISCORD_BOT, check_url, scheme_of
from nightherd.runtimes.notify.guard import Guard

DISCORD_LIMIT = 2_000
WARNING_LIMIT = 200
NICENESS = 10
"""Jobs come first."""
LOADING_S = 15.0
"""What loading the services may take besides."""


class Exchange:
    """What was seen of requests and answers."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with another message."""
        self.status: int | None = None
        self.retry_after: str | None = None
        self.failure: str | None = None
        self.warning: str | None = None

    def watch(self) -> None:
        """Follow no redirect, use no proxy, and keep the status of the last answer, for every request from now on."""
        send = requests.Session.send

        def watched(session: Any, request: Any, **options: Any) -> Any:
            # A proxy would connect where this process may not.
            options.update(allow_redirects=False, proxies={})
            session.trust_env = False
            self.status, self.retry_after = None, None
            try:
                response = send(session, request, **options)
            except Exception as error:
                self.failure = type(error).__name__
                raise
            self.status = response.status_code
            self.retry_after = response.headers.get("Retry-After")
            return response

        cast("Any", requests.Session).send = watched

    def listen(self) -> None:
        """Keep the last warning of Apprise."""
        handler = logging.Handler(logging.WARNING)

        def keep(record: logging.LogRecord) -> None:
            self.warning = record.getMessage()[:WARNING_LIMIT]

        handler.emit = keep  # type: ignore[method-assign] # a handler of one function
        logger = logging.getLogger("apprise")
        logger.propagate = False
        logger.addHandler(handler)


def begin_timer(request: Mapping[str, Any], more_s: float = 0.0) -> None:
    """End this process when its time is up: whatever hangs, and whoever was killed meanwhile."""
    signal.setitimer(signal.ITIMER_REAL, float(request["timeout_s"]) + more_s)


def send_by_apprise(request: Mapping[str, Any]) -> str | None:
    """Send it; return why the address cannot be used at all, None when it could be tried."""
    asset = apprise.AppriseAsset(
        plugin_paths=[],
        storage_mode=apprise.PersistentStoreMode.MEMORY,
        allow_templates=False,
        service_timeout=float(request["timeout_s"]),
    )
    asset.app_id = asset.app_desc = "nightherd"
    asset.app_url = ""
    asset.http_redirects = False
    asset.async_mode = False
    service = apprise.Apprise(asset=asset)
    if not service.add(request["url"]):
        return "Apprise cannot use this url; look up the form of its service"
    html = request.get("html")
    begin_timer(request)
    taken = service.notify(
        title=request["title"],
        body=html or request["text"],
        body_format=apprise.NotifyFormat.HTML if html else apprise.NotifyFormat.TEXT,
        interpret_escapes=False,
    )
    if not taken:
        raise NotTakenError
    return None


def send_as_discord_bot(request: Mapping[str, Any]) -> str | None:
    """Write to a channel as a bot; nobody is mentioned, whatever the text says."""
    parts = urlsplit(request["url"])
    token, channel = unquote(parts.username or ""), parts.hostname or ""
    if not token or not channel.isdecimal():
        return "the Discord channel is a number, and the bot needs a token"
    begin_timer(request)
    text = f"**{request['title']}**\n{request['text']}"
    if len(text) > DISCORD_LIMIT:
        text = text[: DISCORD_LIMIT - 1] + "…"
    response = requests.post(
        f"{request['discord_api']}/channels/{channel}/messages",
        json={"content": text, "allowed_mentions": {"parse": []}},
        headers={"Authorization": f"Bot {token}", "User-Agent": "nightherd"},
        timeout=float(request["timeout_s"]),
    )
    if not response.ok:
        raise NotTakenError
    return None


class NotTakenError(Exception):
    """The service did not take the message."""


def answer_to(request: Mapping[str, Any], guard: Guard, exchange: Exchange) -> dict[str, Any]:
    """Send the message and say what came of it."""
    try:
        url = check_url(request["url"])
        is_bot = scheme_of(url) == DISCORD_BOT
        unusable = send_as_discord_bot(request) if is_bot else send_by_apprise(request)
        if unusable is not None:
            return {"ok": False, "unusable": unusable}
    except Exception as error:  # noqa: BLE001 (an edge: whatever a service does, the parent is told that it failed)
        is_ours = isinstance(error, NotTakenError)
        return {
            "ok": False,
            "refused": guard.refused,
            "status": exchange.status,
            "retry_after": exchange.retry_after,
            "failure": exchange.failure or (None if is_ours else type(error).__name__),
            "warning": exchange.warning,
        }
    return {"ok": True, "status": exchange.status}


def main() -> int:
    """Send the messages on standard input, until it ends."""
    os.nice(NICENESS)
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    exchange, guard = Exchange(), None
    exchange.watch()
    exchange.listen()
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        begin_timer(request, more_s=LOADING_S)
        if guard is None:
            # Loaded before the guard is there: Python may keep what it compiled.
            cast("Any", NotificationManager)().load_modules()
            guard = Guard(tuple(request["allow_hosts"]))
            guard.install()
        exchange.forget()
        guard.refused = None
        answer = answer_to(request, guard, exchange)
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.write(answers, json.dumps(answer).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
