"""A small MCP server for tests, in a process of its own: `python mcp_desk.py stdio`, or `http` or `sse`.

Over a network it prints its address on a line of its own once it can be reached. Whoever calls it has to
bring `DESK_TOKEN`, where it is set: as a header over a network, in the environment otherwise.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

desk = MCPServer("desk")
AT_THE_DESK: list[str] = []
"""Who has come to a meeting."""


@desk.tool()
def look(name: str) -> str:
    """Look for something on the desk."""
    return f"{name} is on the desk of {os.environ.get('DESK_OWNER', 'nobody')}"


@desk.tool()
def note(path: str) -> str:
    """Leave a note."""
    Path(path).write_text("noted\n", encoding="utf-8")
    return "noted"


@desk.tool()
def fall() -> str:
    """Fall over: the server is gone."""
    os._exit(3)


@desk.tool()
def doze(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "awake"


@desk.tool(annotations=ToolAnnotations(read_only_hint=True))
async def meet(name: str, wanted: int) -> str:
    """Wait until so many are there at the same time."""
    AT_THE_DESK.append(name)
    while len(AT_THE_DESK) < wanted:  # noqa: ASYNC110 (each comes by a request of its own)
        await anyio.sleep(0.01)
    return f"{name} met {wanted - 1} others"


@desk.tool(annotations=ToolAnnotations(idempotent_hint=True))
def tidy() -> str:
    """Tidy the desk; doing it again changes nothing."""
    return "tidy"


class Doorman:
    """Lets in who brings the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and Request(scope).headers.get("x-desk-token") != self._token:
            await JSONResponse({"error": "no token"}, status_code=403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def serve(app: ASGIApp, path: str) -> None:
    """Serve on a port that the system chooses."""
    token = os.environ.get("DESK_TOKEN")
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}{path}", flush=True)
    config = uvicorn.Config(Doorman(app, token) if token else app, log_level="critical")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1] == "http":
        serve(desk.streamable_http_app(), "/mcp")
    elif sys.argv[1] == "sse":
        serve(desk.sse_app(), "/sse")
    else:
        desk.run("stdio")
