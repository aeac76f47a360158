"""What a night needs beyond a sound state directory: `claude`, its version and login, keys, git, the clock."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nightherd.model.doctor import (
    ClaudeFacts,
    Level,
    claude_findings,
    clock_findings,
    parse_version,
    version_fault,
)
from nightherd.runtimes.claude.capabilities import CLI, SDK
from surfaces.drivers import Cli

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
FLEET = """\
agents:
  - name: coder
    runtime: cli
  - name: thinker
    runtime: native
    model: openai:gpt-5
"""


def make_claude(directory: Path, version: str) -> None:
    directory.mkdir(exist_ok=True)
    program = directory / "claude"
    program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    program.chmod(0o755)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet that never ran, in an environment without any login or key."""
    for name in [name for name in os.environ if "ANTHROPIC" in name or "CLAUDE" in name]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    return tmp_path


def checks_of(cli: Cli) -> dict[str, Any]:
    return {check["name"]: check for check in cli("doctor", "--json").data["checks"]}


def messages(check: dict[str, Any], level: str) -> list[str]:
    if level == "ok":
        return list(check["notes"])
    return [one["message"] for one in check["findings"] if one["level"] == level]


def test_missing_claude_and_missing_key_are_told_before_the_first_run(
    fleet: Path, cli: Cli
) -> None:
    done = cli("doctor", "--json")
    checks = {check["name"]: check for check in done.data["checks"]}

    assert done.code == 0, "the worker may have another environment"
    assert messages(checks["claude"], "warning") == ["coder (cli): there is no `claude` on PATH"]
    (key,) = messages(checks["keys"], "warning")
    assert "thinker (openai:gpt-5)" in key
    assert "OPENAI_API_KEY" in key


def test_everything_there_is_ok_and_says_version_and_login(
    fleet: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_claude(fleet / "bin", "2.1.325")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy")
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")

    checks = checks_of(cli)

    assert checks["claude"]["level"] == "ok"
    said = " ".join(messages(checks["claude"], "ok"))
    assert "claude 2.1.325 at" in said
    assert "login: API key (ANTHROPIC_API_KEY)" in said
    assert "after 30 days" in said
    assert checks["keys"]["level"] == "ok"
    assert checks["git"]["level"] in ("ok", "warning")


def test_subscription_login_and_short_cleanup_are_found_in_claudes_own_files(
    fleet: Path, cli: Cli
) -> None:
    make_claude(fleet / "bin", "2.1.325")
    settings = fleet / "home" / ".claude"
    settings.mkdir()
    (settings / ".credentials.json").write_text(json.dumps({"claudeAiOauth": {}}))
    (settings / "settings.json").write_text(json.dumps({"cleanupPeriodDays": 7}))

    check = checks_of(cli)["claude"]

    assert any("subscription" in one for one in messages(check, "ok"))
    (warning,) = messages(check, "warning")
    assert "after 7 days" in warning


def test_broken_fleet_file_is_a_problem_and_does_not_end_the_doctor(fleet: Path, cli: Cli) -> None:
    (fleet / "nightherd.yaml").write_text("agents: [{name: coder, runtme: cli}]\n")

    done = cli("doctor", "--json")

    assert done.code == 1
    assert [check["name"] for check in done.data["checks"]] == ["fleet"]


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [("2.1.325", True), ("2.1.197 (Claude Code)", True), ("2.1.99", False), ("1.0.5", False)],
)
def test_versions_older_than_any_tested_one_are_named(text: str, is_fine: bool) -> None:
    assert (version_fault(text) is None) is is_fine


def test_version_that_cannot_be_read_is_a_fault() -> None:
    assert parse_version("claude, of course") is None
    assert version_fault(None) is not None


def test_sdk_with_a_subscription_is_warned_about_and_cli_is_not() -> None:
    facts = ClaudeFacts(program="/c", version="2.1.325", login="subscription", is_subscription=True)

    levels = {
        runtime.name: {one.level for one in claude_findings(facts, ["coder"], runtime)}
        for runtime in (SDK, CLI)
    }

    assert levels == {"sdk": {Level.OK, Level.WARNING}, "cli": {Level.OK}}


def test_clock_behind_what_was_written_is_a_problem() -> None:
    ahead = NOW + timedelta(hours=1)

    assert [one.level for one in clock_findings(NOW, ahead, None)] == [Level.PROBLEM]
    assert [one.level for one in clock_findings(NOW, NOW, False)] == [Level.WARNING]
    assert list(clock_findings(NOW, NOW, True)) == []
