"""What is around a container: a cloud's metadata address, MCP servers of the agent, and keys of an agent file in herdctl's layout."""

from __future__ import annotations

import fcntl
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from components import Components
from docker_engine import DockerEngine
from nightherd.model.containers.policy import ContainerNetwork
from runtimes.container.container_herd import USER, ContainerHerd
from runtimes.container.egress_inside import Inside, warnings

METADATA = "169.254.169.254"
SIOCSIFADDR = 0x8916
SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {}
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "desk", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer = {"tools": [{"name": "where", "description": "Where it runs.", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        place = open("/proc/1/comm").read().strip()
        text = f"{place} {os.getuid()} {os.getcwd()} {os.environ.get('GIVEN')} {os.environ.get('OF_THE_WORKER')}"
        answer = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


def metadata_service() -> socket.socket:
    """A server at the address where clouds hand out the credentials of a machine; for the engine's network namespace."""
    address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(METADATA))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack("16s16s", b"lo:metadata", address))
    return socket.create_server((METADATA, 80))


@pytest.mark.parametrize("network", ["none", "egress", "bridge"])
def test_metadata_address_is_reached_only_over_a_bridge(
    docker_engine: DockerEngine,
    container_image: str,
    components: Components,
    tmp_path: Path,
    network: str,
) -> None:
    if network == "bridge" and not docker_engine.has_bridge:
        components.absent("a network bridge", "a kernel with bridge and veth")
    inside = Inside(docker_engine, container_image, tmp_path)
    inside.policy = replace(inside.policy, network=ContainerNetwork(network))
    with docker_engine.in_network(metadata_service):
        (direct, *asked), events = inside.probe(
            ("connect", METADATA, 80),
            *([] if network == "bridge" else [("get", f"http://{METADATA}/latest/meta-data")]),
        )

    assert (direct == "connected") is (network == "bridge"), direct
    if network == "none":
        assert "rror" in asked[0]
    if network == "egress":
        assert "403" in asked[0]
        (warning,) = warnings(events)
        assert warning.startswith(f"connection to {METADATA}:80 refused")


def test_declared_server_starts_inside(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    desk = {"command": "python3", "args": ["server.py"], "env": {"GIVEN": "yes"}}
    agent: dict[str, Any] = {
        "name": "player",
        "mcp_servers": {"desk": desk},
        "script": [{"tool": "mcp__desk__where", "input": {}}, {"say": "done"}],
    }
    herd = ContainerHerd(tmp_path, docker_engine, container_image, [agent])
    (herd.work / "server.py").write_text(SERVER)
    done = herd.nightherd("run", "player", "-p", "go", "--quiet")

    assert done.returncode == 0, done.stderr
    assert herd.results() == [f"python3 {USER} {herd.work} yes None"]
    assert herd.containers() == []


def test_agent_file_with_keys_of_the_fleet_runs_once_they_are_moved(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    herd = ContainerHerd(tmp_path, docker_engine, container_image, [{"path": "docker-agent.yaml"}])
    safe = "  enabled: true\n  ephemeral: false\n  memory: 512m\n  max_containers: 2\n"
    fleet_keys = '  image: anthropic/claude-code:latest\n  network: bridge\n  user: "1000:1000"\n'
    start = "name: docker-agent\ndefault_prompt: go\nscript: [{say: done}]\ndocker:\n"
    file = tmp_path / "docker-agent.yaml"
    file.write_text(start + safe + fleet_keys)
    refused = herd.nightherd("run", "docker-agent")
    file.write_text(start + safe)
    done = herd.nightherd("run", "docker-agent", "--quiet")

    assert refused.returncode != 0
    for line, key in enumerate(("image", "network", "user"), 9):
        assert f"docker-agent.yaml:{line}:3: '{key}' may only be set in the fleet file" in (
            refused.stderr
        )
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    assert len(herd.container_ids()) == 1
    for one in herd.containers():
        docker_engine.json("DELETE", f"/containers/{one['Id']}?force=1")
