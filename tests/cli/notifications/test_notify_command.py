"""`nightherd notify`, and what `status` and `worker` say about targets that do not work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from engine.notifications.test_pushes import new_device
from nightherd.engine.operations.push import subscribe
from nightherd.host.system import SystemClock, random_text
from nightherd.state.store import SqliteStore
from runtimes.notify.loopback import Loopback, loopback
from surfaces.drivers import Cli

FLEET = """\
notify:
  - {name: phone, url_env: PHONE_URL, events: [completed, failed], allow_hosts: [127.0.0.1]}
agents:
  - name: hello
    runtime: scripted
    default_prompt: go
    script: [{say: Hello.}]
"""

Work = Callable[[], None]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A fleet in the working directory, whose phone is this server."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    with loopback() as served:
        monkeypatch.setenv("PHONE_URL", served.url(path="/a-secret-path"))
        yield served


def test_a_target_is_tested_with_its_answer(cli: Cli, server: Loopback) -> None:
    assert cli("notify", "test", "phone").out == "sent to phone\n"
    assert cli("notify", "test", "phone", "--json").data == {"target": "phone", "sent": True}
    server.status = 503

    failed = cli("notify", "test", "phone")

    assert failed.code != 0
    assert "phone did not take the message: the server answered 503" in failed.err
    assert "a-secret-path" not in failed.err


def test_a_target_that_is_not_there_is_named(cli: Cli, server: Loopback) -> None:
    failed = cli("notify", "test", "pager")

    assert failed.code != 0
    assert "no notify target 'pager'; it has: phone" in failed.err


def test_a_variable_that_is_not_set_is_said_at_every_start(
    cli: Cli, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PHONE_URL")

    failed, worked = cli("notify", "test", "phone"), cli("worker", "--until-idle")

    assert "the variable PHONE_URL is not set" in failed.err
    assert worked.code == 0
    assert "notify target phone is told nothing: the variable PHONE_URL is not set" in worked.err


def test_what_was_sent_and_what_fails_is_listed(cli: Cli, server: Loopback, tmp_path: Path) -> None:
    assert cli("worker", "--until-idle").code == 0
    assert cli("run", "hello").code == 0
    assert cli("worker", "--until-idle").code == 0
    server.status = 500
    assert cli("run", "hello").code == 0
    assert cli("worker", "--until-idle").code == 0

    listed = cli("notify", "--json").data

    assert [(one["event"], one["status"]) for one in listed["notifications"]] == [
        ("completed", "pending"),
        ("completed", "sent"),
    ]
    assert listed["notifications"][0]["last_error"] == "the server answered 500"
    (target,) = listed["targets"]
    assert (target["target"], target["is_failing"], target["waiting"]) == ("phone", True, 1)
    shown = cli("notify", "list").out
    assert "failing" in shown
    assert "hello completed: Hello." in shown
    assert "1 attempt: the server answered 500" in cli("status").out
    assert cli("status", "--json").data["failing_notify_targets"][0]["target"] == "phone"
    server.status = 200
    assert cli("notify", "test", "phone").code == 0
    assert cli("worker", "--until-idle").code == 0
    assert cli("status", "--json").data["failing_notify_targets"] == []
    assert {one["status"] for one in cli("notify", "--json").data["notifications"]} == {"sent"}
    kept = b"".join(
        one.read_bytes() for one in (tmp_path / ".nightherd").rglob("*") if one.is_file()
    )
    assert b"a-secret-path" not in kept


def test_a_fleet_without_targets_says_so(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nightherd.yaml").write_text(
        FLEET.partition("agents:")[1] + FLEET.partition("agents:")[2]
    )
    monkeypatch.chdir(tmp_path)

    assert "no notify targets" in cli("notify").err


def test_a_device_is_listed_with_its_person_and_tested_by_that_person_only(
    cli: Cli, server: Loopback, tmp_path: Path
) -> None:
    assert cli("run", "hello").code == 0
    root = tmp_path / ".nightherd"

    async def subscribe_one() -> str:
        store = SqliteStore(root, SystemClock())
        try:
            made = await subscribe(
                new_device("one", label="Anna's phone"),
                store,
                at=SystemClock().now(),
                random_text=random_text,
                change=0,
                public_key="key",
            )
        finally:
            await store.close()
        return made.target

    target = anyio.run(subscribe_one)

    shown = cli("notify", "list").out
    listed = {one["target"]: one["device"] for one in cli("notify", "--json").data["targets"]}
    tested = cli("notify", "test", target)

    assert "Anna's phone of anna: inbox, failures" in shown
    assert listed == {
        "phone": None,
        target: {"person": "anna", "label": "Anna's phone", "topics": ["inbox", "failures"]},
    }
    assert tested.code == 5
    assert "its person tests it" in tested.err
