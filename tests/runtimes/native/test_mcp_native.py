"""MCP servers, declared and injected, offered to native agents and called by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from nightherd.model.agents.mcp import (
    InjectedMcpServerDef,
    InjectedMcpToolDef,
    McpServer,
    McpTransport,
)
from nightherd.model.jobs.repeat import is_marked
from nightherd.model.journal.event import ToolUseEvent
from nightherd.model.journal.system import Context, Init
from runtimes.heard import failed_servers, payloads
from runtimes.mcp.mcp_desks import desk_over, stdio_desk
from runtimes.native.native_stage import NativeStage, Replies, calls, of_type, results, says

SERVER = stdio_desk(env={"DESK_OWNER": "native"})


def test_the_tools_of_a_server_are_offered_and_called(stage: NativeStage) -> None:
    model = Replies(calls(("mcp__desk__look", {"name": "pen"})), says("There."))

    events = stage.run(model, stage.request(agent={"mcp_servers": (SERVER,)}))

    (result,) = results(events)
    assert (result.success, result.result) == (True, "pen is on the desk of native")
    assert "mcp__desk__look" in payloads(events, Init)[0].tools
    (tools,) = [one.body for one in payloads(events, Context) if one.kind == "tools"]
    (look,) = [tool for tool in tools if tool["name"] == "mcp__desk__look"]
    assert look["description"] == "Look for something on the desk."
    assert "name" in look["input_schema"]["properties"]


def test_what_a_server_is_told_in_secret_the_model_does_not_see(stage: NativeStage) -> None:
    told = replace(SERVER, env={"DESK_OWNER": "the-token-itself", "DESK_TOKEN": "the-token-itself"})
    model = Replies(calls(("mcp__desk__look", {"name": "pen"})), says("There."))

    stage.run(model, stage.request(agent={"mcp_servers": (told,)}))

    assert b"the-token-itself" not in model.asked[1]
    assert b"[secret:DESK_TOKEN]" in model.asked[1]


def test_a_server_that_is_not_there_is_a_warning(stage: NativeStage) -> None:
    gone = McpServer(name="gone", transport=McpTransport.STDIO, command="/nowhere/to/be/found")

    events = stage.run(Replies(says("Done.")), stage.request(agent={"mcp_servers": (gone,)}))

    assert len(failed_servers(events)) == 1
    assert [type(event).__name__ for event in events[-2:]] == ["AssistantEvent", "SystemEvent"]


def test_servers_are_started_beside_each_other(stage: NativeStage) -> None:
    def desk(name: str, before: str) -> McpServer:
        line = f'{before}; exec "$0" "$@"'
        plain = stdio_desk(name)
        return replace(plain, command="sh", args=("-c", line, plain.command or "", *plain.args))

    first = desk("first", "until [ -e begun ]; do sleep 0.05; done")
    second = desk("second", "touch begun")

    events = stage.run(
        Replies(says("Done.")), stage.request(agent={"mcp_servers": (first, second)})
    )

    tools = [name for name in payloads(events, Init)[0].tools if name.endswith("__look")]
    assert tools == ["mcp__first__look", "mcp__second__look"]
    assert not failed_servers(events)


def test_a_server_that_falls_over_in_a_call_is_a_failed_call_and_a_warning(
    stage: NativeStage,
) -> None:
    model = Replies(calls(("mcp__desk__fall", {})), says("Oh."))

    events = stage.run(model, stage.request(agent={"mcp_servers": (SERVER,)}))

    assert [result.success for result in results(events)] == [False]
    assert len(failed_servers(events)) == 1


@pytest.mark.parametrize("allowed", [(), ("mcp__desk__look",)])
def test_tools_of_servers_obey_permissions(stage: NativeStage, allowed: tuple[str, ...]) -> None:
    agent = {
        "mcp_servers": (SERVER,),
        "permission_mode": "acceptEdits",
        "allowed_tools": allowed,
    }
    model = Replies(calls(("mcp__desk__look", {"name": "pen"})), says("There."))

    events = stage.run(model, stage.request(agent=agent))

    assert [result.success for result in results(events)] == [bool(allowed)]


def test_injected_tools_are_called_where_they_belong(stage: NativeStage) -> None:
    told: list[Mapping[str, Any]] = []

    async def send(input: Mapping[str, Any]) -> str:
        told.append(input)
        return "sent"

    tool = InjectedMcpToolDef(name="send", description="Send it.", handler=send)
    server = InjectedMcpServerDef(name="post", tools=(tool,))
    model = Replies(calls(("mcp__post__send", {"text": "hi"})), says("Sent."))

    events = stage.run(
        model,
        stage.request(agent={"permission_mode": "default"}, injected_servers=(server,)),
    )

    assert told == [{"text": "hi"}]
    assert [(one.success, one.result) for one in results(events)] == [(True, "sent")]


def test_a_long_answer_of_a_server_is_shortened(stage: NativeStage) -> None:
    async def talk(input: Mapping[str, Any]) -> str:
        return "first " + "x" * 1_000_000 + " last"

    tool = InjectedMcpToolDef(name="talk", description="Talk.", handler=talk)
    server = InjectedMcpServerDef(name="post", tools=(tool,))
    model = Replies(calls(("mcp__post__talk", {})), says("Enough."))

    (result,) = results(stage.run(model, stage.request(injected_servers=(server,))))

    text = str(result.result)
    assert len(text) < 64 * 1024
    assert text.startswith("first ")
    assert text.endswith(" last")


def test_tools_say_by_their_annotations_what_may_be_made_again(stage: NativeStage) -> None:
    model = Replies(
        calls(
            ("mcp__desk__meet", {"name": "ann", "wanted": 1}),
            ("mcp__desk__tidy", {}),
            ("mcp__desk__look", {"name": "pen"}),
        ),
        says("ok"),
    )

    events = stage.run(model, stage.request(agent={"mcp_servers": (SERVER,)}))

    assert [is_marked(call) for call in of_type(events, ToolUseEvent)] == [True, True, False]


@pytest.mark.parametrize("transport", [McpTransport.STDIO, McpTransport.HTTP])
def test_calls_that_only_look_are_open_at_the_same_server_at_the_same_time(
    stage: NativeStage, transport: McpTransport
) -> None:
    """None is answered before the last has come."""
    wanted = [("mcp__desk__meet", {"name": f"n{n}", "wanted": 4}) for n in range(4)]
    model = Replies(calls(*wanted), says("ok"))

    with served(transport) as server:
        events = stage.run(model, stage.request(agent={"mcp_servers": (server,)}))

    said = {one.tool_use_id: one.result for one in results(events)}
    assert said == {f"call-{n}": f"n{n} met 3 others" for n in range(4)}


@contextmanager
def served(transport: McpTransport) -> Iterator[McpServer]:
    """The desk, reached so; calls that wait for each other in vain fail."""
    timeout = timedelta(seconds=60)
    if transport is McpTransport.STDIO:
        yield replace(SERVER, timeout=timeout)
        return
    with desk_over(transport, "desk") as server:
        yield replace(server, timeout=timeout)
