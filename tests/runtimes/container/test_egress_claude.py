"""The real `claude` in a container with `network: egress`: its API is reached through the proxy, without being listed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from components import Components
from docker_engine import DockerEngine
from nightherd.model.containers.policy import Mount
from nightherd.model.journal.event import AssistantEvent, ToolResultEvent
from nightherd.ports import Runtime
from nightherd.runtimes.claude.capabilities import CLI
from nightherd.runtimes.claude.cli import ClaudeCliRuntime
from nightherd.runtimes.claude.installation import InstalledClaude
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.container.egress_inside import GRACE, Inside, warnings
from runtimes.container.origin import certificate

PROBE = """python3 probe.py '[["get", "http://evil.test/"]]'"""


def claude(keepers: Keepers, installed: InstalledClaude | None) -> Runtime:
    return ClaudeCliRuntime(keepers=keepers, grace=GRACE, installed=installed)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_claude_reaches_its_api_and_nothing_else(
    docker_engine: DockerEngine,
    container_image: str,
    components: Components,
    tmp_path: Path,
    scheme: str,
) -> None:
    inside = Inside(docker_engine, container_image, tmp_path)
    program = Mount(
        source=str(components.claude()), target="/usr/local/bin/claude", is_read_only=True
    )
    trusted = {"NODE_EXTRA_CA_CERTS": str(inside.work / "cert.pem")}
    inside.policy = replace(inside.policy, volumes=(program,), environment=trusted)
    inside.make = claude
    inside.allow_private = False
    request = inside.request()
    api = MessagesApi(Say(calls=(Call("Bash", {"command": PROBE}),)), Say(text="all done"))
    server, _ = certificate(components.program("openssl"), inside.work, "api.test")
    if scheme == "https":
        api._server.socket = server.wrap_socket(api._server.socket, server_side=True)
    port = api.url.rpartition(":")[2]
    environment = {
        "ANTHROPIC_BASE_URL": f"{scheme}://api.test:{port}",
        "ANTHROPIC_API_KEY": "dummy-key-of-the-tests",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }
    agent = replace(request.agent, runtime=CLI, script=None)
    with api:
        events = inside.run(replace(request, agent=agent, environment=environment))

    answers = [event.content for event in events if isinstance(event, AssistantEvent)]
    assert answers[-1:] == ["all done"], events
    assert len(api.asked) == 2
    (result,) = [event for event in events if isinstance(event, ToolResultEvent)]
    assert "403" in str(result.result)
    assert warnings(events) == [
        "connection to evil.test:80 refused: it is not one of the allowed_hosts"
    ]
