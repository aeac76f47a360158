"""Reloading over HTTP without a real daemon: who may, and what happens while nothing reloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from nightherd.daemon.control import daemon_row
from nightherd.daemon.record import make_record
from nightherd.model.access.role import Role
from nightherd.web.health import reload as path_of_reload
from web.browser import named_token, on_port
from web.web_world import World, served

PROBLEM = {"file": "nightherd.yaml", "line": 3, "column": 5, "message": "no", "path": "agents.x"}


def be_daemon(world: World, **by_reload: Any) -> None:
    """The served fleet has a daemon, whose record a reload changes so."""
    site = world.site
    records = [make_record(at=site.now(), version="1", config=site.fleet().file, agents=None)]

    def reload() -> None:
        records.append(replace(records[-1], **by_reload))

    object.__setattr__(site, "daemon", lambda now: daemon_row(records[-1], now))
    object.__setattr__(site, "reload", reload)


def test_the_answer_is_the_daemon_after_the_reload(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            later = world.site.now()
            be_daemon(world, loaded_at=later, pending=["agent hello: tools: Bash"])

            answer = await world.post("/v1/reload")

            assert (answer.status, answer.document["schema"]) == (200, "nightherd/v1/daemon")
            assert answer.data["pending"] == ["agent hello: tools: Bash"]
            assert answer.data["config_error"] is None

    anyio.run(main)


def test_errors_in_the_files_are_a_problem(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            be_daemon(world, failed_at=world.site.now(), problems=[PROBLEM])

            answer = await world.post("/v1/reload", {})

            assert (answer.status, answer.document["code"]) == (422, "config_invalid")
            (problem,) = answer.document["problems"]
            assert (problem["message"], problem["path"]) == ("nightherd.yaml:3:5: no", "agents.x")

    anyio.run(main)


def test_a_reload_that_takes_too_long_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_of_reload, "PATIENCE_S", 0)

    async def main() -> None:
        async with served(tmp_path) as world:
            be_daemon(world)

            answer = await world.post("/v1/reload")

            assert (answer.status, answer.document["code"]) == (503, "not_yet")

    anyio.run(main)


def test_without_a_daemon_nothing_reloads_and_only_an_admin_may(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            (port,) = world.ports
            roles = {"olga": Role.OPERATOR, "ada": Role.ADMIN}
            statuses = [
                (
                    await world.ask(
                        "POST",
                        "/v1/reload",
                        port=port,
                        authorization=f"Bearer {await named_token(world, name, role)}",
                    )
                ).status
                for name, role in roles.items()
            ]

            assert statuses == [403, 409]
            accept = await world.post("/v1/reload", {"accept": True})
            assert accept.status == 422

    anyio.run(main)
