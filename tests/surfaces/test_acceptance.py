"""A configuration that gives agents more takes effect once a person has accepted it, whoever runs the fleet."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from nightherd import Order, open_fleet
from nightherd.config.acceptance import RECORD, admit
from nightherd.config.current import stamp_of
from nightherd.daemon.fleet_files import FleetFiles, Loading
from nightherd.errors import RefusedError
from nightherd.next_step import Action, NextStep
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.wiring.fleets import load_fleet
from surfaces.drivers import Cli, Shell

FLEET = """\
agents:
  - name: eve
    runtime: scripted
    default_prompt: go
    script:
      - tool: Bash
        input: {command: touch ran}
"""
WIDER = FLEET.replace("default_prompt: go", "default_prompt: go\n    allowed_tools: [Bash]")
NOW = datetime(2026, 11, 16, tzinfo=UTC)
SCHEDULED = (
    FLEET + "  - {name: new, runtime: scripted, default_prompt: go, script: [{say: hi}],"
    " schedules: {nightly: {cron: '0 3 * * *'}}}\n"
)
NEW = FLEET + "  - {name: new, runtime: scripted, default_prompt: go, script: [{say: hi}]}\n"


@pytest.fixture
def accepted(cli: Cli, fleet: Path) -> Path:
    """A fleet that has run once, and is on record."""
    (fleet / "nightherd.yaml").write_text(FLEET)
    assert cli("run", "eve").code == 0
    assert (fleet / ".nightherd" / RECORD).stat().st_mode & 0o077 == 0
    return fleet


def has_run(fleet: Path) -> bool:
    return (fleet / "ran").exists()


def test_a_wider_file_waits_for_a_person_also_after_a_restart(cli: Cli, accepted: Path) -> None:
    (accepted / "nightherd.yaml").write_text(WIDER)

    ran = cli("run", "eve", "-q")
    worked = cli("run", "eve", "--detach"), cli("worker", "--until-idle")

    assert "not in effect until a person accepts it: agent eve: allowed_tools Bash" in ran.err
    assert "nightherd reload --accept" in ran.err
    assert "agent eve: allowed_tools Bash" in worked[1].err
    assert not has_run(accepted)


def test_what_waits_is_shown_and_accepted_by_command(cli: Cli, accepted: Path) -> None:
    (accepted / "nightherd.yaml").write_text(WIDER)

    shown = cli("status")
    data = cli("status", "--json").data["pending"]
    checked = cli("doctor")
    done = cli("reload", "--accept")

    assert "  agent eve: allowed_tools Bash" in shown.out
    assert data == ["agent eve: allowed_tools Bash"]
    assert "not in effect until a person accepts it: agent eve: allowed_tools Bash" in checked.out
    assert (done.code, done.err) == (0, "accepted: agent eve: allowed_tools Bash\n")
    assert cli("status", "--json").data["pending"] == []
    assert cli("run", "eve").code == 0
    assert has_run(accepted)


def test_narrowing_takes_effect_at_once_and_going_back_waits(cli: Cli, accepted: Path) -> None:
    (accepted / "nightherd.yaml").write_text(WIDER)
    cli("reload", "--accept")
    (accepted / "nightherd.yaml").write_text(FLEET)
    assert cli("run", "eve").err.count("not in effect") == 0
    (accepted / "nightherd.yaml").write_text(WIDER)

    again = cli("run", "eve")

    assert "allowed_tools Bash" in again.err
    assert not has_run(accepted)


def test_a_new_agent_does_not_run_before_it_is_accepted(cli: Cli, accepted: Path) -> None:
    (accepted / "nightherd.yaml").write_text(NEW)

    refused = cli("run", "new")

    assert refused.code == 5
    assert "has not been accepted" in refused.err
    assert cli("reload", "--accept").code == 0
    assert cli("run", "new").code == 0


def test_no_command_makes_a_job_of_an_agent_that_nobody_has_accepted(
    cli: Cli, accepted: Path
) -> None:
    file = accepted / "nightherd.yaml"
    file.write_text(SCHEDULED)
    assert cli("reload", "--accept").code == 0
    job = cli("run", "new", "--json").data["job_id"]
    session = cli("jobs", "show", job, "--json").data["session_id"]
    file.write_text(FLEET)
    cli("run", "eve")  # narrowing takes effect at once: `new` is to be accepted again
    file.write_text(SCHEDULED)
    jobs = len(cli("jobs", "list", "--json").data)

    refused = [
        cli(*command.split())
        for command in (
            "run new",
            "run new -d",
            "schedule run new/nightly",
            f"jobs retry {job}",
            f"jobs resume {job} -d -p more",
            f"jobs fork {job} -d -p more",
            f"session resume {session} -d -p more",
            f"session fork {session} --run -d -p more",
        )
    ]

    assert [result.code for result in refused] == [5] * 8
    assert all("has not been accepted" in result.err for result in refused)
    assert len(cli("jobs", "list", "--json").data) == jobs


RENAMED = WIDER.replace("name: eve", "name: mallory")
HARMLESS = FLEET.replace("default_prompt: go", "default_prompt: go\n    working_directory: work")


def test_a_renamed_agent_waits_for_a_person_however_often_the_file_is_read(
    cli: Cli, accepted: Path
) -> None:
    (accepted / "nightherd.yaml").write_text(RENAMED)

    refused = [cli("run", "mallory") for _ in range(3)]

    assert [one.code for one in refused] == [5, 5, 5]
    assert cli("status", "--json").data["pending"] == ["agent mallory: is new"]
    assert not has_run(accepted)


def test_an_agent_that_first_narrows_itself_cannot_widen_the_fleet_afterwards(
    cli: Cli, accepted: Path
) -> None:
    (accepted / "work").mkdir()
    (accepted / "nightherd.yaml").write_text(HARMLESS)
    cli("run", "eve")
    (accepted / "nightherd.yaml").write_text(
        HARMLESS.replace("default_prompt: go", "default_prompt: go\n    allowed_tools: [Bash]")
    )

    held = cli("run", "eve")

    assert "agent eve: allowed_tools Bash" in held.err
    assert not (accepted / "work" / "ran").exists()
    cli("reload", "--accept")
    assert cli("run", "eve").code == 0
    assert (accepted / "work" / "ran").exists()


def test_a_file_that_its_owner_made_read_only_still_needs_a_person(
    cli: Cli, accepted: Path
) -> None:
    (accepted / "nightherd.yaml").write_text(WIDER)
    (accepted / "nightherd.yaml").chmod(0o400)
    accepted.chmod(0o500)

    try:
        held = cli("run", "eve")
    finally:
        accepted.chmod(0o700)

    assert "agent eve: allowed_tools Bash" in held.err
    assert not has_run(accepted)


def test_reload_auto_takes_everything_once_it_was_accepted_itself(cli: Cli, accepted: Path) -> None:
    (accepted / "nightherd.yaml").write_text("reload: auto\n" + WIDER)
    first = cli("run", "eve")
    assert "reload: auto" in first.err
    assert not has_run(accepted)
    cli("reload", "--accept")
    (accepted / "nightherd.yaml").write_text("reload: auto\n" + NEW)

    taken = cli("run", "new")

    assert taken.code == 0
    assert "accepted: agent new: is new" in taken.err


def test_a_file_that_no_agent_can_write_needs_nobody(
    cli: Cli, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fleet / "work").mkdir()
    text = FLEET.replace("default_prompt: go", "default_prompt: go\n    working_directory: work")
    (fleet / "nightherd.yaml").write_text(text)
    cli("run", "eve")
    (fleet / "nightherd.yaml").write_text(text.replace("    script:", "    max_turns: 3\n    permission_mode: bypassPermissions\n    script:"))  # fmt: skip

    assert "accepted: agent eve: permission_mode" in cli("run", "eve").err
    assert (fleet / "work" / "ran").exists()


@pytest.mark.parametrize("damage", [b"{", b'{"version":1,"fleets":{"\xff":{}}}'])
def test_a_record_that_cannot_be_read_accepts_nothing(
    cli: Cli, accepted: Path, damage: bytes
) -> None:
    (accepted / ".nightherd" / RECORD).write_bytes(damage)

    refused = cli("run", "eve")

    assert refused.code != 0
    assert "reload --accept" in refused.err
    assert cli("reload", "--accept").code == 0
    assert cli("run", "eve").code == 0


def test_secrets_are_not_in_the_record(cli: Cli, fleet: Path) -> None:
    (fleet / ".env").write_text("API_KEY=very-secret-value\n")
    (fleet / "nightherd.yaml").write_text(
        FLEET + "    mcp_servers: {x: {command: serve, env: {TOKEN: '${API_KEY}'}}}\n"
    )
    cli("run", "eve")

    record = (fleet / ".nightherd" / RECORD).read_text()

    assert "very-secret-value" not in record
    assert "API_KEY" in record
    (fleet / ".env").write_text("API_KEY=another-secret\n")
    told = cli("run", "eve").err
    assert ".env variable API_KEY changed" in told
    assert "another-secret" not in told


def test_a_person_at_a_terminal_accepts_with_one_line(
    shell: Shell, cli: Cli, accepted: Path
) -> None:
    (accepted / "nightherd.yaml").write_text(WIDER)
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            shell.line("run", "eve"), cwd=accepted, stdin=theirs, capture_output=True, text=True
        )
    finally:
        os.close(ours)
        os.close(theirs)

    assert "accepted: agent eve: allowed_tools Bash\n" in done.stderr
    assert has_run(accepted)
    assert cli("status", "--json").data["pending"] == []


def test_a_reload_keeps_what_was_in_place(fleet: Path) -> None:
    def load(text: str, before: Loading | None = None) -> Loading:
        (fleet / "nightherd.yaml").write_text(text)
        return files.load_first() if before is None else files.load(before)

    files = FleetFiles(fleet / "nightherd.yaml", {})
    server = "    mcp_servers: {x: {command: serve, args: [ARG]}}\n"
    first = load(FLEET + server.replace("ARG", "old"))
    second = load(FLEET + server.replace("ARG", "new"), first)
    third = load(FLEET.replace("scripted", "native").replace("default_prompt: go", "default_prompt: go\n    model: test:x"), second)  # fmt: skip

    assert second.fleet is not None
    assert second.fleet.agents["eve"].mcp_servers[0].args == ("old",)
    assert second.pending == ("agent eve: MCP server x changed",)
    assert third.fleet is not None
    assert third.fleet.agents["eve"].runtime is SCRIPTED
    assert first.pending == ()


def test_settings_of_the_project_that_changed_are_not_obeyed(fleet: Path) -> None:
    text = "agents: [{name: c, runtime: cli, working_directory: repo}]\n"
    (fleet / "repo" / ".claude").mkdir(parents=True)
    (fleet / "nightherd.yaml").write_text(text)
    files = FleetFiles(fleet / "nightherd.yaml", {})
    first = files.load_first()
    settings = fleet / "repo" / ".claude" / "settings.json"
    assert str(settings) in first.files
    hook = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch owned"}]}]}}
    settings.write_text(json.dumps(hook))

    second = files.load(first)

    assert first.fleet is not None
    assert first.fleet.agents["c"].setting_sources == ("project",)
    assert second.fleet is not None
    assert second.fleet.agents["c"].setting_sources == ()
    assert second.pending == ("agent c: Claude settings .claude/settings.json is new",)


def test_a_running_fleet_notices_what_a_person_accepts_elsewhere(fleet: Path) -> None:
    file = fleet / "nightherd.yaml"
    file.write_text(FLEET)
    files = FleetFiles(file, {})
    first = files.load_first()
    file.write_text(WIDER)
    waiting = files.load(first)
    assert stamp_of(waiting.files) == waiting.stamp, "nothing is to be read once more"

    wanted = load_fleet(file, environ={}, cwd=fleet).fleet
    admit(wanted, fleet / ".nightherd", at=NOW, is_accepted=True)

    assert waiting.pending == ("agent eve: allowed_tools Bash",)
    assert stamp_of(waiting.files) != waiting.stamp
    assert files.load(waiting).pending == ()


def test_a_program_is_told_that_an_agent_waits_to_be_accepted(accepted: Path) -> None:
    (accepted / "nightherd.yaml").write_text(NEW)

    async def run() -> None:
        async with open_fleet(cwd=accepted, environ={}) as opened:
            await opened.submit(Order(agent="new"))

    with pytest.raises(RefusedError, match="has not been accepted") as refused:
        anyio.run(run)
    assert refused.value.next_step == NextStep(Action.ACCEPT_CONFIG)
