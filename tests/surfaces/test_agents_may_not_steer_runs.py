"""No process that an agent started can give a run more: raise its limits, fork it with other inputs, enable a workflow."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nightherd.daemon.record import find_daemon
from surfaces.drivers import Cli, Result, Shell
from surfaces.test_agents_may_not_widen import BARE, HIDDEN
from web.web_world import free_port

ASK = """\
import http.client, socket, sys
where, method, path, body = sys.argv[1:]
head = {"content-type": "application/json", "host": "localhost"}
if where == "socket":
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(".nightherd/daemon.sock")
else:
    connection = http.client.HTTPConnection("127.0.0.1", int(where))
    head["authorization"] = "Bearer " + open(".nightherd/web-token").read().strip()
connection.request(method, path, body.encode(), head)
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""
FLEET = """\
web: {enabled: true, port: PORT}
agents:
  - name: shell
    runtime: scripted
    permission_mode: bypassPermissions
    script: [{tool: Bash, input: {command: "${prompt}"}}, {say: done}]
workflows:
  flow:
    inputs: {word: {default: cow}}
    phases: [{name: ask, gate: {summary: "Say ${inputs.word}?"}}]
"""
Asked = tuple[str, str, dict[str, object]]
GIVING: list[Asked] = [
    ("POST", "/v1/runs/@last/raise", {"limits": {"spend": "9"}}),
    ("POST", "/v1/runs/@last/fork", {"at": "ask", "inputs": {"word": "pig"}}),
    ("PATCH", "/v1/workflows/flow", {"enabled": True}),
    ("PATCH", "/v1/workflows/flow", {"enabled": None}),
]
HARMLESS: list[Asked] = [
    ("POST", "/v1/runs/@last/fork", {"at": "ask"}),
    ("PATCH", "/v1/runs/@last/scratch", {"note": 1}),
    ("PATCH", "/v1/workflows/flow", {"enabled": False}),
]


@pytest.fixture
def daemon(shell: Shell, fleet: Path) -> Path:
    """A daemon whose fleet has a run that waits."""
    (fleet / "nightherd.yaml").write_text(FLEET.replace("PORT", str(free_port())))
    (fleet / "ask.py").write_text(ASK)
    assert shell.run("start", "--detach").code == 0
    answer = ask(shell, ("POST", "/v1/workflows/flow/runs", {}))
    assert answer.out.startswith("201"), answer
    return fleet


def line(asked: Asked, where: str) -> list[str]:
    method, path, body = asked
    return [where, method, path, json.dumps(body)]


def ask(shell: Shell, asked: Asked) -> Result:
    """As a person does."""
    return shell.python(f"import sys; sys.argv = ['', *{line(asked, 'socket')!r}]\n{ASK}")


def ask_as_agent(cli: Cli, asked: Asked, where: str) -> str:
    words = " ".join(f"'{word}'" for word in line(asked, where))
    return cli("run", "shell", "-p", f"{BARE} {sys.executable} ask.py {words}").out


def test_only_people_give_runs_more(cli: Cli, shell: Shell, daemon: Path) -> None:
    record = find_daemon(daemon / ".nightherd")
    assert record is not None
    try:
        refused = [
            ask_as_agent(cli, asked, where)
            for asked in GIVING
            for where in ("socket", *map(str, record.ports))
        ]
        taken = [ask_as_agent(cli, asked, "socket") for asked in HARMLESS]
        people = [ask(shell, asked) for asked in reversed(GIVING)]
    finally:
        shell.run("stop")

    assert len(refused) == 2 * len(GIVING)
    for answer in refused:
        assert "409" in answer
        assert "gives agents more permissions, and an agent sent the request" in answer
    for answer in taken:
        assert '"schema":"nightherd/v1/' in answer
    for said in people:
        assert said.out.startswith("20"), said


@pytest.mark.parametrize(
    ("command", "is_refused"),
    [
        ("runs fork @last --at ask --input word=pig", True),
        ("runs raise @last spend=9", True),
        ("workflow enable flow", True),
        ("workflow reset flow", True),
        ("runs fork @last --at ask", False),
    ],
)
def test_an_agents_shell_cannot_give_a_run_more(
    cli: Cli, fleet: Path, command: str, is_refused: bool
) -> None:
    (fleet / "nightherd.yaml").write_text(FLEET.replace("PORT", str(free_port())))
    assert cli("workflow", "run", "flow", "--detach").code == 0

    said = cli("run", "shell", "-p", f"{HIDDEN} {command}").out

    is_told = "gives agents more permissions, and an agent started this process" in said
    assert is_told is is_refused
    assert len(cli("runs", "--json").data) == (1 if is_refused else 2)
