"""Agents over HTTP: how each is set up, what it may use and has used today, and what failed last."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from surfaces.drivers import Cli
from web.web_world import served, write_fleet

FLEET = """\
agents:
  - name: coder
    description: writes code
    runtime: scripted
    model: test-model
    permission_mode: plan
    allowed_tools: [Read, "Bash(say ${MY_TOKEN})"]
    denied_tools: [WebFetch]
    instances: {max_concurrent: 2}
    max_turns: 9
    job_timeout: 90s
    session: {mode: persistent}
    limits: {tokens: 800, per_day: {spend: "0.50"}}
    schedules:
      nightly: {cron: "0 3 * * *", prompt: go, limits: {per_day: {spend: "0.20"}}}
    default_prompt: go
    script:
      - say: hi
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.125}
  - name: broken
    runtime: scripted
    default_prompt: go
    script: [{fail: {code: bad, message: it is broken}}]
"""


def write(directory: Path) -> None:
    (directory / ".env").write_text("MY_TOKEN=hush-hush-hush\n")
    write_fleet(directory, FLEET)


def test_list_says_how_agents_are_set_up_and_what_they_spent(tmp_path: Path) -> None:
    write(tmp_path)

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            await world.run("coder")

            coder, broken = (await world.get("/v1/agents")).data

            assert (coder["model"], coder["permission_mode"]) == ("test-model", "plan")
            assert (coder["workspace"], coder["has_container"]) == ("shared", False)
            assert (coder["spent_today_usd"], coder["spend_cap_today_usd"]) == (0.125, 0.5)
            assert (broken["spent_today_usd"], broken["spend_cap_today_usd"]) == (0.0, None)
            assert (broken["model"], broken["permission_mode"]) == (None, "acceptEdits")

    anyio.run(main)


def test_one_agent_has_its_settings_limits_and_last_failure(tmp_path: Path) -> None:
    write(tmp_path)

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            await world.run("coder")
            first, last = [await world.run("broken") for _ in range(2)]

            answer = await world.get("/v1/agents/coder")
            broken = (await world.get("/v1/agents/broken")).data

            coder, settings = answer.data, answer.data["settings"]
            assert (settings["tools"], settings["denied_tools"]) == (None, ["WebFetch"])
            assert b"hush-hush" not in answer.body
            assert settings["allowed_tools"] == ["Read", "Bash(say [secret:MY_TOKEN])"]
            assert (settings["max_concurrent"], settings["max_turns"]) == (2, 9)
            assert (settings["session_mode"], settings["job_timeout_seconds"]) == ("persistent", 90)
            assert settings["workspace"]["mode"] == "shared"
            assert (settings["container"], settings["mcp_servers"]) == (None, [])
            assert settings["working_directory"] == str(tmp_path)
            assert coder["spent"] == {"today_usd": 0.125, "today_turns": 1, "today_tokens": 12}
            limits = {
                (one["scope"], one["limit"], one["per_day"]): (one["maximum"], one["used"])
                for one in coder["limits"]
            }
            assert limits["job", "tokens", False] == (800, None)
            assert limits["agent", "spend", True] == (0.5, 0.125)
            assert limits["schedule", "spend", True] == (0.2, 0.0)
            assert [one["name"] for one in coder["schedules"]] == ["nightly"]
            assert coder["last_failure"] is None
            assert broken["last_failure"]["job_id"] == last != first
            assert "it is broken" in broken["last_failure"]["error"]
            assert broken["status"] == "error"

    anyio.run(main)


def test_the_command_shows_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            await world.run("coder")

            shown = (await world.get("/v1/agents/coder")).data

            said = await anyio.to_thread.run_sync(cli, "agent", "show", "coder", "--json")
            assert said.data == shown

    anyio.run(main)


def test_agent_that_left_the_file_keeps_its_record(tmp_path: Path) -> None:
    async def main() -> None:
        fleet = write_fleet(tmp_path)
        async with served(tmp_path, fleet=fleet) as world:
            await world.run("hello")
            agents = {name: one for name, one in fleet.agents.items() if name != "hello"}
            msgspec.structs.force_setattr(fleet, "agents", agents)

            gone = (await world.get("/v1/agents/hello")).data

            assert (gone["is_declared"], gone["settings"], gone["limits"]) == (False, None, [])
            assert gone["spent"]["today_usd"] == gone["spent_today_usd"] == 0.001

    anyio.run(main)
