"""Commands and requests that give agents more are refused inside an agent's own process tree."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nightherd.daemon.record import find_daemon
from surfaces.drivers import Cli, Shell
from web.web_world import free_port

NIGHTHERD = f"{sys.executable} -m nightherd"
BARE = "env -i PATH=$PATH"
HIDDEN = f"{BARE} setsid -w {NIGHTHERD}"
ASK = """\
import http.client, json, socket, sys
body = json.dumps({"limits": {"turns": "9"}}).encode()
head = {"content-type": "application/json", "host": "localhost"}
if sys.argv[2] == "socket":
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(".nightherd/daemon.sock")
else:
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]))
    head["authorization"] = "Bearer " + open(".nightherd/web-token").read().strip()
connection.request("POST", "/v1/jobs/" + sys.argv[1] + "/resume", body, head)
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""
FLEET = """\
web: {enabled: true, port: PORT}
agents:
  - name: capped
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    script: [{say: one}, {tool: Glob, input: {pattern: "*"}}, {say: two}]
  - name: shell
    runtime: scripted
    permission_mode: bypassPermissions
    script:
      - tool: Bash
        input: {command: "${prompt}"}
      - say: done
"""


@pytest.fixture
def capped(cli: Cli, fleet: Path) -> str:
    """A job that waits at its limit."""
    (fleet / "nightherd.yaml").write_text(FLEET.replace("PORT", str(free_port())))
    (fleet / "ask.py").write_text(ASK)
    return str(cli("run", "capped", "--json").data["job_id"])


def status_of(cli: Cli, job: str) -> str:
    return str(cli("jobs", "show", job, "--json").data["status"])


@pytest.mark.parametrize(
    "command",
    [
        "NIGHTHERD jobs resume JOB --raise turns=9",
        "HIDDEN jobs resume JOB --raise turns=9 --detach",
        "(HIDDEN jobs resume JOB --raise turns=9 --detach > out 2>&1 &) ; while ! grep -q try: out; do sleep 0.1; done; cat out",
        "NIGHTHERD reload --accept",
        "HIDDEN run capped --limit turns=5",
    ],
)
def test_an_agents_shell_cannot_give_agents_more(
    cli: Cli, fleet: Path, capped: str, command: str
) -> None:
    line = command.replace("JOB", capped).replace("NIGHTHERD", NIGHTHERD).replace("HIDDEN", HIDDEN)

    result = cli("run", "shell", "-p", line)

    assert "gives agents more permissions, and an agent started this process" in result.out
    assert status_of(cli, capped) == "suspended"


def test_an_agent_cannot_ask_the_daemon_for_more(
    cli: Cli, shell: Shell, fleet: Path, capped: str
) -> None:
    assert shell.run("start", "--detach").code == 0
    record = find_daemon(fleet / ".nightherd")
    assert record is not None
    try:
        answers = [
            cli("run", "shell", "-p", f"{BARE} {sys.executable} ask.py {capped} {where}").out
            for where in ("socket", *record.ports)
        ]
        of_a_person = shell.python(f"import sys; sys.argv = ['', {capped!r}, 'socket']\n{ASK}")
    finally:
        shell.run("stop")

    assert len(answers) == 2
    for answer in answers:
        assert "409" in answer
        assert "gives agents more permissions, and an agent sent the request" in answer
    assert of_a_person.out.startswith("200"), of_a_person


def test_a_hook_is_the_operators(cli: Cli, fleet: Path) -> None:
    (fleet / "nightherd.yaml").write_text(
        "agents:\n  - name: capped\n    runtime: scripted\n    default_prompt: go\n"
        "    limits: {turns: 1}\n    script: [{say: one}, {tool: Glob, input: {pattern: '*'}}, {say: two}]\n"
        f"    hooks: {{on_suspend: [{{type: shell, command: '{NIGHTHERD} reload --accept > hooked 2>&1'}}]}}\n"
    )

    cli("run", "capped")

    assert "accepted" in (fleet / "hooked").read_text()
