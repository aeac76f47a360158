"""Desks (`mcp_desk.py`) as MCP servers: started by whoever uses them, or reached over the network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nightherd.model.agents.mcp import McpServer, McpTransport

DESK = Path(__file__).parent / "mcp_desk.py"
TOKEN = "the-token-of-the-desk"


def stdio_desk(name: str = "desk", **more: Any) -> McpServer:
    """A desk that is started by whoever uses it."""
    return McpServer(
        name=name,
        transport=McpTransport.STDIO,
        command=sys.executable,
        args=(str(DESK), "stdio"),
        **more,
    )


@contextmanager
def desk_over(transport: McpTransport, name: str, token: str = TOKEN) -> Iterator[McpServer]:
    """A desk that is reached over the network, while the context lasts."""
    process = subprocess.Popen(
        [sys.executable, str(DESK), transport],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"DESK_OWNER": transport, "DESK_TOKEN": TOKEN},
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        headers = {"x-desk-token": token}
        yield McpServer(name=name, transport=transport, url=url, headers=headers)
    finally:
        process.kill()
        process.communicate()
