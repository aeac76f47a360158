"""A changed fleet file that gives agents more is an item of the inbox until a person has decided about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.pasture import wait_for
from nightherd.config.acceptance import RECORD
from surfaces.drivers import Cli, Shell
from surfaces.test_acceptance import FLEET, WIDER, has_run
from web.web_world import free_port, token_of

WIDEST = WIDER.replace("allowed_tools: [Bash]", "allowed_tools: [Bash, Write]")


@pytest.fixture
def accepted(cli: Cli, fleet: Path) -> Path:
    """A fleet that has run once, and is on record."""
    (fleet / "nightherd.yaml").write_text(FLEET)
    assert cli("run", "eve").code == 0
    return fleet


def waiting(cli: Cli, *options: str) -> list[dict[str, Any]]:
    found = cli("inbox", "list", "--kind", "reload", *options, "--json").data
    assert isinstance(found, list)
    return found


def hold(cli: Cli, fleet: Path, text: str = WIDER) -> str:
    """The item about a wider file."""
    (fleet / "nightherd.yaml").write_text(text)
    assert cli("worker", "--until-idle").code == 0
    (item,) = waiting(cli)
    return str(item["id"])


def test_accepting_the_item_does_what_reload_accept_does(cli: Cli, accepted: Path) -> None:
    item = hold(cli, accepted)
    shown = cli("inbox", "show", item)

    done = cli("inbox", "accept", item)

    assert "agent eve: allowed_tools Bash" in shown.out
    assert "accepted: agent eve: allowed_tools Bash" in done.err
    assert done.out.startswith(f"{item} answered")
    assert cli("status", "--json").data["pending"] == []
    assert cli("run", "eve").code == 0
    assert has_run(accepted)


def test_a_rejected_file_stays_without_effect_and_is_not_asked_about_again(
    cli: Cli, accepted: Path
) -> None:
    item = hold(cli, accepted)

    assert cli("inbox", "reject", item, "-m", "no").code == 0
    cli("worker", "--until-idle")
    cli("run", "eve")

    assert waiting(cli) == []
    assert not has_run(accepted)
    assert cli("status", "--json").data["pending"] == ["agent eve: allowed_tools Bash"]


@pytest.mark.parametrize("way", ["accepted elsewhere", "put back", "changed once more"])
def test_the_item_closes_when_nothing_or_something_else_waits(
    cli: Cli, accepted: Path, way: str
) -> None:
    item = hold(cli, accepted)

    if way == "accepted elsewhere":
        cli("reload", "--accept")
    else:
        (accepted / "nightherd.yaml").write_text(FLEET if way == "put back" else WIDEST)
        cli("worker", "--until-idle")

    (closed,) = waiting(cli, "--decided")
    assert (closed["id"], closed["status"]) == (item, "superseded")
    assert len(waiting(cli)) == (way == "changed once more")
    assert cli("inbox", "accept", item).code != 0


def test_what_was_accepted_and_taken_back_is_asked_about_again(cli: Cli, accepted: Path) -> None:
    first = hold(cli, accepted)
    cli("inbox", "accept", first)
    (accepted / "nightherd.yaml").write_text(FLEET)
    cli("worker", "--until-idle")

    second = hold(cli, accepted)

    assert second != first
    assert not has_run(accepted)


def test_an_answer_whose_process_was_killed_takes_effect_when_the_files_are_loaded(
    cli: Cli, accepted: Path
) -> None:
    item = hold(cli, accepted)
    record = accepted / ".nightherd" / RECORD
    before = record.read_bytes()
    cli("inbox", "accept", item)
    record.write_bytes(before)  # as if it had been killed between the two

    assert cli("run", "eve").code == 0
    assert has_run(accepted)


def test_answering_something_else_accepts_no_file(cli: Cli, accepted: Path, shell: Shell) -> None:
    (accepted / "nightherd.yaml").write_text(
        FLEET
        + "  - {name: sad, runtime: scripted, default_prompt: go, script: [{fail: {message: no}}]}\n"
    )
    cli("reload", "--accept")
    assert cli("run", "sad").code == 1
    (accepted / "nightherd.yaml").write_text(
        (accepted / "nightherd.yaml")
        .read_text()
        .replace("prompt: go\n", "prompt: go\n    allowed_tools: [Bash]\n", 1)
    )
    script = f"script -qec '{' '.join(shell.line('inbox', 'dismiss', '@last'))}' /dev/null"

    done = shell.python(
        f"import subprocess; print(subprocess.run({script!r}, shell=True, text=True, capture_output=True).stdout)"
    )

    assert "answered" in done.out
    assert cli("status", "--json").data["pending"] == ["agent eve: allowed_tools Bash"]


SERVED = "lease: 5s\nheartbeat: 500ms\nweb: {enabled: true, port: PORT}\n" + FLEET


@pytest.fixture
def started(shell: Shell, fleet: Path) -> Iterator[Path]:
    """A fleet that was started."""
    (fleet / "nightherd.yaml").write_text(SERVED.replace("PORT", str(free_port())))
    began = shell.run("start", "--detach")
    assert began.code == 0, began.err
    yield fleet
    assert shell.run("stop").code == 0


@pytest.mark.timeout(300)
def test_a_daemon_asks_and_takes_the_answer_over_the_api_but_not_with_the_web_token(
    cli: Cli, shell: Shell, started: Path
) -> None:
    file = started / "nightherd.yaml"
    file.write_text(
        file.read_text().replace("prompt: go\n", "prompt: go\n    allowed_tools: [Bash]\n", 1)
    )
    wait_for(lambda: len(waiting(cli)) == 1, "the item")
    (item,) = waiting(cli)
    body = ("-d", '{"verdict": "accept"}')
    path = f"/v1/inbox/{item['id']}/answers"
    (port,) = json.loads((started / ".nightherd" / "daemon.json").read_text())["ports"]

    with_web_token = shell.python(
        "import http.client\n"
        f"c = http.client.HTTPConnection('127.0.0.1', {port})\n"
        f"c.request('POST', {path!r}, {body[1]!r}, {{'content-type': 'application/json',"
        f" 'authorization': 'Bearer {token_of(started)}'}})\n"
        "a = c.getresponse(); print(a.status, a.read().decode())"
    )
    on_socket = cli("api", "POST", path, *body)
    wait_for(lambda: cli("status", "--json").data["pending"] == [], "effect")

    assert with_web_token.out.startswith("403"), with_web_token
    assert on_socket.code == 0, on_socket
    made = cli("run", "eve", "--detach", "--json").data
    wait_for(lambda: cli("jobs", "show", made["id"], "--json").data["status"] == "completed", "job")
    assert has_run(started)
