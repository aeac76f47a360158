"""The configuration over HTTP: every value with the place it was written at, and what waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.config.acceptance import admit
from nightherd.model.access.role import Role
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.reloads import ask_about, held_by
from nightherd.wiring.stores import system_clock
from surfaces.drivers import Cli
from web.browser import named_token, on_port
from web.web_world import ENVIRON, FLEET, World, served, write_fleet

LAYERED = """\
fleet: {name: layered}
heartbeat: 7s
limits: {per_day: {spend: "9.50"}}
defaults:
  allowed_tools: [Read, Bash]
  system_prompt: be kind
agents:
  - name: plain
    runtime: scripted
    script: [{say: hi}]
    schedules:
      nightly: {cron: "0 3 * * *", prompt: go}
  - path: apart/agent.yaml
    overrides:
      max_turns: 7
  - name: keyed
    runtime: scripted
    repo: https://user:${SECRET_TOKEN}@example.com/x/y
    system_prompt: "the word is literal-secret-word"
    default_prompt: "say ${SECRET_TOKEN}"
    script: steps.yaml
"""
APART = """\
name: apart
runtime: scripted
max_turns: 3
description: has a file of its own
script: [{say: hi}]
"""


def write(directory: Path) -> Path:
    (directory / "apart").mkdir()
    (directory / "apart" / "agent.yaml").write_text(APART)
    (directory / "steps.yaml").write_text("- say: from a file\n")
    (directory / ".env").write_text(
        "SECRET_TOKEN=hush-hush-hush\nMY_PASSWORD=literal-secret-word\n"
    )
    return directory


def by_key(data: Mapping[str, Any]) -> dict[str, Any]:
    return {one["key"]: one for one in data["values"]}


def where(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (row["value"], row["origin"], row["layer"])


def test_values_of_an_agent_have_their_places_and_layers(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(write(tmp_path), LAYERED)) as world:
            plain = (await world.get("/v1/agents/plain/config")).data
            apart = by_key((await world.get("/v1/agents/apart/config")).data)
            keyed = by_key((await world.get("/v1/agents/keyed/config")).data)

            values = by_key(plain)
            assert plain["agent"] == "plain"
            assert (plain["is_cut"], plain["is_valid"]) == (False, True)
            assert where(values["allowed_tools[1]"]) == ("Bash", "nightherd.yaml:5", "defaults")
            assert values["allowed_tools[1]"]["column"] == 25
            assert where(values["runtime"]) == ("scripted", "nightherd.yaml:9", "agent")
            cron = values["schedules.nightly.cron"]
            assert where(cron) == ("0 3 * * *", "nightherd.yaml:12", "agent")
            assert where(values["session.mode"]) == ("fresh_per_job", "default", "built_in")
            nowhere = {values["session.mode"][key] for key in ("file", "line", "column")}
            assert nowhere == {None}
            assert where(apart["max_turns"]) == (7, "nightherd.yaml:15", "overrides")
            assert where(apart["description"])[1:] == ("apart/agent.yaml:4", "agent")
            assert where(apart["system_prompt"]) == ("be kind", "nightherd.yaml:6", "defaults")
            assert where(keyed["script[0].say"]) == ("from a file", "steps.yaml:1", "agent")

    anyio.run(main)


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(write(tmp_path), LAYERED)) as world:
            answer = await world.get("/v1/agents/keyed/config")

            values = by_key(answer.data)
            assert b"hush-hush" not in answer.body
            assert b"literal-secret-word" not in answer.body
            assert values["default_prompt"]["value"] == "say ${SECRET_TOKEN}"
            assert values["system_prompt"]["value"] == "the word is [secret:MY_PASSWORD]"

    anyio.run(main)


def test_values_and_origins_are_those_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)

    def leaves(data: Any, path: str = "") -> dict[str, tuple[Any, str]]:
        if isinstance(data, dict) and set(data) == {"value", "origin"}:
            return {path: (data["value"], data["origin"])}
        inner = (
            [(f"{path}.{key}" if path else key, one) for key, one in data.items()]
            if isinstance(data, dict)
            else [(f"{path}[{number}]", one) for number, one in enumerate(data)]
        )
        return {key: leaf for name, one in inner for key, leaf in leaves(one, name).items()}

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(write(tmp_path), LAYERED)) as world:
            options = ("config", "show", "--resolved", "--origin", "--json")
            shown = (await anyio.to_thread.run_sync(cli, *options)).data

            for name in ("plain", "apart"):
                data = (await world.get(f"/v1/agents/{name}/config")).data
                rows = {one["key"]: (one["value"], one["origin"]) for one in data["values"]}
                assert rows == leaves(shown["agents"][name])
            data = (await world.get("/v1/config")).data
            rows = {one["key"]: (one["value"], one["origin"]) for one in data["values"]}
            assert rows == leaves(shown["fleet"])

    anyio.run(main)


def test_the_fleet_itself_has_values_files_and_problems(tmp_path: Path) -> None:
    text = LAYERED.replace(
        "script: [{say: hi}]", "script: [{say: hi}]\n    sandbox: {enabled: true}", 1
    )

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(write(tmp_path), text)) as world:
            data = (await world.get("/v1/config")).data

            values = by_key(data)
            assert data["file"] == str(tmp_path / "nightherd.yaml")
            assert set(data["files"]) >= {"nightherd.yaml", "apart/agent.yaml", "steps.yaml"}
            assert where(values["heartbeat"]) == ("7s", "nightherd.yaml:2", "fleet")
            assert where(values["lease"])[1:] == ("default", "built_in")
            assert data["accepted"] == {"is_accepted": True, "pending": [], "item_id": None}
            (problem,) = data["problems"]
            assert (problem["path"], problem["line"]) == ("agents.plain.sandbox.enabled", 11)
            assert problem["severity"] == "blocked"
            plain = (await world.get("/v1/agents/plain/config")).data
            other = (await world.get("/v1/agents/apart/config")).data
            assert (plain["problems"], other["problems"]) == ([problem], [])

    anyio.run(main)


def test_changed_files_are_read_again_and_errors_keep_the_last_values(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(write(tmp_path), LAYERED)) as world:

            async def shown() -> tuple[Any, Any, list[Any]]:
                data = (await world.get("/v1/config")).data
                lines = [one["line"] for one in data["problems"]]
                return by_key(data)["heartbeat"]["value"], data["is_valid"], lines

            file = tmp_path / "nightherd.yaml"
            assert await shown() == ("7s", True, [])
            file.write_text(LAYERED.replace("7s", "8s"))
            assert await shown() == ("8s", True, [])
            file.write_text(LAYERED.replace("7s", "-1s"))
            assert await shown() == ("8s", False, [2])
            file.unlink()
            assert (await shown())[:2] == ("8s", False)
            file.write_text(LAYERED.replace("7s", "9s"))
            assert await shown() == ("9s", True, [])
            (tmp_path / "apart" / "agent.yaml").write_text(APART.replace("own", "its own"))
            apart = by_key((await world.get("/v1/agents/apart/config")).data)
            assert apart["description"]["value"] == "has a file of its its own"

    anyio.run(main)


async def hold_change(world: World, text: str) -> None:
    """Change the fleet's file and let it be looked at as a daemon does: what gives agents more waits."""
    state, file = world.directory / ".nightherd", world.directory / "nightherd.yaml"
    at = system_clock().now()
    admit(world.site.fleet(), state, at=at)
    file.write_text(text)
    loaded = load_fleet(file, environ=ENVIRON, cwd=world.directory)
    await ask_about(held_by(admit(loaded.fleet, state, at=at)), state)


def test_what_waits_for_a_person_is_shown_with_its_item(tmp_path: Path) -> None:
    wider = FLEET.replace(
        "  - name: slow\n", "  - name: slow\n    permission_mode: bypassPermissions\n"
    )

    async def main() -> None:
        async with served(tmp_path) as world:
            await hold_change(world, wider)

            data = (await world.get("/v1/config")).data
            agent = (await world.get("/v1/agents/slow/config")).data

            accepted = data["accepted"]
            assert accepted["is_accepted"] is False
            assert "bypassPermissions" in accepted["pending"][0]
            assert agent["accepted"] == accepted
            item = (await world.get(f"/v1/inbox/{accepted['item_id']}")).data
            assert (item["kind"], item["status"]) == ("reload", "pending")

            (tmp_path / "nightherd.yaml").write_text(FLEET)
            again = (await world.get("/v1/config")).data["accepted"]
            assert again == {"is_accepted": True, "pending": [], "item_id": None}

    anyio.run(main)


def test_unknown_agent_has_no_configuration_and_a_viewer_may_look(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            token = f"Bearer {await named_token(world, 'vera', Role.VIEWER)}"

            ghost = await world.get("/v1/agents/ghost/config")
            path, (port,) = "/v1/agents/hello/config", world.ports
            seen = await world.ask("GET", path, port=port, authorization=token)

            assert (ghost.status, ghost.document["code"]) == (404, "agent_not_found")
            assert seen.status == 200

    anyio.run(main)
