"""Requests that give agents more: refused when an agent of this fleet sends them from this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from anyio import to_thread
from fastapi import Depends, Request

from nightherd.errors import RefusedError
from nightherd.host.machine import find_agent_above
from nightherd.web.api_context import context_of

PEER = "nightherd.peer"
"""In the scope of a request: what finds the pid of its sender, where that can be told."""


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
                f"{what} gives agents more, and an agent asked for it (execution {execution})",
                hint="ask for it from a shell of your own",
            )

    def _agent_above(self) -> str | None:
        pid = self._find_pid()
        return None if pid is None else find_agent_above(pid, self._directory)


def sender_of(request: Request) -> Sender:
    """The sender of the request."""
    return Sender(request.scope.get(PEER, lambda: None), context_of(request).directory)


FromSender = Annotated[Sender, Depends(sender_of)]
"""What an endpoint asks for that gives agents more."""
