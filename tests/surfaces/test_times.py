"""Times on a terminal are local, schedules in their own zone; in a pipe and in JSON they are in UTC."""

from __future__ import annotations

import json
import os
import pty

import pytest

from surfaces.drivers import Shell

FLEET = """\
agents:
  - name: shepherd
    runtime: scripted
    default_prompt: go
    script:
      - say: done
    schedules:
      dawn: {cron: "30 4 * * *", timezone: Europe/Berlin}
"""
TOKYO = {"TZ": "Asia/Tokyo", "TERM": "xterm", "COLUMNS": "200"}


@pytest.fixture
def pasture(shell: Shell) -> Shell:
    """A shell in a fleet with one schedule, in a terminal far from it."""
    (shell.directory / "nightherd.yaml").write_text(FLEET)
    assert shell.run("run", "shepherd").code == 0
    return shell


def on_terminal(shell: Shell, *words: str) -> str:
    """What a person in Tokyo reads."""
    ours, theirs = pty.openpty()
    running = shell.start(*words, stdout=theirs, stderr=theirs, env={**os.environ, **TOKYO})
    os.close(theirs)
    shown = b""
    try:
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux: the other end is closed
                break
            if not part:
                break
            shown += part
    finally:
        os.close(ours)
        running.wait()
    return shown.decode()


def test_log_on_a_terminal_is_in_local_time(pasture: Shell) -> None:
    assert all(" JST" in line for line in on_terminal(pasture, "logs").splitlines())

    piped = pasture.run("logs", stdin=b"", **TOKYO).out
    assert piped
    assert all(line.split()[0].endswith("Z") for line in piped.splitlines())


@pytest.mark.parametrize("words", ["schedule next --for 2d", "schedule why shepherd/dawn"])
def test_schedule_on_a_terminal_is_in_its_own_zone(words: str, pasture: Shell) -> None:
    assert "04:30:00 Europe/Berlin" in on_terminal(pasture, *words.split())

    for line in (words.split(), [*words.split(), "--json"]):
        piped = pasture.run(*line, stdin=b"", **TOKYO).out
        assert ":30:00 Europe/Berlin" not in piped
        assert "JST" not in piped


def test_json_is_in_utc_on_a_terminal_too(pasture: Shell) -> None:
    (row,) = json.loads(on_terminal(pasture, "schedule", "--json").splitlines()[0])["data"]

    assert row["next_run_at"].endswith(":30:00.000000Z")


def test_log_since_a_time_without_a_zone_is_local(pasture: Shell) -> None:
    # The hour of the first line, read as UTC, begins before that line; read in Los Angeles, hours after it.
    line = pasture.run("logs", "--json", stdin=b"", **TOKYO).documents[0]
    hour = line["data"]["at"][:13]

    assert pasture.run("logs", "--since", hour, TZ="UTC").out
    assert pasture.run("logs", "--since", hour, TZ="Asia/Tokyo").out
    assert pasture.run("logs", "--since", hour, TZ="America/Los_Angeles").out == ""
