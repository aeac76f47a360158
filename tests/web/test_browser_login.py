"""Logging in: one-time codes, tokens, the cookie with the secret of its page, logging out, and the limit of failures."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.engine.operations.tokens import revoke_token
from nightherd.host.machine import user_name
from nightherd.model.access.role import Role
from nightherd.web.access.addressed import network_of
from nightherd.web.access.login_codes import FAILURES, LIFETIME_S, PAUSE_S, FailedLogins, LoginCodes
from nightherd.wiring.stores import random_text
from web.browser import (
    from_page,
    log_in,
    logged_in,
    login_headers,
    named_token,
    new_code,
    on_port,
    origin_of,
)
from web.web_world import token_of


def test_a_code_logs_one_browser_in_as_the_user_of_this_machine(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            code = await new_code(world)
            login = await log_in(world, code=code)
            again = await log_in(world, code=code)
            headers = login_headers(world, login)
            me = await world.ask("GET", "/v1/me", port=world.ports[0], **headers)

            cookie = login.headers["set-cookie"]
            assert cookie.startswith(f"nightherd_session_{world.ports[0]}=")
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
            assert "Secure" not in cookie
            assert (again.status, again.document["code"]) == (401, "unauthorized")
            assert (me.data["name"], me.data["role"]) == (user_name(), "admin")
            assert me.data["fleet"] == "served"
            assert me.data["settings"] == {"tool_results": True, "message_grouping": "separate"}
            assert set(me.data["can"].values()) == {True}
            assert me.data["expires_at"] == login.data["expires_at"]

    anyio.run(main)


def test_nothing_on_disk_logs_a_browser_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            code = await new_code(world)
            login = await log_in(world, code=code)
            cookie = login.headers["set-cookie"].partition("=")[2].partition(";")[0]
            secrets = [text.encode() for text in (code, cookie, login.data["secret"])]

            files = [path for path in (tmp_path / ".nightherd").rglob("*") if path.is_file()]
            kept = b"".join(path.read_bytes() for path in files)

            assert len(files) > 2
            assert not any(secret in kept for secret in secrets)

    anyio.run(main)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"x_nightherd_secret": ""}, 401),
        ({"x_nightherd_secret": "guessed"}, 401),
        ({"cookie": ""}, 401),
        ({"cookie": "nightherd_session_PORT=guessed"}, 401),
        ({"cookie": "nightherd_session=COOKIE"}, 401),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "none"}, 403),
        ({"sec_fetch_site": ""}, 403),
        ({"origin": "http://127.0.0.1:9"}, 403),
        ({"origin": "http://localhost:PORT"}, 403),
        ({"origin": "https://127.0.0.1:PORT"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"host": "evil.example"}, 403),
    ],
)
def test_a_cookie_counts_with_its_secret_and_from_a_page_of_this_origin(
    tmp_path: Path, changes: dict[str, str], status: int
) -> None:
    """A page on another port of this host is sent the cookie too: it has neither the secret nor the origin."""

    async def main() -> None:
        async with on_port(tmp_path) as world:
            port = str(world.ports[0])
            headers = await logged_in(world)
            value = headers["cookie"].partition("=")[2]
            for name, text in changes.items():
                headers[name] = text.replace("PORT", port).replace("COOKIE", value)
                if not headers[name]:
                    del headers[name]

            read = await world.ask("GET", "/v1/jobs", port=world.ports[0], **headers)
            job = {"agent": "hello", "prompt": "x"}
            acted = await world.ask("POST", "/v1/jobs", job, port=world.ports[0], **headers)

            assert read.status == status
            assert acted.status == (201 if status == 200 else status)

    anyio.run(main)


def test_programs_without_a_browser_cannot_use_a_cookie_without_saying_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            headers = await logged_in(world)
            del headers["sec_fetch_site"], headers["origin"]

            refused = await world.ask("GET", "/v1/me", port=world.ports[0], **headers)

            assert refused.status == 403
            assert "no Sec-Fetch-Site" in refused.document["detail"]

    anyio.run(main)


def test_a_token_logs_a_browser_in_until_it_is_revoked(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            secret = await named_token(world, "alice", Role.VIEWER)
            login = await log_in(world, token=secret)
            headers = login_headers(world, login)
            before = await world.ask("GET", "/v1/me", port=world.ports[0], **headers)
            context = world.site.context
            await revoke_token("alice", context.state, by="owner", at=context.clock.now())
            after = await world.ask("GET", "/v1/me", port=world.ports[0], **headers)

            assert (before.data["name"], before.data["role"]) == ("alice", "viewer")
            assert before.data["can"]["read"] is True
            assert before.data["can"]["answer"] is False
            assert after.status == 401

    anyio.run(main)


def test_a_browser_that_used_the_fleets_token_is_out_when_that_is_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            login = await log_in(world, token=token_of(tmp_path))
            headers = login_headers(world, login)
            me = await world.ask("GET", "/v1/me", port=world.ports[0], **headers)
        (tmp_path / ".nightherd/web-token").write_text("another-token-of-this-fleet\n")
        async with on_port(tmp_path) as world:
            value = headers["cookie"].partition("=")[2]
            moved = {
                **headers,
                **from_page(world),
                "cookie": f"nightherd_session_{world.ports[0]}={value}",
            }
            after = await world.ask("GET", "/v1/me", port=world.ports[0], **moved)

        assert (me.data["name"], me.data["role"]) == ("web", "admin")
        assert after.status == 401

    anyio.run(main)


def test_a_browser_stays_logged_in_across_a_restart_until_its_time_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            headers = await logged_in(world)
        value = headers["cookie"].partition("=")[2]
        async with on_port(tmp_path) as world:
            kept = {
                **headers,
                **from_page(world),
                "cookie": f"nightherd_session_{world.ports[0]}={value}",
            }
            again = await world.ask("GET", "/v1/me", port=world.ports[0], **kept)
            assert again.status == 200

    anyio.run(main)


def test_a_login_expires(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path, session_expiry_hours=1e-9) as world:
            login = await log_in(world, code=await new_code(world))
            headers = login_headers(world, login)

            late = await world.ask("GET", "/v1/me", port=world.ports[0], **headers)

            assert late.status == 401

    anyio.run(main)


@pytest.mark.parametrize("everywhere", [False, True])
def test_logging_out_ends_this_browser_or_all_of_the_person(
    tmp_path: Path, everywhere: bool
) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            port = world.ports[0]
            first, second = await logged_in(world), await logged_in(world)
            other = login_headers(
                world, await log_in(world, token=await named_token(world, "alice"))
            )

            body = {"everywhere": everywhere}
            out = await world.ask("POST", "/v1/logout", body, port=port, **first)

            statuses = [
                (await world.ask("GET", "/v1/me", port=port, **one)).status
                for one in (first, second, other)
            ]
            assert out.data == {"ended": 2 if everywhere else 1}
            assert "Max-Age=0" in out.headers["set-cookie"]
            assert statuses == [401, 401 if everywhere else 200, 200]

    anyio.run(main)


def test_codes_are_made_on_the_socket_only(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            headers = await logged_in(world)
            port = world.ports[0]
            by_page = await world.ask("POST", "/v1/login/codes", port=port, **headers)
            token = f"Bearer {token_of(tmp_path)}"
            by_token = await world.ask("POST", "/v1/login/codes", port=port, authorization=token)

            assert (by_page.status, by_token.status) == (404, 404)

    anyio.run(main)


def test_a_client_that_fails_too_often_has_to_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            failed = [await log_in(world, token=f"guess-{n}") for n in range(FAILURES)]
            refused = await log_in(world, token=token_of(tmp_path))
            reading = await world.ask(
                "GET",
                "/v1/me",
                port=world.ports[0],
                authorization=f"Bearer {token_of(tmp_path)}",
            )

            assert {one.status for one in failed} == {401}
            assert (refused.status, refused.document["code"]) == (429, "too_many_logins")
            assert 1 <= int(refused.headers["retry-after"]) <= PAUSE_S
            assert reading.status == 200

    anyio.run(main)


def test_guesses_at_the_same_time_are_no_more_than_those_one_after_another(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            statuses: list[int] = []

            async def guess(number: int) -> None:
                statuses.append((await log_in(world, token=f"guess-{number}")).status)

            async with anyio.create_task_group() as tasks:
                for number in range(3 * FAILURES):
                    tasks.start_soon(guess, number)

            assert sorted(set(statuses)) == [401, 429]
            assert statuses.count(401) < 2 * FAILURES

    anyio.run(main)


@pytest.mark.parametrize("body", [{}, {"code": "a", "token": "b"}, {"code": ""}, {"user": "x"}])
def test_what_is_neither_a_code_nor_a_token_is_refused(
    tmp_path: Path, body: dict[str, str]
) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            assert (await log_in(world, **body)).status == 422

    anyio.run(main)


def test_another_site_cannot_log_a_browser_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            sent = {"code": await new_code(world)}
            port = world.ports[0]
            other = f"http://127.0.0.1:{port + 1}"
            refused = await world.ask("POST", "/v1/login", sent, port=port, origin=other)
            taken = await world.ask("POST", "/v1/login", sent, port=port, origin=origin_of(world))

            assert (refused.status, taken.status) == (403, 200)

    anyio.run(main)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_what_a_browser_sends_for_no_page_of_ours_neither_logs_in_nor_uses_the_code_up(
    tmp_path: Path, site: str
) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            sent, port = {"code": await new_code(world)}, world.ports[0]
            refused = await world.ask("POST", "/v1/login", sent, port=port, sec_fetch_site=site)
            taken = await world.ask("POST", "/v1/login", sent, port=port)

            assert (refused.status, taken.status) == (403, 200)

    anyio.run(main)


def test_a_code_is_good_for_a_minute_and_once() -> None:
    codes = LoginCodes()
    code = codes.make("alice", 100.0, random_text())
    other = codes.make("bob", 100.0, random_text())

    assert codes.take("guessed", 101.0) is None
    assert codes.take(code, 100.0 + LIFETIME_S - 1) == "alice"
    assert codes.take(code, 100.0 + LIFETIME_S - 1) is None
    assert codes.take(other, 100.0 + LIFETIME_S) is None


def test_failures_of_one_client_do_not_hold_up_another_and_pass() -> None:
    failures = FailedLogins()
    for _ in range(FAILURES):
        assert failures.count("10.0.0.1", 0.0) == 0

    assert failures.count("10.0.0.1", 0.0) == PAUSE_S
    assert failures.count("10.0.0.2", 0.0) == 0
    assert failures.count("10.0.0.1", PAUSE_S) == 0
    assert failures.count("10.0.0.1", PAUSE_S) > 0
    assert failures.count("10.0.0.1", PAUSE_S * 100) == 0


def test_all_addresses_of_one_ipv6_network_are_one_client() -> None:
    assert network_of("2001:db8:1:2::7") == network_of("2001:db8:1:2:ffff::8")
    assert network_of("2001:db8:1:2::7") != network_of("2001:db8:1:3::7")
    assert network_of("10.0.0.1") != network_of("10.0.0.2")


def test_logins_that_succeed_are_not_counted_and_waiting_is_never_longer_than_a_pause() -> None:
    failures = FailedLogins()
    for _ in range(3 * FAILURES):
        assert failures.count("10.0.0.1", 0.0) == 0
        failures.forgive("10.0.0.1")
    for _ in range(FAILURES):
        failures.count("10.0.0.1", 0.0)

    assert {failures.count("10.0.0.1", 0.0) for _ in range(100)} == {PAUSE_S}


def test_an_open_stream_ends_when_its_login_does(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path, recheck_s=0.05) as world:
            job_id = await world.submit("slow", "go")
            headers = await logged_in(world)
            lines = [f"GET /v1/jobs/{job_id}/events HTTP/1.1", "Accept: text/event-stream"]
            lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            lines += [f"Host: 127.0.0.1:{world.ports[0]}", "", ""]
            async with await anyio.connect_tcp("127.0.0.1", world.ports[0]) as stream:
                await stream.send("\r\n".join(lines).encode())
                heard = await stream.receive()
                assert b" 200 " in heard.split(b"\r\n")[0]
                await world.ask("POST", "/v1/logout", port=world.ports[0], **headers)
                with anyio.fail_after(60):
                    while b"\r\n0\r\n" not in heard:
                        heard += await stream.receive()

    anyio.run(main)


def test_a_role_includes_those_below_it() -> None:
    assert Role.ADMIN.includes(Role.OPERATOR)
    assert Role.OPERATOR.includes(Role.VIEWER)
    assert not Role.VIEWER.includes(Role.OPERATOR)
    assert not Role.OPERATOR.includes(Role.ADMIN)
