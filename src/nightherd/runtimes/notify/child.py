"""The process that sends notifications: each line of standard input is one, and is answered by a line of JSON.

It sends what is due for one target, ends by itself when a message takes too long or its parent is gone, and is told
nothing but the messages.
Nothing that Apprise or a server says is passed on, except the status and `Retry-After`, and warnings of services
without either, which the parent masks.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import apprise
import requests
from apprise.manager_plugins import NotificationManager

from nightherd.model.notifications.target import DISCORD_BOT, check_url, scheme_of
from nightherd.runtimes.notify.exchange import Exchange, NotTakenError, begin_timer, serve

DISCORD_LIMIT = 2_000


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


def send(request: Mapping[str, Any]) -> str | None:
    """Send it the way its address says."""
    url = check_url(request["url"])
    is_bot = scheme_of(url) == DISCORD_BOT
    return send_as_discord_bot(request) if is_bot else send_by_apprise(request)


def load() -> None:
    """Load every service."""
    cast("Any", NotificationManager)().load_modules()


def main() -> int:
    """Send the messages on standard input, until it ends."""
    exchange = Exchange()
    exchange.listen("apprise")
    serve(send, exchange, load)
    return 0


if __name__ == "__main__":
    sys.exit(main())
