"""MCP servers, declared and injected, called by scripted agents; and the bridge that other programs call."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from nightherd.errors import InvalidValueError
from nightherd.model.agents.mcp import (
    InjectedMcpServerDef,
    InjectedMcpToolDef,
    McpServer,
    McpTransport,
    ToolAnswer,
)
from nightherd.model.agents.script import Say, UseTool
from nightherd.model.journal.event import Event, ToolResultEvent
from nightherd.model.journal.system import Complete, Denied
from nightherd.runtimes.mcp.bridge import bridged
from nightherd.runtimes.mcp.client import McpClient
from nightherd.runtimes.mcp.link import Surroundings
from runtimes.heard import failed_servers, payloads
from runtimes.mcp.mcp_desks import DESK, desk_over, stdio_desk
from runtimes.stage import EXECUTION, PATIENCE_S, QUICK, Stage, is_running, is_written, until


def stage_with(stage: Stage, *servers: McpServer, **rules: Any) -> Stage:
    return Stage(stage.directory, rules={"mcp_servers": servers, **rules})


def results(events: list[Event]) -> list[tuple[bool | None, str]]:
    found = [event for event in events if isinstance(event, ToolResultEvent)]
    return [(one.success, str(one.result if one.success else one.error)) for one in found]


def look(server: str) -> UseTool:
    return UseTool(f"mcp__{server}__look", {"name": "${prompt}"})


def test_declared_servers_are_called_however_they_are_reached(stage: Stage) -> None:
    here = stdio_desk("here", env={"DESK_OWNER": "stdio"})
    with desk_over(McpTransport.HTTP, "web") as web, desk_over(McpTransport.SSE, "old") as old:
        played = stage_with(stage, here, web, old)
        events = played.play(
            look("here"), look("web"), look("old"), look("here"), look("web"), look("old")
        )

    assert results(events) == [
        (True, f"go is on the desk of {owner}") for owner in ("stdio", "http", "sse") * 2
    ]
    assert failed_servers(events) == []


def test_every_server_says_what_it_offers(stage: Stage) -> None:
    async def tools(*servers: McpServer) -> list[str]:
        client = McpClient(servers, (POST,), surroundings(stage))
        try:
            found = await client.list_tools()
            assert client.take_warnings() == []
        finally:
            await client.close()
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in found)
        return sorted(tool.name for tool in found)

    with desk_over(McpTransport.HTTP, "web") as web, desk_over(McpTransport.SSE, "old") as old:
        names = anyio.run(tools, stdio_desk("here"), web, old)

    offered = ("doze", "fall", "look", "meet", "note", "tidy")
    assert names == sorted(
        [f"mcp__{server}__{tool}" for server in ("here", "web", "old") for tool in offered]
        + [f"mcp__post__{tool.name}" for tool in POST.tools]
    )


def test_tools_of_servers_obey_permissions(stage: Stage) -> None:
    played = stage_with(
        stage,
        stdio_desk(),
        permission_mode="acceptEdits",
        allowed_tools=("mcp__desk__l*",),
    )

    events = played.play(
        look("desk"), UseTool("mcp__desk__note", {"path": str(stage.directory / "noted")})
    )

    assert [success for success, _ in results(events)] == [True, False]
    assert [one.tool_name for one in payloads(events, Denied)] == ["mcp__desk__note"]
    assert not (stage.directory / "noted").exists()


def test_a_server_that_is_not_there_is_a_failed_call_and_one_warning(stage: Stage) -> None:
    gone = McpServer(name="gone", transport=McpTransport.STDIO, command="/nowhere/to/be/found")
    mute = McpServer(name="mute", transport=McpTransport.STDIO, command="true")
    far = McpServer(name="far", transport=McpTransport.HTTP, url="http://127.0.0.1:9/mcp")
    odd = McpServer(name="odd", transport=McpTransport.SSE, url="no address")
    calls = [look(name) for name in ("gone", "mute", "far", "odd", "gone")]

    events = stage_with(stage, gone, mute, far, odd).play(*calls, Say("done"))

    assert [success for success, _ in results(events)] == [False] * 5
    assert failed_servers(events) == ["gone", "mute", "far", "odd"]
    assert payloads(events, Complete)


def test_a_server_that_does_not_let_in_is_told_of_without_its_secrets(stage: Stage) -> None:
    with desk_over(McpTransport.HTTP, "web", token="a-wrong-token") as web:
        events = stage_with(stage, web).play(look("web"))

    assert failed_servers(events) == ["web"]
    ((success, text),) = results(events)
    assert success is False
    assert "403" in text
    assert "a-wrong-token" not in repr(events)


def test_a_server_that_refuses_to_initialize_is_a_failed_call_with_its_reason(stage: Stage) -> None:
    answer = '{"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "come back tomorrow"}}'
    server = McpServer(
        name="shut",
        transport=McpTransport.STDIO,
        command="sh",
        args=("-c", f"read request; echo '{answer}'; cat > /dev/null"),
    )

    events = stage_with(stage, server).play(look("shut"))

    ((success, text),) = results(events)
    assert success is False
    assert "initialize failed: come back tomorrow" in text


def test_a_server_that_falls_over_is_started_anew_by_the_next_call(stage: Stage) -> None:
    events = stage_with(stage, stdio_desk()).play(UseTool("mcp__desk__fall", {}), look("desk"))

    first, second = results(events)
    assert first[0] is False
    assert "exit code 3" in first[1]
    assert second == (True, "go is on the desk of nobody")
    assert failed_servers(events) == ["desk"]


@pytest.mark.parametrize("transport", [McpTransport.STDIO, McpTransport.HTTP])
def test_a_call_that_takes_longer_than_its_server_may_fails(
    stage: Stage, transport: McpTransport
) -> None:
    limit = timedelta(seconds=1)
    doze = UseTool("mcp__desk__doze", {"seconds": 600})

    if transport is McpTransport.STDIO:
        events = stage_with(stage, stdio_desk(timeout=limit)).play(doze)
    else:
        with desk_over(transport, "desk") as desk:
            server = McpServer(
                name="desk",
                transport=transport,
                url=desk.url,
                headers=desk.headers,
                timeout=limit,
            )
            events = stage_with(stage, server).play(doze)

    ((success, text),) = results(events)
    assert success is False
    assert "took longer than 1s" in text
    assert payloads(events, Complete)


def test_a_wrong_input_and_a_tool_there_is_not_are_answers(stage: Stage) -> None:
    played = stage_with(stage, stdio_desk())

    events = played.play(
        UseTool("mcp__desk__look", {"wrong": 1}),
        UseTool("mcp__desk__nothing", {}),
        UseTool("mcp__nobody__look", {}),
    )

    assert [success for success, _ in results(events)] == [False, False, False]
    assert failed_servers(events) == []
    assert "there is no tool mcp__nobody__look" in results(events)[2][1]


def telling_desk() -> McpServer:
    """A desk that writes its process id down."""
    note = "import os, pathlib; pathlib.Path('server.pid').write_text(f'{os.getpid()}\\n')"
    run = f"import runpy, sys; sys.argv = ['', 'stdio']; runpy.run_path({str(DESK)!r}, run_name='__main__')"
    return McpServer(
        name="desk",
        transport=McpTransport.STDIO,
        command=sys.executable,
        args=("-c", f"{note}; {run}"),
    )


def test_no_server_outlives_its_run(stage: Stage) -> None:
    events = stage_with(stage, telling_desk()).play(look("desk"))

    assert [success for success, _ in results(events)] == [True]
    assert not is_running(stage.pid_in("server.pid"))


def test_a_client_is_closed_by_another_task_than_the_one_that_opened_it(stage: Stage) -> None:
    client = McpClient([telling_desk()], [], surroundings(stage))

    async def open_and_close() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.list_tools)
        async with anyio.create_task_group() as tasks:
            assert is_running(stage.pid_in("server.pid"))
            tasks.start_soon(client.close)

    anyio.run(open_and_close)

    assert not is_running(stage.pid_in("server.pid"))


WORKER = """
import sys
from pathlib import Path
from nightherd.model.agents.script import UseTool
from runtimes.stage import Stage
from runtimes.mcp.test_mcp_scripted import stage_with, telling_desk
stage = stage_with(Stage(Path(sys.argv[1])), telling_desk())
stage.play(UseTool("mcp__desk__doze", {"seconds": 600}))
"""


def test_a_server_ends_with_its_worker_also_in_the_middle_of_a_call(stage: Stage) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(stage.directory)],
        env={**stage.environment, "PYTHONPATH": str(Path(__file__).parents[2])},
    )

    async def see() -> None:
        await until(lambda: is_written(stage.directory / "server.pid"))
        worker.kill()
        await until(lambda: not is_running(stage.pid_in("server.pid")))

    try:
        anyio.run(see)
    finally:
        worker.kill()
        worker.wait()


async def greet(input: Mapping[str, Any]) -> str:
    return f"hello {input['name']}"


async def stumble(input: Mapping[str, Any]) -> str:
    raise ValueError("over the doorstep")


async def refuse(input: Mapping[str, Any]) -> ToolAnswer:
    return ToolAnswer(text="not today", is_error=True)


POST = InjectedMcpServerDef(
    name="post",
    tools=(
        InjectedMcpToolDef(
            name="greet",
            description="Greets.",
            input_schema={
                "properties": {"name": {"type": "string"}, "times": {"type": ["integer", "null"]}},
                "required": ["name"],
                "additionalProperties": False,
            },
            handler=greet,
        ),
        InjectedMcpToolDef(name="stumble", description="Stumbles.", handler=stumble),
        InjectedMcpToolDef(name="refuse", description="Refuses.", handler=refuse),
    ),
)


def test_injected_tools_are_called_without_being_allowed_by_name(stage: Stage) -> None:
    played = stage_with(stage, permission_mode="default", allowed_tools=("Read",))

    events = played.play(
        UseTool("mcp__post__greet", {"name": "night"}),
        UseTool("mcp__post__greet", {}),
        UseTool("mcp__post__greet", {"name": 3}),
        UseTool("mcp__post__greet", {"name": "x", "times": True}),
        UseTool("mcp__post__greet", {"name": "x", "times": None}),
        UseTool("mcp__post__greet", {"name": "x", "more": 1}),
        UseTool("mcp__post__stumble", {"anything": "goes"}),
        UseTool("mcp__post__refuse", {}),
        UseTool("mcp__post__nothing", {}),
        injected_servers=(POST,),
    )

    assert results(events) == [
        (True, "hello night"),
        (False, "greet: the input 'name' is missing"),
        (False, "greet: the input 'name' must be of type string"),
        (False, "greet: the input 'times' must be of type ['integer', 'null']"),
        (True, "hello x"),
        (False, "greet: there is no input 'more'; there are name, times"),
        (False, "stumble failed: over the doorstep"),
        (False, "not today"),
        (False, "post has no tool nothing; it has greet, stumble, refuse"),
    ]
    assert payloads(events, Denied) == []


@pytest.mark.parametrize("name", ["", "with space", "two__parts", "_x", "x_", "ü"])
def test_a_server_that_could_not_be_called_cannot_be_made(name: str) -> None:
    with pytest.raises(InvalidValueError):
        InjectedMcpServerDef(name=name, tools=())


def surroundings(stage: Stage) -> Surroundings:
    return Surroundings(
        directory=str(stage.directory),
        environment=stage.environment,
        execution=EXECUTION,
        keepers=stage.keepers,
        marks={},
        grace=QUICK,
    )


def ask(
    url: str, headers: Mapping[str, str], body: object, method: str = "POST"
) -> tuple[int, str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_bridge_lets_in_only_who_has_the_token() -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    async def visit() -> list[int]:
        async with bridged([POST]) as entries:
            (entry,) = entries.values()
            assert entry["url"].startswith("http://127.0.0.1:")
            codes = []
            for headers in ({}, {"Authorization": "Bearer x"}, entry["headers"]):
                code, _ = await to_thread.run_sync(ask, entry["url"], headers, listing)
                codes.append(code)
            other = entry["url"].replace("/post", "/other")
            code, _ = await to_thread.run_sync(ask, other, entry["headers"], listing)
            return [*codes, code]

    assert anyio.run(visit) == [401, 401, 200, 404]


def test_the_bridge_accepts_on_a_listener_that_it_is_given() -> None:
    """One that was opened in another network, say; it is closed with the bridge."""
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    async def visit(listener: socket.socket) -> list[int]:
        port = listener.getsockname()[1]
        async with bridged([POST], listener=listener) as entries:
            (entry,) = entries.values()
            assert entry["url"] == f"http://127.0.0.1:{port}/post"
            return [
                (await to_thread.run_sync(ask, entry["url"], headers, listing))[0]
                for headers in (dict[str, str](), entry["headers"])
            ]

    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert anyio.run(visit, listener) == [401, 200]
        assert listener.fileno() == -1


def test_a_bridge_without_servers_closes_its_listener() -> None:
    async def visit(listener: socket.socket) -> int:
        async with bridged([], listener=listener) as entries:
            return len(entries)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert anyio.run(visit, listener) == 0
        assert listener.fileno() == -1


def test_the_bridge_speaks_the_protocol() -> None:
    def message(method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}

    async def visit() -> list[tuple[int, str]]:
        async with bridged([POST]) as entries:
            (entry,) = entries.values()
            asked: list[tuple[object, str]] = [
                (message("initialize", protocolVersion="2025-03-26"), "POST"),
                ({"jsonrpc": "2.0", "method": "notifications/initialized"}, "POST"),
                (message("ping"), "POST"),
                (message("resources/list"), "POST"),
                (message("tools/call", name="greet", arguments={"name": "you"}), "POST"),
                (message("tools/call", arguments=[]), "POST"),
                (b"not json", "POST"),
                (b"", "GET"),
                (b"", "DELETE"),
            ]
            return [
                await to_thread.run_sync(ask, entry["url"], entry["headers"], body, method)
                for body, method in asked
            ]

    hello, noted, alive, unknown, greeted, nameless, garbled, get, delete = anyio.run(visit)
    assert json.loads(hello[1])["result"]["protocolVersion"] == "2025-03-26"
    assert (noted, delete, get) == ((202, ""), (200, ""), (405, ""))
    assert json.loads(alive[1])["result"] == {}
    assert json.loads(unknown[1])["error"]["code"] == -32601
    assert json.loads(nameless[1])["error"]["code"] == -32602
    assert json.loads(garbled[1])["error"]["code"] == -32600
    data = greeted[1].split("data: ", 1)[1]
    assert json.loads(data)["result"] == {
        "content": [{"type": "text", "text": "hello you"}],
        "isError": False,
    }


def test_closing_the_bridge_cuts_off_what_is_being_called() -> None:
    """Also a handler that would never end; and nobody is there to be asked any more."""
    seen: list[str] = []

    async def hang(input: Mapping[str, Any]) -> str:
        seen.append("called")
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cut off")
        return "never"

    tool = InjectedMcpToolDef(name="hang", description="Hangs.", handler=hang)
    server = InjectedMcpServerDef(name="slow", tools=(tool,))
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hang"}}

    async def visit() -> str:
        answers: list[str] = []
        async with anyio.create_task_group() as tasks, bridged([server]) as entries:
            (entry,) = entries.values()

            async def wait() -> None:
                answered = await to_thread.run_sync(ask, entry["url"], entry["headers"], call)
                answers.append(answered[1])

            tasks.start_soon(wait)
            with anyio.fail_after(PATIENCE_S):
                while not seen:  # noqa: ASYNC110 another thread makes the call
                    await anyio.sleep(0.01)
        with pytest.raises(urllib.error.URLError):
            await to_thread.run_sync(ask, entry["url"], entry["headers"], call)
        return answers[0]

    assert "the run has ended" in anyio.run(visit)
    assert seen == ["called", "cut off"]
