"""`jobs config`: what each execution of a job was set to do its work with, and what differs now."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.jobs.test_run_processes import wait_for
from surfaces.drivers import Cli, Shell

LAYERED = """\
fleet: {name: layered}
limits: {duration: 1h}
defaults:
  allowed_tools: [Read, Bash]
agents:
  - name: hello
    runtime: scripted
    default_prompt: go
    system_prompt: the word is ${HELLO_PASSWORD}, or swordfish-swordfish
    limits: {turns: 9, duration: 2h}
    script: [{say: one}]
    schedules:
      nightly: {cron: "0 3 * * *", prompt: night, limits: {turns: 3}}
      hourly: {cron: "0 * * * *", prompt: hour}
"""
HELD = """\
fleet: {name: held}
lease: 2s
heartbeat: 200ms
agents:
  - name: slow
    runtime: scripted
    default_prompt: go
    description: first
    script:
      - tool: Bash
        input: {command: "touch started; sleep 60"}
      - say: done
    allowed_tools: [Bash]
"""


def rows_of(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["key"]: one for one in data["values"]}


def where(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["value"], row["origin"], row["layer"])


def write(folder: Path, text: str) -> Path:
    file = folder / "nightherd.yaml"
    file.write_text(text)
    (folder / ".env").write_text("HELLO_PASSWORD=hush-hush-hush\nMY_TOKEN=swordfish-swordfish\n")
    return file


def blobs(folder: Path) -> list[Path]:
    return sorted((folder / ".nightherd" / "blobs").iterdir())


def test_each_value_has_the_layer_that_decided_it(cli: Cli, fleet: Path) -> None:
    write(fleet, LAYERED)
    cli("run", "hello", "--limit", "tokens=500", "--max-turns", "4")

    data = cli("jobs", "config", "@last", "--json").data

    rows = rows_of(data)
    assert (data["is_recorded"], data["is_compared"], data["added"]) == (True, True, [])
    assert where(rows["allowed_tools[1]"]) == ("Bash", "nightherd.yaml:4", "defaults")
    assert where(rows["default_prompt"]) == ("go", "nightherd.yaml:8", "agent")
    assert where(rows["session.mode"]) == ("fresh_per_job", "default", "built_in")
    assert where(rows["limits.duration"]) == ("1h", "nightherd.yaml:2", "fleet")
    assert where(rows["limits.tokens"]) == (500, "given with the job", "request")
    assert where(rows["max_turns"]) == (4, "given with the job", "request")
    assert {one["change"] for one in data["values"]} == {None}
    assert not [key for key in rows if key.startswith("schedules.")]


def test_a_job_of_a_schedule_has_its_values_and_those_of_no_other(cli: Cli, fleet: Path) -> None:
    write(fleet, LAYERED)
    cli("schedule", "run", "hello/nightly")
    cli("worker", "--until-idle")

    rows = rows_of(cli("jobs", "config", "@last", "--json").data)

    assert where(rows["limits.turns"]) == (3, "nightherd.yaml:13", "schedule")
    assert where(rows["schedules.nightly.cron"]) == ("0 3 * * *", "nightherd.yaml:13", "schedule")
    assert not [key for key in rows if "hourly" in key]


def test_what_was_changed_since_is_marked(cli: Cli, fleet: Path) -> None:
    file = write(fleet, f"{LAYERED}reload: auto\n")
    cli("run", "hello")
    text = file.read_text().replace("turns: 9", "turns: 10").replace("Read, Bash", "Read")
    file.write_text(text.replace("script:", "description: new\n    script:"))

    data = cli("jobs", "config", "@last", "--json").data
    shown = cli("jobs", "config", "@last").out

    rows = rows_of(data)
    assert (rows["limits.turns"]["change"], rows["limits.turns"]["now"]) == ("changed", 10)
    assert rows["limits.turns"]["value"] == 9
    assert rows["allowed_tools[1]"]["change"] == "removed"
    assert [one["key"] for one in data["added"]] == ["description"]
    assert "now: 10" in shown
    assert "now: not set" in shown
    assert "+ description" in shown


def test_equal_settings_are_stored_once_and_others_beside_them(cli: Cli, fleet: Path) -> None:
    file = write(fleet, LAYERED)
    for _ in range(3):
        cli("run", "hello")
    assert len(blobs(fleet)) == 1

    file.write_text(LAYERED.replace("say: one", "say: two"))
    cli("run", "hello")
    assert len(blobs(fleet)) == 2
    assert cli("doctor", "--verify").code == 0

    blobs(fleet)[0].unlink()
    blobs(fleet)[0].unlink()
    assert "settings" in cli("doctor", "--verify").out
    assert cli("jobs", "config", "@last").code != 0


def test_secrets_are_in_no_recorded_setting(cli: Cli, fleet: Path) -> None:
    write(fleet, LAYERED)
    cli("run", "hello")

    value = rows_of(cli("jobs", "config", "@last", "--json").data)["system_prompt"]["value"]

    assert value == "the word is ${HELLO_PASSWORD}, or [secret:MY_TOKEN]"
    assert not [one for one in blobs(fleet) if b"swordfish" in one.read_bytes()]


def test_a_job_that_was_killed_and_rescued_has_the_settings_of_each_execution(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    file = write(fleet, HELD)
    process = shell.start("run", "slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)
    process.kill()
    process.communicate()
    file.write_text(HELD.replace("; sleep 60", "").replace("first", "second"))
    cli("worker", "--until-idle")

    last = cli("jobs", "config", "@last", "--json").data
    first = cli("jobs", "config", "@last", "--execution", "1", "--json").data

    assert [one["epoch"] for one in last["executions"]] == [1, 2]
    assert len({one["hash"] for one in last["executions"]}) == 2
    assert (first["epoch"], last["epoch"]) == (1, 2)
    assert rows_of(last)["description"]["change"] is None
    assert rows_of(first)["description"]["value"] == "first"
    assert rows_of(first)["description"]["now"] == "second"
    assert "--execution N" in cli("jobs", "config", "@last").err
    assert cli("jobs", "config", "@last", "--execution", "3").code != 0


def test_a_value_that_waits_for_a_person_is_recorded_as_it_was_accepted(
    cli: Cli, fleet: Path
) -> None:
    file = write(fleet, HELD.replace("; sleep 60", ""))
    cli("run", "slow")
    file.write_text(file.read_text() + "    permission_mode: bypassPermissions\n")
    cli("run", "slow")

    row = rows_of(cli("jobs", "config", "@last", "--json").data)["permission_mode"]

    assert where(row) == ("acceptEdits", "accepted before", "held")
    assert row["change"] is None


def test_a_job_of_an_older_nightherd_says_that_nothing_was_recorded(cli: Cli, fleet: Path) -> None:
    write(fleet, LAYERED)
    cli("run", "hello")
    (journal,) = (fleet / ".nightherd" / "jobs").glob("*.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        line.get("extra", {}).pop("settings", None)
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    data = cli("jobs", "config", "@last", "--json").data

    assert (data["is_recorded"], data["values"], data["added"]) == (False, [], [])
    assert "not recorded" in data["note"]
    assert "not recorded" in cli("jobs", "config", "@last").err


def test_a_job_that_waits_has_no_settings_yet_and_one_of_a_lost_agent_is_compared_with_nothing(
    cli: Cli, fleet: Path
) -> None:
    file = write(fleet, LAYERED)
    cli("run", "hello")
    done = cli("jobs", "list", "--json").data[0]["id"]
    cli("run", "hello", "--detach")
    waits = cli("jobs", "config", "@last", "--json").data
    file.write_text(LAYERED.replace("name: hello", "name: other"))
    gone = cli("jobs", "config", done, "--json").data

    assert (waits["epoch"], waits["executions"]) == (0, [])
    assert "has not started" in waits["note"]
    assert (gone["is_recorded"], gone["is_compared"]) == (True, False)
    assert {one["change"] for one in gone["values"]} == {None}


def test_an_exported_session_brings_the_settings_along(
    cli: Cli, fleet: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(fleet, LAYERED)
    job = cli("run", "hello", "--json").data
    file = tmp_path_factory.mktemp("sent") / "session.json"
    cli("session", "export", job["session_id"], "-o", str(file))
    page = cli("jobs", "export", "@last", "--html").out
    there = tmp_path_factory.mktemp("there")
    write(there, LAYERED)
    monkeypatch.chdir(there)

    assert cli("session", "import", str(file)).code == 0
    data = cli("jobs", "config", job["job_id"], "--json").data

    assert data["is_recorded"] is True
    assert rows_of(data)["limits.turns"]["value"] == 9
    assert cli("doctor", "--verify").code == 0
    assert "swordfish" not in page  # it is sent to people, and the settings are the fleet's own
