"""One schedule over HTTP: where it is declared, why it fires, and who may change it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.host.machine import user_name
from nightherd.model.access.role import Role
from surfaces.drivers import Cli
from web.browser import named_token, on_port
from web.web_world import FLEET, served, write_fleet

WORKFLOWS = """\
workflows:
  report:
    on: {schedules: {weekly: {cron: "0 6 * * 1", timezone: Europe/Zurich}}}
    phases: [{name: write, agent: hello, prompt: go}]
"""


def test_one_schedule_says_where_it_is_declared_and_why_it_fires(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            listed = (await world.get("/v1/schedules")).data[0]

            shown = (await world.get("/v1/schedules/hello/nightly")).data

            assert {key: shown[key] for key in listed} == listed
            text = FLEET.splitlines()[shown["origin"]["line"] - 1]
            assert (shown["origin"]["file"], shown["origin"]["column"]) == ("nightherd.yaml", 7)
            assert text.lstrip().startswith("nightly:")
            assert (shown["timezone"], shown["prompt"]) == ("UTC", "the night")
            assert (shown["declared_enabled"], shown["workflow"]) == (True, None)
            assert shown["why"]["last_slot"] is None
            assert shown["why"]["last"] == "it has never been due while a daemon ran"
            assert "its rule is 0 3 * * * (UTC), declared" in shown["why"]["next"]

    anyio.run(main)


def test_the_reasons_are_those_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with served(tmp_path) as world:
            await world.post("/v1/schedules/hello/nightly/set", {"rule": "6h"})
            shown = (await world.get("/v1/schedules/hello/nightly")).data

            why = await anyio.to_thread.run_sync(cli, "schedule", "why", "hello/nightly", "--json")

            assert shown["why"] == {key: why.data[key] for key in ("last_slot", "last", "next")}
            assert (shown["rule"], shown["declared_rule"]) == ("every 6h", "0 3 * * * (UTC)")
            assert shown["timezone"] is None

    anyio.run(main)


def test_schedule_of_a_workflow_is_shown_and_changed(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET + WORKFLOWS)) as world:
            place = "/v1/schedules/workflow:report/weekly"

            off = await world.post(f"{place}/disable")
            shown = (await world.get(place)).data
            run = await world.post(f"{place}/run")

            assert (off.status, off.data["status"]) == (200, "disabled")
            assert (shown["workflow"], shown["timezone"]) == ("report", "Europe/Zurich")
            assert (shown["prompt"], shown["enabled"]) == (None, False)
            assert shown["origin"]["line"] == len(FLEET.splitlines()) + 3
            assert f"it was disabled by {user_name()} at" in shown["why"]["next"][0]
            assert run.status == 409

    anyio.run(main)


def test_origin_follows_the_file_and_is_missing_when_the_file_lost_the_schedule(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            place = "/v1/schedules/hello/nightly"
            before = (await world.get(place)).data["origin"]

            (tmp_path / "nightherd.yaml").write_text(f"# a line\n{FLEET}")
            moved = (await world.get(place)).data["origin"]
            (tmp_path / "nightherd.yaml").write_text(f"agents: [\n{FLEET}")
            broken = (await world.get(place)).data["origin"]
            (tmp_path / "nightherd.yaml").write_text(FLEET.replace("nightly:", "daily:"))
            gone = (await world.get(place)).data["origin"]

            assert moved == {**before, "line": before["line"] + 1}
            assert broken == moved
            assert gone is None

    anyio.run(main)


@pytest.mark.parametrize("name", ["hello/never", "nobody/nightly", "workflow:none/weekly"])
def test_unknown_schedule_is_not_found(name: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            answer = await world.get(f"/v1/schedules/{name}")

            assert (answer.status, answer.document["code"]) == (404, "not_found")

    anyio.run(main)


def test_an_operator_runs_schedules_and_only_an_admin_changes_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            (port,) = world.ports
            names = {"olga": Role.OPERATOR, "ada": Role.ADMIN}
            tokens = {
                name: f"Bearer {await named_token(world, name, role)}"
                for name, role in names.items()
            }

            async def ask(who: str, verb: str, body: dict[str, str] | None = None) -> int:
                path = f"/v1/schedules/hello/nightly/{verb}"
                answer = await world.ask(
                    "POST", path, body or {}, port=port, authorization=tokens[who]
                )
                return int(answer.status)

            verbs = ("enable", "disable", "reset")
            assert [await ask("olga", verb) for verb in (*verbs, "run")] == [403, 403, 403, 201]
            assert await ask("olga", "set", {"rule": "1h"}) == 403
            assert [await ask("ada", verb) for verb in verbs] == [200, 200, 200]
            assert await ask("ada", "set", {"rule": "1h", "updated_by": "olga"}) == 422
            assert await ask("ada", "set", {"rule": "1h"}) == 200

            shown = (await world.get("/v1/schedules/hello/nightly")).data
            assert shown["override"]["updated_by"] == "ada"
            assert "its rule is every 1h, set by ada at" in "\n".join(shown["why"]["next"])

    anyio.run(main)
