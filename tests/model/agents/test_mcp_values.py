"""MCP servers as values: names that can be called, and secrets that are never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nightherd.errors import InvalidValueError
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.agents.mcp import (
    InjectedMcpServerDef,
    InjectedMcpToolDef,
    McpServer,
    McpTransport,
    run_elsewhere,
    split_tool_name,
    tool_name,
)
from nightherd.model.secrets import secrets_of
from nightherd.runtimes.claude.capabilities import CLI


async def nothing(input: Mapping[str, Any]) -> str:
    return ""


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mcp__desk__look", ("desk", "look")),
        ("mcp__my-desk_2__look__twice", ("my-desk_2", "look__twice")),
        ("mcp__desk", None),
        ("mcp__desk__", None),
        ("mcp____look", None),
        ("Bash", None),
    ],
)
def test_a_long_name_says_server_and_tool(name: str, parts: tuple[str, str] | None) -> None:
    assert split_tool_name(name) == parts
    if parts is not None:
        assert tool_name(*parts) == name


def test_a_tool_that_could_not_be_called_cannot_be_made() -> None:
    with pytest.raises(InvalidValueError):
        InjectedMcpToolDef(name="look up", description="", handler=nothing)


def test_a_server_knows_whether_calls_may_take_long() -> None:
    quick = InjectedMcpToolDef(name="quick", description="", handler=nothing)
    slow = InjectedMcpToolDef(name="slow", description="", handler=nothing, is_long_running=True)

    assert not InjectedMcpServerDef(name="a", tools=(quick,)).has_long_running_tools
    assert InjectedMcpServerDef(name="a", tools=(quick, slow)).has_long_running_tools


def test_what_servers_are_told_in_secret_is_masked_and_never_shown() -> None:
    desk = McpServer(
        name="desk",
        transport=McpTransport.STDIO,
        command="desk",
        args=("--key", "in-the-arguments"),
        env={"DESK_TOKEN": "told-to-the-desk", "DESK_COLOUR": "brown-as-a-nut"},
    )
    web = McpServer(
        name="web",
        transport=McpTransport.HTTP,
        url="http://localhost/?key=in-the-address",
        headers={"Authorization": "Bearer told-to-the-web"},
    )
    agent = Agent(name="a", runtime=CLI, working_directory="/", mcp_servers=(desk, web))
    secrets = secrets_of(Fleet(file="x", agents={"a": agent}), {"API_KEY": "of-the-environment"})

    said = "told-to-the-desk, brown-as-a-nut, Bearer told-to-the-web, of-the-environment"
    assert secrets.mask(said) == (
        "[secret:DESK_TOKEN], brown-as-a-nut, [secret:Authorization], [secret:API_KEY]"
    )
    assert secrets.mask("in-the-arguments, in-the-address") == "[secret:--key], [secret:web]"
    shown = repr(agent)
    assert "told-to" not in shown
    assert "in-the-a" not in shown


def test_server_that_runs_elsewhere_is_still_the_one_beside_the_agents_directory() -> None:
    server = McpServer(
        name="desk",
        transport=McpTransport.STDIO,
        command="../bin/desk",
        args=("../../desk.py", "desk.py", "./desk.py", "-v", "/etc/desk", "..", "..."),
    )

    moved = run_elsewhere(server, "/fleet/shop")

    assert moved.command == "/fleet/bin/desk"
    expected = ("/desk.py", "desk.py", "./desk.py", "-v", "/etc/desk", "/fleet", "...")
    assert moved.args == expected


def test_server_without_a_process_runs_nowhere() -> None:
    server = McpServer(name="desk", transport=McpTransport.HTTP, url="https://desk.example/../x")

    assert run_elsewhere(server, "/fleet/shop") == server
