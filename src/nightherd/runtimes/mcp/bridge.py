"""The bridge: injected servers for a program of their own, as MCP over HTTP on the loopback interface.

Only a caller with the token can call, and only while the run lasts. A call is made in the event loop of whoever
opened the bridge, where its handler belongs.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio import from_thread, lowlevel, to_thread

from nightherd.host.system import random_text
from nightherd.model.agents.mcp import InjectedMcpServerDef, ToolAnswer
from nightherd.model.ids import RandomText
from nightherd.runtimes.mcp.bridge_limits import BridgeLimits
from nightherd.runtimes.mcp.bridge_server import BridgeServer
from nightherd.runtimes.mcp.injected import Call, call_injected

HOST = "127.0.0.1"
TOKEN_LENGTH = 48


@asynccontextmanager
async def bridged(
    servers: Sequence[InjectedMcpServerDef],
    *,
    random_text: RandomText = random_text,
    listener: socket.socket | None = None,
    limits: BridgeLimits | None = None,
) -> AsyncIterator[Mapping[str, Mapping[str, Any]]]:
    """Where each of `servers` is to be reached, as Claude's configuration says it; nowhere once this ends.

    What a handler is doing then is cancelled. Callers connect to `listener`, a TCP socket that listens on the
    loopback address of whichever network they are in; without one, to a new one of this machine's. It is closed in the end.
    """
    if not servers:
        if listener is not None:
            listener.close()
        yield {}
        return
    bridge = _Bridge(servers, random_text(TOKEN_LENGTH), listener, limits or BridgeLimits())
    try:
        yield bridge.entries()
    finally:
        with anyio.CancelScope(shield=True):
            bridge.cancel_calls()
            await to_thread.run_sync(bridge.close)


class _Bridge:
    """A server in threads of its own, and the calls that are being made for it."""

    def __init__(
        self,
        servers: Sequence[InjectedMcpServerDef],
        token: str,
        listener: socket.socket | None,
        limits: BridgeLimits,
    ) -> None:
        self._token = token
        self._loop = lowlevel.current_token()
        self._calls: set[anyio.CancelScope] = set()
        self._is_closed = False
        self._servers = {server.name: server for server in servers}
        listener = listener or socket.create_server((HOST, 0))
        self._http = BridgeServer(listener, self._servers, token, self._call, limits)
        self._thread = threading.Thread(
            target=self._http.serve_forever,
            kwargs={"poll_interval": 0.05},
            name="mcp-bridge",
            daemon=True,
        )
        self._thread.start()

    def entries(self) -> dict[str, dict[str, Any]]:
        port = self._http.server_address[1]
        return {
            name: {
                "type": "http",
                "url": f"http://{HOST}:{port}/{name}",
                "headers": {"Authorization": f"Bearer {self._token}"},
            }
            for name in self._servers
        }

    def _call(self, server: InjectedMcpServerDef, call: Call) -> ToolAnswer:
        """Make a call from another thread; a bridge that closes cuts it off."""
        try:
            return from_thread.run(self._make, server, call, token=self._loop)
        except RuntimeError:  # the loop has ended
            return ToolAnswer(text="the run has ended", is_error=True)

    async def _make(self, server: InjectedMcpServerDef, call: Call) -> ToolAnswer:
        with anyio.CancelScope() as scope:
            if not self._is_closed:
                self._calls.add(scope)
                try:
                    return await call_injected(server, call.tool, call.input)
                finally:
                    self._calls.discard(scope)
        return ToolAnswer(text="the run has ended", is_error=True)

    def cancel_calls(self) -> None:
        self._is_closed = True
        for scope in self._calls:
            scope.cancel()

    def close(self) -> None:
        self._http.close()
        self._thread.join()
