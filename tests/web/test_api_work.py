"""Issues over HTTP: those that were taken, and giving one back."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.model.access.role import Role
from nightherd.model.change import Applied, Change
from nightherd.model.work.changes import SetSourceState
from nightherd.model.work.source import SourceState, SourceStatus
from nightherd.testing.github_api import TOKEN, GithubApi
from nightherd.testing.state_values import BEGINNING
from nightherd.testing.work_values import SOURCE, at, hold, reserve
from nightherd.triggers.work.github import GithubTracker
from surfaces.drivers import Cli
from web.browser import named_token, on_port
from web.web_world import ENVIRON, served, write_fleet

STATE = SourceState(
    id=SOURCE.id, status=SourceStatus.REFUSED, checked_at=at(1), error="no token", failures=2
)


def test_issues_are_those_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with served(tmp_path) as world:
            changes: list[Change] = [
                reserve(7),
                hold(7),
                reserve(8, seconds=9),
                SetSourceState(state=STATE),
            ]
            for answer in await world.site.context.state.apply(changes):
                assert isinstance(answer, Applied)
            listed = await world.get("/v1/work")
            said = await anyio.to_thread.run_sync(cli, "work", "list", "--json")

            assert {**listed.document, "as_of": ""} == {**said.document, "as_of": ""}
            assert [(one["issue"], one["status"]) for one in listed.data] == [
                (8, "reserved"),
                (7, "held"),
            ]
            assert len((await world.get("/v1/work?open=true&limit=1")).data) == 1
            (source,) = listed.document["sources"]
            assert (source["status"], source["failures"]) == ("refused", 2)

    anyio.run(main)


FLEET = """\
agents:
  - name: hello
    runtime: scripted
    default_prompt: go
    work_source: {type: github, repo: acme/app}
    schedules: {issues: {interval: 1h}}
    script: [{say: Hello.}]
"""


def test_status_says_which_source_fails(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            await world.site.context.state.apply([SetSourceState(state=STATE)])
            (source,) = (await world.get("/v1/status")).data["failing_work_sources"]

            assert (source["source"], source["error"]) == (SOURCE.id, "no token")

    anyio.run(main)


def test_issue_is_given_back_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            await world.site.context.state.apply([reserve(7), hold(7)])
            released = await world.post("/v1/work/release", {"issue": "acme/app#7"})
            again = await world.post("/v1/work/release", {"issue": "#7"})
            ghost = await world.post("/v1/work/release", {"issue": "#9"})

            assert (released.status, released.data["status"]) == (200, "settling")
            assert (again.status, ghost.status) == (409, 404)
            assert (await world.post("/v1/work/release", {})).status == 422

    anyio.run(main)


LOOPBACK = FLEET.replace(
    "repo: acme/app}", 'repo: acme/app, base_url: "URL", auth: {token_env: LOOPBACK_TOKEN}}'
)


def test_locks_are_listed_and_one_that_is_named_is_removed(tmp_path: Path) -> None:
    environ = {**ENVIRON, "LOOPBACK_TOKEN": TOKEN}

    async def main(api: GithubApi) -> None:
        fleet = write_fleet(tmp_path, LOOPBACK.replace("URL", api.url))
        async with served(tmp_path, fleet=fleet, environ=environ) as world:
            (tracked,) = fleet.agents["hello"].schedules.values()
            assert tracked.work is not None
            other = GithubTracker(tracked.work, lambda: TOKEN)
            await other.take_lock(7, "claim-7", "stable", BEGINNING)
            (row,) = (await world.get("/v1/work/locks")).data
            assert (row["number"], row["fleet"], row["is_own"]) == (7, "stable", False)
            wrong = {"issue": "#7", "lock": "claim-6"}
            assert (await world.post("/v1/work/unlock", wrong)).status == 409
            removed = await world.post("/v1/work/unlock", {"issue": "#7", "lock": row["lock"]})
            assert (removed.status, removed.data["is_ready"]) == (200, True)
            assert (await world.post("/v1/work/unlock", wrong)).status == 404
            assert api.repository.labels(7) == ["ready"]

    with GithubApi() as api:
        api.repository.open_issue(7, "The fence is broken", "agent-working")
        anyio.run(main, api)


def test_viewer_gives_nothing_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            await world.site.context.state.apply([reserve(7), hold(7)])
            vera = f"Bearer {await named_token(world, 'vera', Role.VIEWER)}"
            (port,) = world.ports
            listed = await world.ask("GET", "/v1/work", port=port, authorization=vera)
            refused = await world.ask(
                "POST", "/v1/work/release", {"issue": "#7"}, port=port, authorization=vera
            )

            assert (listed.status, refused.status) == (200, 403)

    anyio.run(main)
