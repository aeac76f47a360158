"""Rules for tools, capabilities and MCP servers in files: what is resolved, and what is refused where it stands."""

from __future__ import annotations

from datetime import timedelta

import pytest

from config.folder import Folder
from nightherd.model.agents.mcp import McpServer, McpTransport
from nightherd.model.agents.script import UseTool


def test_rules_servers_and_capabilities_reach_the_agent(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            runtime: cli
            permission_mode: dontAsk
            allowed_tools: ["Bash(git *)", mcp__desk]
            denied_tools: ["*"]
            required_caps: [nightherd.tool.Bash, nightherd.mcp.desk.*]
            mcp_servers:
              desk:
                command: run-desk
                args: [-v]
                env: {OWNER: me}
                timeout: 30s
                alwaysLoad: true
              web: {url: "http://localhost/mcp", headers: {X-Token: abc}, timeout: 1500}
              old: {type: sse, url: "http://localhost/sse"}
        """)

    agent = folder.load().fleet.agents["a"]

    assert agent.allowed_tools == ("Bash(git *)", "mcp__desk")
    assert agent.denied_tools == ("*",)
    assert agent.required_caps == ("nightherd.tool.Bash", "nightherd.mcp.desk.*")
    assert agent.mcp_servers == (
        McpServer(
            name="desk",
            transport=McpTransport.STDIO,
            command="run-desk",
            args=("-v",),
            env={"OWNER": "me"},
            timeout=timedelta(seconds=30),
            always_load=True,
        ),
        McpServer(
            name="web",
            transport=McpTransport.HTTP,
            url="http://localhost/mcp",
            headers={"X-Token": "abc"},
            timeout=timedelta(milliseconds=1500),
        ),
        McpServer(name="old", transport=McpTransport.SSE, url="http://localhost/sse"),
    )
    assert "abc" not in repr(agent)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("allowed_tools: [Bash, 'Write(src/**)']", "3:27 'Write(src/**)' has no effect"),
        ("allowed_tools: ['*']", "3:21 '*' is not supported"),
        ("allowed_tools: ['mcp__*']", "3:21 'mcp__*' fits no tool of an MCP server"),
        ("denied_tools: ['Bash(']", "3:20 'Bash(' is not a rule for tools"),
        ("denied_tools: ['Glob(x)']", "3:20 'Glob(x)': Glob takes no argument in brackets"),
        ("tools: [Bash, 'Bash(ls)']", "3:19 'Bash(ls)' is a rule"),
        ("tools: [mcp__desk]", "3:13 'mcp__desk': tools of MCP servers come with their server"),
        ("tools: ['*']", "3:13 '*' is not the name of a tool"),
        ("mcp_servers: {a__b: {command: x}}", "3:19 'a__b' is not a name for a server"),
        ("required_caps: ['nightherd.tool.B*']", "3:21 Claude is held to tools by name"),
        ("required_caps: [nightherd.mcp.a.b]", "3:21 Claude is held to servers as a whole"),
    ],
)
def test_what_could_not_work_is_refused_where_it_stands(
    folder: Folder, line: str, problem: str
) -> None:
    folder.fleet(f"agents:\n  - name: a\n    {line}\n    runtime: cli\n")

    (found,) = folder.errors()
    assert found.startswith(f"nightherd.yaml:{problem}")


def test_scripted_agents_are_held_to_any_capability(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            runtime: scripted
            required_caps: [nightherd.tool.B*, nightherd.mcp.a.b]
            script: [{say: x}]
        """)

    assert folder.errors() == []


def test_a_step_may_call_a_tool_of_a_server(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            runtime: scripted
            script:
              - tool: mcp__my-desk_2__look_up
                input: {name: "${prompt}", deep: [1, {more: true}]}
              - tool: mcp__desk__wait
        """)

    script = folder.load().fleet.agents["a"].script

    assert script is not None
    assert list(script.turns_from(0)) == [
        (UseTool("mcp__my-desk_2__look_up", {"name": "${prompt}", "deep": (1, {"more": True})}),),
        (UseTool("mcp__desk__wait", {}),),
    ]


@pytest.mark.parametrize("name", ["mcp__desk", "mcp__", "mcp____x", "mcp__a b__c"])
def test_a_step_that_names_no_tool_of_a_server_is_refused(folder: Folder, name: str) -> None:
    step = f"{{tool: {name}, input: {{}}}}"
    folder.fleet(f"agents:\n  - name: a\n    runtime: scripted\n    script: [{step}]\n")

    (found,) = folder.errors()
    assert found.startswith(f"nightherd.yaml:4:21 '{name}' is not a tool of an MCP server")
