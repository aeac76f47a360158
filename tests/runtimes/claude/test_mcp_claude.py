"""MCP servers, declared and injected, with the real `claude` under both runtimes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from nightherd.model.agents.agent import Plugin
from nightherd.model.agents.mcp import (
    InjectedMcpServerDef,
    InjectedMcpToolDef,
    McpServer,
    McpTransport,
    ToolAnswer,
)
from nightherd.model.journal.event import Event, ToolResultEvent, ToolUseEvent
from nightherd.model.journal.system import Complete, Denied
from nightherd.runtimes.claude.mcp import mcp_options
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage
from runtimes.heard import failed_servers, payloads
from runtimes.mcp.mcp_desks import DESK, desk_over, stdio_desk


def results(events: list[Event]) -> list[tuple[bool | None, str]]:
    """Whether each call succeeded, in the order of the calls, and what was answered."""
    found = {one.tool_use_id: one for one in events if isinstance(one, ToolResultEvent)}
    answers = [found[one.tool_use_id] for one in events if isinstance(one, ToolUseEvent)]
    return [(one.success, json.dumps(one.result)) for one in answers]


def run_with(
    stage: ClaudeStage, api: MessagesApi, *servers: InjectedMcpServerDef, **agent: Any
) -> list[Event]:
    """Every event of a run that servers are injected into."""
    asked = replace(stage.request(api, **agent), injected_servers=servers)
    seen: list[Event] = []

    async def carry_out() -> None:
        with anyio.fail_after(PATIENCE_S):
            await stage.follow(asked, seen.append)

    anyio.run(carry_out)
    return seen


@pytest.mark.either_runtime
def test_declared_servers_are_called_however_they_are_reached(stage: ClaudeStage) -> None:
    calls = [Call(f"mcp__{name}__look", {"name": "pen"}) for name in ("here", "web", "old")]
    with (
        desk_over(McpTransport.HTTP, "web") as web,
        desk_over(McpTransport.SSE, "old") as old,
        MessagesApi(Say(calls=tuple(calls)), Say(text="done")) as api,
    ):
        events = stage.run(
            api,
            mcp_servers=(stdio_desk("here", env={"DESK_OWNER": "stdio"}), web, old),
            allowed_tools=("mcp__here__look", "mcp__web__*", "mcp__old"),
        )

    answers = results(events)
    assert [success for success, _ in answers] == [True, True, True], answers
    for owner, (_, text) in zip(("stdio", "http", "sse"), answers, strict=True):
        assert f"pen is on the desk of {owner}" in text
    assert failed_servers(events) == []
    assert stage.processes() == {}


@pytest.mark.either_runtime
def test_only_declared_servers_are_there(stage: ClaudeStage) -> None:
    other = {"mcpServers": {"other": {"command": sys.executable, "args": [str(DESK), "stdio"]}}}
    (stage.work / ".mcp.json").write_text(json.dumps(other))
    call = Call("mcp__other__note", {"path": str(stage.work / "noted")})
    with MessagesApi(Say(calls=(call,)), Say(text="done")) as api:
        events = stage.run(
            api, permission_mode="bypassPermissions", setting_sources=("project", "local")
        )

    ((success, _),) = results(events)
    assert success is False
    assert not (stage.work / "noted").exists()


@pytest.mark.parametrize("are_wanted", [True, False])
def test_servers_of_plugins_are_there_when_they_are_wanted(
    cli_stage: ClaudeStage, are_wanted: bool
) -> None:
    plugin = cli_stage.root / "plugin"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text('{"name": "shelf", "version": "1.0.0"}')
    server = {"command": sys.executable, "args": [str(DESK), "stdio"], "alwaysLoad": True}
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {"desk": server}}))
    asked = cli_stage.request(
        plugins=(Plugin(path=str(plugin), has_mcp_servers=are_wanted),),
        allowed_tools=("mcp__plugin_shelf_desk",),
    )

    options = list(mcp_options(asked.agent, {}))
    held = replace(asked.agent, required_caps=("nightherd.tool.*",))

    assert ([option.name for option in options] == []) is are_wanted
    assert [option.name for option in mcp_options(held, {})] == ["strict-mcp-config"]


@pytest.mark.either_runtime
def test_a_server_that_is_not_there_is_a_warning_and_the_run_goes_on(stage: ClaudeStage) -> None:
    gone = McpServer(name="gone", transport=McpTransport.STDIO, command="/nowhere/to/be/found")
    far = McpServer(name="far", transport=McpTransport.HTTP, url="http://127.0.0.1:9/mcp")
    with MessagesApi(Say(text="done")) as api:
        events = stage.run(api, mcp_servers=(gone, far))

    assert sorted(failed_servers(events)) == ["far", "gone"]
    assert payloads(events, Complete)


@pytest.mark.either_runtime
def test_a_server_that_falls_over_is_a_warning_and_the_run_goes_on(stage: ClaudeStage) -> None:
    with MessagesApi(Say(calls=(Call("mcp__desk__fall"),)), Say(text="done")) as api:
        events = stage.run(api, mcp_servers=(stdio_desk(),), allowed_tools=("mcp__desk",))

    ((success, _),) = results(events)
    assert success is False
    assert failed_servers(events) == ["desk"]
    assert payloads(events, Complete)


@pytest.mark.either_runtime
def test_a_call_that_takes_longer_than_its_server_may_fails(stage: ClaudeStage) -> None:
    slow = Call("mcp__desk__doze", {"seconds": 600})
    with MessagesApi(Say(calls=(slow,)), Say(text="done")) as api:
        events = stage.run(
            api,
            mcp_servers=(stdio_desk(timeout=timedelta(seconds=1)),),
            allowed_tools=("mcp__desk",),
        )

    ((success, text),) = results(events)
    assert success is False
    assert "timed out" in text
    assert payloads(events, Complete)


@pytest.mark.either_runtime
def test_tools_are_offered_from_the_start_where_that_is_wanted(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="done")) as api:
        stage.run(
            api,
            mcp_servers=(stdio_desk("eager", always_load=True), stdio_desk("lazy")),
        )

    offered = {tool["name"] for tool in api.asked[0].body["tools"]}
    assert "mcp__eager__look" in offered
    assert "mcp__lazy__look" not in offered


@pytest.mark.either_runtime
def test_a_server_beyond_the_capabilities_is_not_started(stage: ClaudeStage) -> None:
    calls = tuple(
        Call(f"mcp__{name}__note", {"path": str(stage.work / name)}) for name in ("in", "out")
    )
    with MessagesApi(Say(calls=calls), Say(text="done")) as api:
        events = stage.run(
            api,
            mcp_servers=(stdio_desk("in"), stdio_desk("out")),
            permission_mode="bypassPermissions",
            required_caps=("nightherd.mcp.in.*",),
        )

    assert [success for success, _ in results(events)] == [True, False]
    assert not (stage.work / "out").exists()


async def greet(input: Mapping[str, Any]) -> str:
    return f"hello {input['name']}"


async def stumble(input: Mapping[str, Any]) -> str:
    raise ValueError("over the doorstep")


async def refuse(input: Mapping[str, Any]) -> ToolAnswer:
    return ToolAnswer(text="not today", is_error=True)


NAMED = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
POST = InjectedMcpServerDef(
    name="post",
    tools=(
        InjectedMcpToolDef(name="greet", description="Greets.", input_schema=NAMED, handler=greet),
        InjectedMcpToolDef(name="stumble", description="Stumbles.", handler=stumble),
        InjectedMcpToolDef(name="refuse", description="Refuses.", handler=refuse),
    ),
)


@pytest.mark.parametrize("allowed", [(), ("Read",)])
def test_injected_tools_are_called_without_being_allowed_by_name(
    stage: ClaudeStage, allowed: tuple[str, ...]
) -> None:
    calls = (
        Call("mcp__post__greet", {"name": "night"}),
        Call("mcp__post__greet", {}),
        Call("mcp__post__stumble"),
        Call("mcp__post__refuse"),
    )
    with MessagesApi(Say(calls=calls), Say(text="done")) as api:
        events = run_with(stage, api, POST, allowed_tools=allowed)

    (greeted, unnamed, stumbled, refused) = results(events)
    assert greeted[0] is True
    assert "hello night" in greeted[1]
    assert [success for success, _ in (unnamed, stumbled, refused)] == [False, False, False]
    assert "name" in unnamed[1]
    assert "over the doorstep" in stumbled[1]
    assert "not today" in refused[1]
    assert payloads(events, Denied) == []
    assert failed_servers(events) == []
    offered = {tool["name"] for tool in api.asked[0].body["tools"]}
    assert {"mcp__post__greet", "mcp__post__stumble", "mcp__post__refuse"} <= offered


def test_injected_and_declared_servers_go_together_and_denying_wins(stage: ClaudeStage) -> None:
    calls = (Call("mcp__post__greet", {"name": "x"}), Call("mcp__desk__look", {"name": "pen"}))
    with MessagesApi(Say(calls=calls), Say(text="done")) as api:
        events = run_with(
            stage,
            api,
            POST,
            mcp_servers=(stdio_desk(),),
            allowed_tools=("mcp__desk",),
            denied_tools=("mcp__post__greet",),
        )

    assert [success for success, _ in results(events)] == [False, True]


def test_a_call_of_an_injected_tool_may_take_its_time(stage: ClaudeStage) -> None:
    """The handler runs in the loop of whoever runs the agent, beside everything else there."""
    steps: list[str] = []

    async def wait(input: Mapping[str, Any]) -> str:
        for _ in range(3):
            await anyio.sleep(0.1)
            steps.append("waited")
        return "".join(steps)

    slow = InjectedMcpToolDef(name="wait", description="Waits.", handler=wait, is_long_running=True)
    server = InjectedMcpServerDef(name="slow", tools=(slow,))
    show = Call("Bash", {"command": "printenv CLAUDE_CODE_STREAM_CLOSE_TIMEOUT"})
    with MessagesApi(Say(calls=(Call("mcp__slow__wait"), show)), Say(text="done")) as api:
        events = run_with(stage, api, server, permission_mode="bypassPermissions")

    waited, shown = results(events)
    assert waited[0] is True
    assert "waitedwaitedwaited" in waited[1]
    assert shown[0] is True
    assert any(character.isdigit() for character in shown[1])
