"""Jobs of agents with a container, as a program runs them: real containers of a real engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from docker_engine import DockerEngine
from nightherd import Order, open_fleet
from nightherd.model.journal.event import Event, SystemEvent
from nightherd.model.journal.system import SystemSubtype

FLEET = """
agents:
  - name: builder
    runtime: scripted
    session: {{mode: persistent}}
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {{command: "echo one >> steps.txt"}}
      - say: Done.
      - end: true
      - tool: Bash
        input: {{command: "echo two >> steps.txt"}}
      - say: Done.
    docker: {{enabled: true, ephemeral: {ephemeral}, network: none, image: "{image}", socket: "{socket}"}}
"""


def run_twice(project: Path) -> list[dict[str, Any]]:
    """What the journals of two jobs of one session say about their containers."""
    seen: list[dict[str, Any]] = []

    def note(event: Event) -> None:
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.CONTAINER:
            seen.append(dict(event.extra or {}))

    async def go() -> None:
        async with open_fleet(
            project / "nightherd.yaml", environ={"PATH": os.environ["PATH"]}
        ) as fleet:
            for _ in range(2):
                result = await fleet.execute(Order(agent="builder"), on_message=note)
                assert result.success, result.error

    anyio.run(go)
    return seen


@pytest.mark.parametrize("is_ephemeral", [True, False])
def test_container_that_is_not_ephemeral_serves_the_next_job_of_its_session(
    is_ephemeral: bool, docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    text = FLEET.format(
        ephemeral=str(is_ephemeral).lower(),
        image=container_image,
        socket=docker_engine.socket_path,
    )
    (tmp_path / "nightherd.yaml").write_text(text)
    os.chown(tmp_path, 1000, 1000)

    first, second = run_twice(tmp_path)

    assert (tmp_path / "steps.txt").read_text() == "one\ntwo\n"
    assert (first["container_id"] == second["container_id"]) is not is_ephemeral
    assert second.get("is_reused", False) is not is_ephemeral
    left = [one["Id"] for one in docker_engine.json("GET", "/containers/json?all=1")]
    assert (second["container_id"] in left) is not is_ephemeral
    for container in {first["container_id"], second["container_id"]} & set(left):
        docker_engine.request("DELETE", f"/containers/{container}?force=1")
