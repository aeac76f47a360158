"""No process that an agent started can answer the inbox, or make itself a person: whichever way it asks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nightherd.daemon.record import find_daemon
from surfaces.drivers import Cli, Shell
from surfaces.test_agents_may_not_widen import BARE, HIDDEN, NIGHTHERD
from web.web_world import free_port

ASK = """\
import http.client, json, socket, sys
where, path, body = sys.argv[1:]
head = {"content-type": "application/json", "host": "localhost"}
if where == "socket":
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(".nightherd/daemon.sock")
else:
    connection = http.client.HTTPConnection("127.0.0.1", int(where))
    head["authorization"] = "Bearer " + open(".nightherd/web-token").read().strip()
connection.request("POST", path, body.encode(), head)
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""
FLEET = """\
web: {enabled: true, port: PORT}
agents:
  - name: pusher
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{tool: "Bash(touch:*)"}]
    script: [{tool: Bash, input: {command: touch pushed}}, {say: done}]
  - name: capped
    runtime: scripted
    default_prompt: go
    limits: {turns: 1}
    script: [{say: one}, {tool: Glob, input: {pattern: "*"}}, {say: two}]
  - name: broken
    runtime: scripted
    default_prompt: go
    script: [{fail: {message: no luck}}]
  - name: shell
    runtime: scripted
    permission_mode: bypassPermissions
    script: [{tool: Bash, input: {command: "${prompt}"}}, {say: done}]
"""


@pytest.fixture
def item(cli: Cli, fleet: Path) -> str:
    """A call that waits for approval, beside a limit and a failure."""
    (fleet / "nightherd.yaml").write_text(FLEET.replace("PORT", str(free_port())))
    (fleet / "ask.py").write_text(ASK)
    for agent in ("capped", "broken", "pusher"):
        cli("run", agent, "-q")
    return str(cli("inbox", "show", "@last", "--json").data["id"])


def waiting(cli: Cli) -> set[str]:
    return {one["kind"] for one in cli("inbox", "--json").data}


@pytest.mark.parametrize(
    "command",
    [
        "NIGHTHERD inbox approve ITEM",
        "HIDDEN inbox approve ITEM",
        "HIDDEN inbox reject ITEM",
        "HIDDEN inbox comment ITEM -m hello",
        "HIDDEN inbox raise $(NIGHTHERD inbox --kind limit --json | grep -o 'ask-[0-9a-f]*' | head -1) turns=9",
        "HIDDEN inbox retry $(NIGHTHERD inbox --kind failure --json | grep -o 'ask-[0-9a-f]*' | head -1)",
        "HIDDEN token add mallory",
        "HIDDEN token revoke alice",
    ],
)
def test_an_agents_shell_can_neither_answer_nor_add_a_token(
    cli: Cli, item: str, command: str
) -> None:
    cli("token", "add", "alice")
    line = command.replace("ITEM", item).replace("NIGHTHERD", NIGHTHERD).replace("HIDDEN", HIDDEN)

    result = cli("run", "shell", "-p", line)

    assert "gives agents more permissions, and an agent started this process" in result.out
    assert waiting(cli) == {"approval", "limit", "failure"}
    (token,) = cli("token", "list", "--json").data
    assert (token["name"], token["revoked_at"]) == ("alice", None)


PROGRAM = """\
import anyio, nightherd
async def main():
    async with nightherd.open_fleet() as fleet:
        await fleet.inbox.approve("ITEM")
anyio.run(main)
"""


def test_a_program_of_an_agent_cannot_answer_by_the_library(
    cli: Cli, fleet: Path, item: str
) -> None:
    (fleet / "program.py").write_text(PROGRAM.replace("ITEM", item))

    result = cli("run", "shell", "-p", f"{BARE} {sys.executable} program.py")

    assert "answering the inbox gives agents more permissions" in result.out
    assert waiting(cli) == {"approval", "limit", "failure"}


def test_an_agent_cannot_answer_through_the_daemon(
    cli: Cli, shell: Shell, fleet: Path, item: str
) -> None:
    assert shell.run("start", "--detach").code == 0
    record = find_daemon(fleet / ".nightherd")
    assert record is not None
    path, yes = f"/v1/inbox/{item}/answers", '{"verdict":"approve"}'
    operation = (
        f'{{"type":"answer","item_id":"{item}","verdict":"approve","by":"alice","via":"cli"}}'
    )
    lines = [f"{BARE} {NIGHTHERD} api POST {path} -d '{yes}'"]
    for where, target, body in (
        ("socket", path, yes),
        ("socket", "/v1/operations", operation),
        *((str(port), path, yes) for port in record.ports),
    ):
        lines.append(f"{BARE} {sys.executable} ask.py {where} {target} '{body}'")
    try:
        answers = [cli("run", "shell", "-p", line).out for line in lines]
        still_waiting = waiting(cli)
        ask = f"import sys; sys.argv = ['', 'socket', {path!r}, {yes!r}]\n{ASK}"
        of_a_person = shell.python(ask)
    finally:
        shell.run("stop")

    assert len(answers) == 4
    for answer in answers:
        assert "gives agents more permissions, and an agent sent the request" in answer
    assert still_waiting == {"approval", "limit", "failure"}
    assert of_a_person.out.startswith("200"), of_a_person


def test_an_agent_is_not_given_the_token_of_the_person_who_runs_it(
    cli: Cli, shell: Shell, item: str
) -> None:
    secret = cli("token", "add", "alice", "--json").data["token"]

    ran = shell.run(
        "run", "shell", "-p", "env | grep -c NIGHTHERD_TOKEN; true", NIGHTHERD_TOKEN=secret
    )
    said = shell.run("run", "shell", "-p", f"echo {secret}", NIGHTHERD_TOKEN=secret)
    answered = shell.run("inbox", "reject", item, "--json", NIGHTHERD_TOKEN=secret)
    wrong = shell.run("inbox", "retry", "@last", NIGHTHERD_TOKEN=secret[:-1])

    assert "| 0\n" in ran.out
    assert secret not in said.out + said.err
    assert answered.data["decided_by"] == "alice"
    assert "this token is not accepted" in wrong.err
