"""A served fleet whose agents remember, and what tests of sessions ask of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nightherd.model.agents.agent import Fleet
from web.web_world import World, write_fleet

AGENTS = """\
agents:
  - name: memory
    runtime: scripted
    default_prompt: go
    session: {mode: persistent}
    script:
      - say: "answer ${turn} to ${prompt}"
      - tool: Write
        input: {file_path: "note-${turn}.txt", content: "note of turn ${turn}"}
      - say: "answer ${turn} to ${prompt}"
      - usage: {input_tokens: 200, output_tokens: 40, cost_usd: 0.002}
  - name: fresh
    runtime: scripted
    default_prompt: go
    script: [{say: "fresh answer to ${prompt}"}]
  - name: loud
    runtime: scripted
    permission_mode: bypassPermissions
    session: {mode: persistent}
    script:
      - tool: Write
        input: {file_path: a.txt, content: "${prompt}"}
      - tool: Bash
        input: {command: "head -c 20000 /dev/zero | tr '\\\\0' x"}
      - say: "${prompt}"
"""


def memory_fleet(directory: Path) -> Fleet:
    return write_fleet(directory, AGENTS)


async def session_of(world: World, job_id: str) -> str:
    return str((await world.get(f"/v1/jobs/{job_id}")).data["session_id"])


async def made(world: World, path: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
    """What was made by a request that succeeds."""
    answer = await world.post(path, body if body is not None else {}, **headers)
    assert answer.status in (200, 201), answer.body
    return answer.data
