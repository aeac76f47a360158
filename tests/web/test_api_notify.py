"""Notifications over HTTP: targets, what was sent, and a test message."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.model.access.role import Role
from runtimes.notify.loopback import loopback
from surfaces.drivers import Cli
from web.browser import named_token, on_port
from web.web_world import served, write_fleet

FLEET = """\
notify:
  - {name: phone, url_env: PHONE_URL, events: [completed, failed], allow_hosts: [127.0.0.1]}
  - {name: pager, url_env: NO_SUCH_URL, events: [failed]}
agents:
  - name: hello
    runtime: scripted
    default_prompt: go
    script: [{say: Hello.}]
"""


def test_targets_are_those_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            listed = await world.get("/v1/notify")
            said = await anyio.to_thread.run_sync(cli, "notify", "list", "--json")
            one = (await world.get("/v1/notify?target=pager")).data

            assert {**listed.document, "as_of": ""} == {**said.document, "as_of": ""}
            phone, pager = listed.data["targets"]
            assert (phone["target"], phone["events"]) == ("phone", ["completed", "failed"])
            assert (phone["is_failing"], phone["waiting"]) == (False, 0)
            assert one == {"targets": [pager], "notifications": []}
            assert (await world.get("/v1/notify?status=lost")).status == 422

    anyio.run(main)


def test_a_target_is_tested_with_its_answer(tmp_path: Path) -> None:
    async def main() -> None:
        with loopback() as server:
            (tmp_path / ".env").write_text(f"PHONE_URL={server.url(path='/a-secret-path')}\n")
            async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
                taken = await world.post("/v1/notify/phone/test")
                server.status = 503
                refused = await world.post("/v1/notify/phone/test", {})
                unset = await world.post("/v1/notify/pager/test")
                ghost = await world.post("/v1/notify/ghost/test")

                assert (taken.status, taken.data) == (200, {"target": "phone", "sent": True})
                assert b"Test of nightherd" in server.bodies[0]
                assert refused.status == 409
                detail = refused.document["detail"]
                assert "phone did not take the message: the server answered 503" in detail
                assert b"a-secret-path" not in refused.body
                assert (unset.status, ghost.status) == (409, 404)
                assert "NO_SUCH_URL" in unset.document["detail"]
                assert "it has: phone, pager" in ghost.document["detail"]

    anyio.run(main)


def test_only_an_admin_sends_test_messages(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path, write_fleet(tmp_path, FLEET)) as world:
            (port,) = world.ports
            olga = f"Bearer {await named_token(world, 'olga', Role.OPERATOR)}"

            listed = await world.ask("GET", "/v1/notify", port=port, authorization=olga)
            sent = await world.ask("POST", "/v1/notify/phone/test", port=port, authorization=olga)

            assert (listed.status, sent.status) == (200, 403)

    anyio.run(main)
