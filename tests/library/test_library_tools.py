"""Tools through the library: a program's own, given to one run, and what the agent was not allowed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from nightherd import (
    InjectedMcpServerDef,
    InjectedMcpToolDef,
    Order,
    RunnerResult,
    ToolAnswer,
    open_fleet,
)

FLEET = """\
agents:
  - name: messenger
    runtime: scripted
    script:
      - tool: mcp__post__send
        input: {text: "${prompt}"}
      - tool: Bash
        input: {command: "curl https://nowhere.invalid"}
      - say: as far as I may
"""


def test_a_run_has_the_tools_it_is_given_and_says_what_it_was_not_allowed(tmp_path: Path) -> None:
    file = tmp_path / "nightherd.yaml"
    file.write_text(FLEET)
    sent: list[str] = []

    async def send(input: Mapping[str, Any]) -> ToolAnswer:
        sent.append(input["text"])
        return ToolAnswer(text="on its way")

    tool = InjectedMcpToolDef(name="send", description="Sends a message.", handler=send)
    post = InjectedMcpServerDef(name="post", tools=(tool,))

    async def go() -> tuple[RunnerResult, RunnerResult]:
        async with open_fleet(file, environ={}) as fleet:
            given = await fleet.execute(
                Order(agent="messenger", prompt="good night"), injected_servers=[post]
            )
            return given, await fleet.execute(Order(agent="messenger", prompt="good morning"))

    given, bare = anyio.run(go)

    assert sent == ["good night"]
    assert given.success
    (denied,) = given.denials
    assert denied.tool_name == "Bash"
    assert "needs approval" in denied.reason
    assert bare.success
    assert [one.tool_name for one in bare.denials] == ["Bash"]
