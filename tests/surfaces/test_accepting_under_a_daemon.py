"""A started fleet: what its file gives agents waits for a person, and no agent prints the API's token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.pasture import wait_for
from surfaces.drivers import Cli, Shell
from web.web_world import free_port

pytestmark = pytest.mark.timeout(300)

FLEET = """\
lease: 5s
heartbeat: 500ms
web: {{enabled: true, port: {port}}}
agents:
  - name: eve
    runtime: scripted
    default_prompt: go
    script:
      - tool: Bash
        input: {{command: touch ran}}
  - name: nosy
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {{command: cat .nightherd/web-token}}
"""


@pytest.fixture
def started(shell: Shell, fleet: Path) -> Iterator[Path]:
    """A fleet that was started."""
    (fleet / "nightherd.yaml").write_text(FLEET.format(port=free_port()))
    began = shell.run("start", "--detach")
    assert began.code == 0, began.err
    yield fleet
    assert shell.run("stop").code == 0


def test_a_wider_file_waits_until_a_person_accepts_it(cli: Cli, started: Path) -> None:
    file = started / "nightherd.yaml"
    wider = file.read_text().replace("prompt: go\n", "prompt: go\n    allowed_tools: [Bash]\n", 1)
    file.write_text(wider)
    reloaded = cli("reload")

    denied = cli("run", "eve", "--detach", "--json").data
    wait_for(lambda: cli("jobs", "show", denied["id"], "--json").data["status"] == "completed", "1")
    has_run = (started / "ran").exists()
    accepted = cli("reload", "--accept")
    allowed = cli("run", "eve", "--detach", "--json").data
    wait_for(
        lambda: cli("jobs", "show", allowed["id"], "--json").data["status"] == "completed", "2"
    )

    assert "agent eve: allowed_tools Bash" in reloaded.err
    assert not has_run
    assert "accepted: agent eve: allowed_tools Bash" in accepted.err
    assert (started / "ran").exists()


def test_the_token_of_the_api_is_masked(cli: Cli, started: Path) -> None:
    token = (started / ".nightherd" / "web-token").read_text().strip()

    job = cli("run", "nosy", "--detach", "--json").data
    wait_for(lambda: cli("jobs", "show", job["id"], "--json").data["status"] == "completed", "end")
    told = cli("jobs", "tail", job["id"], "-n", "all").out

    assert "[secret:web-token]" in told
    files = [one for one in (started / ".nightherd").rglob("*") if one.is_file()]
    assert [one.name for one in files if token.encode() in one.read_bytes()] == ["web-token"]
