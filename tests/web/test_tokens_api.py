"""Tokens over HTTP: added with a role, shown once, revoked; and who is recorded as the one who acts."""

from __future__ import annotations

from pathlib import Path

import anyio

from nightherd.engine.operations.requests import SetSchedule, encode_request
from nightherd.host.machine import user_name
from nightherd.model.access.role import Role
from nightherd.web.socket_file import OPERATIONS
from web.browser import named_token, on_port
from web.web_world import served


def test_an_admin_adds_and_revokes_tokens(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            port = world.ports[0]
            admin = f"Bearer {await named_token(world, 'root', Role.ADMIN)}"
            body = {"name": "vera", "role": "viewer"}
            added = await world.ask("POST", "/v1/tokens", body, port=port, authorization=admin)
            twice = await world.ask("POST", "/v1/tokens", body, port=port, authorization=admin)
            vera = f"Bearer {added.data['token']}"
            me = await world.ask("GET", "/v1/me", port=port, authorization=vera)
            listed = await world.ask("GET", "/v1/tokens", port=port, authorization=admin)
            hidden = await world.ask("GET", "/v1/tokens", port=port, authorization=vera)
            gone = await world.ask("DELETE", "/v1/tokens/vera", port=port, authorization=admin)
            after = await world.ask("GET", "/v1/me", port=port, authorization=vera)

            assert (added.status, twice.status) == (201, 409)
            assert added.data["created_by"] == "root"
            assert (me.data["name"], me.data["role"]) == ("vera", "viewer")
            assert [(one["name"], one["role"]) for one in listed.data] == [
                ("root", "admin"),
                ("vera", "viewer"),
            ]
            assert "token" not in listed.data[1]
            assert min(one["last_used_at"] for one in listed.data) >= added.data["created_at"]
            again = await world.ask("GET", "/v1/tokens", port=port, authorization=admin)
            assert again.data[0]["last_used_at"] > listed.data[0]["last_used_at"]
            assert again.data[1]["last_used_at"] > listed.data[1]["last_used_at"]
            assert (hidden.status, gone.status, after.status) == (403, 200, 401)
            assert gone.data["revoked_by"] == "root"

    anyio.run(main)


def test_who_changes_a_schedule_is_the_caller_whatever_the_body_says(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            token = f"Bearer {await named_token(world, 'alice', Role.ADMIN)}"
            path = "/v1/schedules/hello/nightly/disable"
            forged = await world.post(path, {"by": "somebody"}, authorization=token)
            by_token = await world.post(path, authorization=token)
            by_user = await world.post(path)

            assert forged.status == 422
            assert by_token.data["override"]["updated_by"] == "alice"
            assert by_user.data["override"]["updated_by"] == user_name()

    anyio.run(main)


def test_who_sends_a_command_is_the_user_of_its_process_or_its_token(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            token = f"Bearer {await named_token(world, 'alice', Role.ADMIN)}"
            operator = f"Bearer {await named_token(world, 'oscar', Role.OPERATOR)}"
            said = SetSchedule(agent="hello", schedule="nightly", by="mallory", enabled=False)

            async def updated_by(**headers: str) -> str:
                answer = await world.post(OPERATIONS, encode_request(said), **headers)
                assert answer.status == 200, answer.body
                (row,) = [
                    one
                    for one in (await world.get("/v1/schedules")).data
                    if one["name"] == "nightly"
                ]
                return str(row["override"]["updated_by"])

            refused = await world.post(OPERATIONS, encode_request(said), authorization=operator)

            assert refused.status == 403
            assert await updated_by() == user_name()
            assert await updated_by(authorization=token) == "alice"

    anyio.run(main)
