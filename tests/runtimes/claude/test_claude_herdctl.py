"""An agent file with all that herdctl's public example for containers says: it runs once the named keys are moved."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from components import Components
from docker_engine import DockerEngine
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.commanded import Commanded
from runtimes.container.container_herd import USER

IMAGE = "anthropic/claude-code:latest"
AGENT = """\
name: guarded
description: Works in a container with few rights.
runtime: cli
docker:
  enabled: true
  image: "{image}"
  network: bridge
  memory: "2g"
  cpu_shares: 1024
  user: "1000:1000"
  workspace_mode: rw
  volumes:
    - "{data}:/data:ro"
max_turns: 100
default_prompt: "Take the next task."
system_prompt: Follow the rules of this house.
permission_mode: acceptEdits
allowed_tools: [Read, Write, Edit, Bash, Glob, Grep]
denied_tools: ["Bash(sudo *)", "Bash(rm -rf /)", "Bash(chmod 777 *)"]
"""
MOVED = ("image", "network", "user", "volumes")
FLEET = {
    "version": 1,
    "fleet": {"name": "showcase", "description": "Runtimes side by side."},
    "defaults": {
        "model": "claude-sonnet-5",
        "permission_mode": "acceptEdits",
        "session": {"timeout": "30m", "max_turns": 25},
    },
}


@pytest.mark.timeout(240)
def test_example_runs_once_the_named_keys_are_moved(
    cli_stage: ClaudeStage, docker_engine: DockerEngine, claude_image: str, components: Components
) -> None:
    if not docker_engine.has_bridge:
        components.absent("a network bridge", "a kernel with bridge and veth")
    root = cli_stage.root
    data = root / "data"
    data.mkdir()
    (data / "queue").write_text("mend the fence\n")
    file = root / "agents" / "docker-agent.yaml"
    file.parent.mkdir()
    file.write_text(AGENT.format(image=IMAGE, data=data))
    agent: dict[str, object] = {"path": "agents/docker-agent.yaml"}
    calls = (
        Call(
            "Bash",
            {"command": "cat /data/queue; id -u; cat /proc/1/comm; echo x > /data/x || true"},
        ),
        Call("Bash", {"command": "sudo true"}),
        Call("Write", {"file_path": str(file.parent / "made.txt"), "content": "mended\n"}),
    )
    answers = (*(Say(calls=(call,)) for call in calls), Say(text="Mended."))
    repository, tag = IMAGE.split(":")
    docker_engine.json("POST", f"/images/{claude_image}/tag?repo={repository}&tag={tag}")
    api = MessagesApi(*answers)
    api._server.socket.close()
    api._server.socket = docker_engine.listen(docker_engine.gateway())
    port = api._server.socket.getsockname()[1]
    environment = {
        **cli_stage.environment(api),
        "ANTHROPIC_BASE_URL": f"http://{docker_engine.gateway()}:{port}",
        "DOCKER_HOST": f"unix://{docker_engine.socket_path}",
    }
    herd = Commanded(root, yaml.safe_dump({**FLEET, "agents": [agent]}), environment)
    os.chown(file.parent, USER, USER)

    with api:
        refused = herd.nightherd("run", "guarded")
        named = [line for line in refused.stderr.splitlines() if "may only be set" in line]
        move_named_keys(file, agent, named)
        (root / "nightherd.yaml").write_text(yaml.safe_dump({**FLEET, "agents": [agent]}))
        done = herd.nightherd("run", "guarded", "--quiet")

    assert len(named) == len(MOVED)
    assert (done.returncode, done.stdout.strip()) == (0, "Mended."), (done.stdout, done.stderr)
    results = [line for line in herd.journal() if line["type"] == "tool_result"]
    texts = [str(line.get("result") or line.get("error")) for line in results]
    assert texts[0].split()[:5] == ["mend", "the", "fence", str(USER), "python3"]
    assert "Read-only file system" in texts[0]
    assert results[1]["success"] is False
    assert (file.parent / "made.txt").read_text() == "mended\n"
    assert (file.parent / "made.txt").stat().st_uid == USER


def move_named_keys(file: Path, agent: dict[str, object], named: list[str]) -> None:
    """Do what the errors say: the keys they name go from the agent's file to the fleet file."""
    content = yaml.safe_load(file.read_text())
    docker = content["docker"]
    keys = [line.partition("'")[2].partition("'")[0] for line in named]
    agent["overrides"] = {"docker": {key: docker.pop(key) for key in keys}}
    file.write_text(yaml.safe_dump(content))
