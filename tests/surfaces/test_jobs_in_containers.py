"""Jobs of agents with a container, as a program runs them: real containers of a real engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from docker_engine import DockerEngine
from nightherd import Order, RunnerResult, open_fleet
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


def test_directory_that_an_agent_has_replaced_by_a_link_is_not_mounted(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    project = tmp_path / "project"
    for directory in (secret, project / "deep" / "data"):
        directory.mkdir(parents=True)
    (secret / "key").write_text("hush")
    file = project / "nightherd.yaml"
    file.write_text(LINKED.format(image=container_image, socket=docker_engine.socket_path))
    for path in (project, project / "deep", project / "deep" / "data", secret, secret / "key"):
        os.chown(path, 1000, 1000)

    async def go() -> RunnerResult:
        async with open_fleet(file, environ={"PATH": os.environ["PATH"]}) as fleet:
            assert (await fleet.execute(Order(agent="prier"))).success
            return await fleet.execute(Order(agent="prier"))

    result = anyio.run(go)

    assert (project / "deep" / "data").is_symlink()
    assert (result.success, result.error_details and result.error_details.code) == (
        False,
        "container",
    )
    assert "hush" not in "".join(
        one.read_text() for one in (project / ".nightherd/jobs").glob("*.jsonl")
    )


LINKED = """
agents:
  - name: prier
    runtime: scripted
    session: {{mode: persistent}}
    allowed_tools: [Bash]
    default_prompt: go
    add_dirs: [deep/data]
    script:
      - tool: Bash
        input: {{command: "mv deep old; mkdir deep; ln -s ../../secret deep/data"}}
      - end: true
      - tool: Bash
        input: {{command: "cat deep/data/key"}}
      - say: Done.
    docker: {{enabled: true, network: none, image: "{image}", socket: "{socket}"}}
"""
