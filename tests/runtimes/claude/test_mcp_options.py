"""What `claude` is told about MCP servers: by a file and never by its arguments; and what it says about them."""

from __future__ import annotations

import json
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import (
    InjectedMcpServerDef,
    InjectedMcpToolDef,
    McpServer,
    McpTransport,
)
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import ToolResultEvent, ToolUseEvent, payload_of
from nightherd.model.journal.system import Warned
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.capabilities import CLI
from nightherd.runtimes.claude.mcp import (
    ServerNews,
    entry_of,
    longest_call,
    servers_of,
    tools_of,
)
from nightherd.runtimes.claude.opening import Opening
from nightherd.runtimes.claude.options import launch_of

DESK = McpServer(
    name="desk",
    transport=McpTransport.STDIO,
    command="run-desk",
    args=("--key=argued-secret",),
    env={"TOKEN": "told-secret"},
    timeout=timedelta(seconds=1.5),
    always_load=False,
)
WEB = McpServer(
    name="web",
    transport=McpTransport.HTTP,
    url="http://localhost/?key=addressed-secret",
    headers={"Authorization": "Bearer headed-secret"},
)


SECRET = ("argued", "told", "addressed", "headed")


def agent(**more: Any) -> Agent:
    return Agent(name="a", runtime=CLI, working_directory="/", **more)


def request(**more: Any) -> RuntimeRequest:
    return RuntimeRequest(
        job_id=JobId("job-2025-03-04-mcp123"),
        execution=ExecutionId("job-2025-03-04-mcp123.1"),
        agent=agent(mcp_servers=(DESK, WEB), **more),
        prompt="go",
    )


async def nothing(input: Any) -> str:
    return ""


def injected(**more: Any) -> InjectedMcpServerDef:
    tool = InjectedMcpToolDef(name="send", description="Sends.", handler=nothing, **more)
    return InjectedMcpServerDef(name="post", tools=(tool,))


def test_no_secret_of_a_server_is_among_the_arguments(tmp_path: Path) -> None:
    launch = launch_of(request(), Opening(text="go"), program="claude")

    launch.write_files(tmp_path)
    words = launch.arguments(tmp_path)

    assert "--strict-mcp-config" in words
    assert not any(f"{how}-secret" in word for word in words for how in SECRET)
    (named,) = [word for word in words if word.startswith("--mcp-config=")]
    file = Path(named.removeprefix("--mcp-config="))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {
        "mcpServers": {"desk": entry_of(DESK), "web": entry_of(WEB)}
    }


def test_only_declared_servers_are_asked_for_also_when_there_are_none() -> None:
    bare = replace(request(), agent=agent())

    names = [option.name for option in launch_of(bare, Opening(text="go"), program="x").options]

    assert "strict-mcp-config" in names
    assert "mcp-config" not in names


def test_servers_are_described_in_claudes_words() -> None:
    assert entry_of(DESK) == {
        "type": "stdio",
        "command": "run-desk",
        "args": ["--key=argued-secret"],
        "env": {"TOKEN": "told-secret"},
        "timeout": 1500,
        "alwaysLoad": False,
    }
    assert entry_of(replace(WEB, transport=McpTransport.SSE)) == {
        "type": "sse",
        "url": "http://localhost/?key=addressed-secret",
        "headers": {"Authorization": "Bearer headed-secret"},
    }


@pytest.mark.parametrize("allowed", [(), ("Read",)])
def test_injected_servers_are_approved(allowed: tuple[str, ...]) -> None:
    given = replace(request(allowed_tools=allowed), injected_servers=(injected(),))

    options = launch_of(given, Opening(text="go"), program="x").options

    (value,) = [option.value for option in options if option.name == "allowedTools"]
    assert value == ",".join([*allowed, "mcp__post__*"])


@pytest.mark.parametrize("is_long", [True, False])
def test_claude_is_patient_where_calls_may_take_long(is_long: bool) -> None:
    given = replace(request(), injected_servers=(injected(is_long_running=is_long),))

    environment = launch_of(given, Opening(text="go"), program="x").environment

    assert ("CLAUDE_CODE_STREAM_CLOSE_TIMEOUT" in environment) is is_long
    set_by_hand = replace(given, environment={"CLAUDE_CODE_STREAM_CLOSE_TIMEOUT": "1"})
    kept = launch_of(set_by_hand, Opening(text="go"), program="x").environment
    assert kept["CLAUDE_CODE_STREAM_CLOSE_TIMEOUT"] == "1"


def test_claude_may_be_silent_for_as_long_as_its_servers_may_take() -> None:
    bare = replace(request(), agent=agent())
    patient = replace(DESK, timeout=timedelta(hours=2))

    assert longest_call(bare) == timedelta()
    assert longest_call(replace(bare, injected_servers=(injected(),))) == timedelta()
    assert longest_call(replace(bare, agent=agent(mcp_servers=(DESK, patient, WEB)))) > timedelta(
        hours=2
    )
    long = replace(bare, injected_servers=(injected(is_long_running=True),))
    assert longest_call(long) > timedelta(hours=6)


@pytest.mark.parametrize(
    ("rules", "tools", "servers"),
    [
        ({}, None, ["desk", "web"]),
        ({"tools": ("Read",)}, ("Read",), ["desk", "web"]),
        ({"required_caps": ()}, (), []),
        ({"required_caps": ("nightherd.tool.*", "nightherd.mcp.*")}, None, ["desk", "web"]),
        ({"required_caps": ("nightherd.tool.*",), "tools": ("Read",)}, ("Read",), []),
        (
            {
                "required_caps": ("nightherd.tool.Read", "nightherd.mcp.web.*"),
                "tools": ("Bash", "Read"),
            },
            ("Read",),
            ["web"],
        ),
    ],
)
def test_capabilities_leave_what_they_cover(
    rules: dict[str, Any], tools: tuple[str, ...] | None, servers: list[str]
) -> None:
    held = agent(mcp_servers=(DESK, WEB), **rules)

    assert tools_of(held) == tools
    assert [server.name for server in servers_of(held)] == servers


def test_a_server_that_failed_is_told_of_once() -> None:
    news = ServerNews()
    states = [
        {"name": "a", "status": "connected"},
        {"name": "b", "status": "failed"},
        {"name": "c", "status": "pending"},
        {"name": "d", "status": "needs-auth"},
        {"odd": True},
    ]

    said = [*news.hear(states), *news.hear(states), *news.hear(None)]

    payloads = [payload_of(event) for event in said]
    assert [one.raw["name"] for one in payloads if isinstance(one, Warned)] == ["b", "d"]
    assert [one.code for one in payloads if isinstance(one, Warned)] == ["mcp_server_failed"] * 2


def test_only_a_server_that_went_away_is_told_of_after_a_failed_call() -> None:
    news = ServerNews()

    def call(tool: str, error: str | None) -> list[str]:
        list(news.see(ToolUseEvent(tool_name=tool, tool_use_id="t", input={})))
        result = ToolResultEvent(tool_use_id="t", success=error is None, error=error)
        return [event.content or "" for event in news.see(result)]

    assert call("mcp__desk__look", None) == []
    assert call("mcp__desk__look", "no such pen") == []
    assert call("Bash", "Connection closed") == []
    assert len(call("mcp__desk__look", "MCP error -32000: Connection closed")) == 1
    assert call("mcp__desk__look", "Not connected") == []
