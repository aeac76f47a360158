"""What both children share: a watched exchange with a server, a timer, and the loop that answers requests.

A child never follows a redirect and never uses a proxy. It ends by itself when a message takes too long.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

import requests

from nightherd.runtimes.notify.guard import Guard

WARNING_LIMIT = 200
NICENESS = 10
"""Jobs come first."""
LOADING_S = 15.0
"""What loading the services may take besides."""


class NotTakenError(Exception):
    """The service did not take the message."""


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

    def listen(self, name: str) -> None:
        """Keep the last warning of the logger with that name."""
        handler = logging.Handler(logging.WARNING)

        def keep(record: logging.LogRecord) -> None:
            self.warning = record.getMessage()[:WARNING_LIMIT]

        handler.emit = keep  # type: ignore[method-assign] # a handler of one function
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.addHandler(handler)


Sending = Callable[[Mapping[str, Any]], str | None]
"""Sends one request; returns why its address cannot be used at all, None when it could be tried."""


def begin_timer(request: Mapping[str, Any], more_s: float = 0.0) -> None:
    """End this process when its time is up: whatever hangs, and whoever was killed meanwhile."""
    signal.setitimer(signal.ITIMER_REAL, float(request["timeout_s"]) + more_s)


def answer_to(
    send: Sending, request: Mapping[str, Any], guard: Guard, exchange: Exchange
) -> dict[str, Any]:
    """Send the message and say what came of it."""
    try:
        unusable = send(request)
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


def serve(send: Sending, exchange: Exchange, load: Callable[[], None]) -> None:
    """Answer the requests on standard input, until it ends. `load` loads what may not be loaded under the guard."""
    os.nice(NICENESS)
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    exchange.watch()
    guard = None
    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        begin_timer(request, more_s=LOADING_S)
        if guard is None:
            # Loaded before the guard is there: Python may keep what it compiled. Of what it loads later it keeps nothing.
            load()
            sys.dont_write_bytecode = True
            guard = Guard(tuple(request["allow_hosts"]))
            guard.install()
        exchange.forget()
        guard.refused = None
        answer = answer_to(send, request, guard, exchange)
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.write(answers, json.dumps(answer).encode() + b"\n")
