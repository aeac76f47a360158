"""The server: who may come in by which way, who is hung up on, and what is left when it ends."""

from __future__ import annotations

import json
import socket
import stat
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from msgspec.structs import replace

from nightherd.engine.operations.requests import Submit, encode_request
from nightherd.errors import ConfigError, RefusedError
from nightherd.host.system import random_text
from nightherd.model.access.web import Web
from nightherd.model.agents.agent import Fleet
from nightherd.model.webhooks import Webhooks, sign_github
from nightherd.web import protocol
from nightherd.web.access import guard
from nightherd.web.api_context import ApiContext
from nightherd.web.ports import Port, ports_of
from nightherd.web.server import make_app, serve
from nightherd.web.socket_file import OPERATIONS, connect, listen
from web.web_world import SECRET, World, free_port, served, token_of, until, write_fleet

CHOSEN = "a-token-of-more-than-thirty-two-characters"


def on_port(directory: Path, **more: Any) -> tuple[Fleet, Any]:
    """A fleet whose API is on a port of this machine."""
    fleet = replace(
        write_fleet(directory), web=Web(enabled=True, host="127.0.0.1", port=free_port(), **more)
    )
    return fleet, lambda site: ports_of(fleet, site, directory / ".nightherd", random_text)


def test_the_socket_is_its_owners_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            found = world.socket_path.stat()
            assert stat.S_ISSOCK(found.st_mode)
            assert stat.S_IMODE(found.st_mode) == 0o600
            assert (await world.get("/healthz")).status == 200

        assert not world.socket_path.exists()

    anyio.run(main)


def test_an_answer_says_what_time_it_is_when_it_is_asked_for(tmp_path: Path) -> None:
    """However long nobody asked before: no clock goes on meanwhile."""

    async def main() -> None:
        async with served(tmp_path) as world:
            for _ in range(2):
                begun = datetime.now(UTC).replace(microsecond=0)
                said = (await world.get("/healthz")).headers["date"]
                assert begun <= parsedate_to_datetime(said) <= datetime.now(UTC)

    anyio.run(main)


def test_a_socket_somebody_left_behind_is_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        state = tmp_path / ".nightherd"
        state.mkdir(mode=0o700)
        listen(state / "daemon.sock").close()
        assert (state / "daemon.sock").exists()

        async with served(tmp_path) as world:
            assert (await world.get("/healthz")).status == 200

    anyio.run(main)


def test_a_second_server_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            with pytest.raises(RefusedError, match="already"):
                await serve(make_app(world.site), world.site, world.socket_path)

            assert (await world.get("/healthz")).status == 200

    anyio.run(main)


def test_something_else_at_the_sockets_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "daemon.sock").write_text("mine")

    with pytest.raises(RefusedError, match="not a socket"):
        listen(tmp_path / "daemon.sock")

    assert (tmp_path / "daemon.sock").read_text() == "mine"


def test_a_path_too_long_for_a_socket_works_all_the_same(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 80) / ("e" * 80)
    deep.mkdir(parents=True)
    server = listen(deep / "daemon.sock")

    connect(deep / "daemon.sock", 10).close()

    server.close()


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            number = taken.getsockname()[1]
            async with served(tmp_path) as world:
                door = guard.Door(counters=world.site.counters, hook_limit=lambda: 1)
                port = Port(host="127.0.0.1", port=number, door=door)
                with pytest.raises(RefusedError, match="cannot listen"):
                    await serve(make_app(world.site), world.site, tmp_path / "other.sock", [port])

    anyio.run(main)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Basic TOKEN"}, 401),
        ({"authorization": "Bearer TOKEN"}, 200),
        ({"authorization": "bearer TOKEN", "host": "localhost:80"}, 200),
        ({"authorization": "Bearer TOKEN", "host": "herd.example"}, 200),
        ({"authorization": "Bearer TOKEN", "host": "evil.example"}, 403),
        ({"authorization": "Bearer TOKEN", "host": "evil.example:127.0.0.1"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "http://127.0.0.1:PORT"}, 200),
        ({"authorization": "Bearer TOKEN", "origin": "https://127.0.0.1:PORT"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "http://localhost:PORT"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "http://127.0.0.1:9"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "http://127.0.0.1"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "http://evil.example"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "null"}, 403),
        ({"authorization": "Bearer TOKEN", "origin": "http://[evil"}, 403),
    ],
)
def test_a_port_wants_a_token_and_to_be_called_by_its_name(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    fleet, make_ports = on_port(tmp_path, hosts=frozenset({"herd.example"}))

    async def main() -> None:
        async with served(tmp_path, fleet=fleet, make_ports=make_ports) as world:
            token, port = token_of(tmp_path), str(world.ports[0])
            sent = {
                name: value.replace("TOKEN", token).replace("PORT", port)
                for name, value in headers.items()
            }

            answer = await world.ask("GET", "/v1/jobs", None, port=world.ports[0], **sent)

            assert answer.status == status
            assert (tmp_path / ".nightherd/web-token").stat().st_mode & 0o777 == 0o600

    anyio.run(main)


@pytest.mark.parametrize(
    ("host", "status"), [("127.0.0.1", 200), ("10.0.0.1", 200), ("[::1]", 200), ("a.example", 403)]
)
def test_a_server_on_every_interface_knows_the_address_it_was_reached_at(
    tmp_path: Path, host: str, status: int
) -> None:
    fleet = replace(
        write_fleet(tmp_path),
        web=Web(enabled=True, host="0.0.0.0", port=free_port()),
        environment={"NIGHTHERD_WEB_TOKEN": CHOSEN},
    )

    def make_ports(site: ApiContext) -> list[Port]:
        return ports_of(fleet, site, tmp_path / ".nightherd", random_text)

    async def main() -> None:
        async with served(tmp_path, fleet=fleet, make_ports=make_ports) as world:
            sent = {"authorization": f"Bearer {CHOSEN}", "host": host}
            answer = await world.ask("GET", "/v1/jobs", None, port=world.ports[0], **sent)

            assert answer.status == status
            if status == 403:
                said = f"host {host!r} is not allowed; add it to web.hosts"
                assert answer.document["detail"] == said

    anyio.run(main)


def test_requests_of_commands_are_taken_on_the_socket_only(tmp_path: Path) -> None:
    fleet, make_ports = on_port(tmp_path)
    data = encode_request(Submit(agent="hello", prompt="x"))

    async def main() -> None:
        async with served(tmp_path, fleet=fleet, make_ports=make_ports) as world:
            token, port = f"Bearer {token_of(tmp_path)}", world.ports[0]
            refused = await world.ask("POST", OPERATIONS, data, port=port, authorization=token)
            taken = await world.post(OPERATIONS, data)
            unclear = await world.post(OPERATIONS, b"{}")

            assert (refused.status, taken.status, unclear.status) == (404, 200, 400)
            (job,) = (await world.get("/v1/jobs")).data
            assert json.loads(taken.body) == {"job_id": job["id"]}

    anyio.run(main)


def test_health_needs_no_token_and_metrics_do(tmp_path: Path) -> None:
    fleet, make_ports = on_port(tmp_path)

    async def main() -> None:
        async with served(tmp_path, fleet=fleet, make_ports=make_ports) as world:
            health = await world.ask("GET", "/healthz", port=world.ports[0])
            metrics = await world.ask("GET", "/metrics", port=world.ports[0])
            inside = await world.get("/metrics")

            assert (health.status, metrics.status, inside.status) == (200, 401, 200)
            assert b'nightherd_http_requests_total{method="GET",status="401"} 1' in inside.body

    anyio.run(main)


def test_a_port_others_can_reach_needs_a_token_that_was_chosen(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            site = world.site
            state = tmp_path / ".nightherd"
            fleet = replace(site.fleet(), web=Web(enabled=True, host="0.0.0.0"))
            with pytest.raises(ConfigError, match="NIGHTHERD_WEB_TOKEN"):
                ports_of(fleet, site, state, random_text)

            chosen = replace(fleet, environment={"NIGHTHERD_WEB_TOKEN": "a-long-enough-token"})
            (port,) = ports_of(chosen, site, state, random_text)

            assert port.door.identify.token == "a-long-enough-token"
            assert not (state / "web-token").exists()

    anyio.run(main)


def test_the_port_of_webhooks_takes_nothing_else(tmp_path: Path) -> None:
    plain = write_fleet(tmp_path)
    hooks = Webhooks(
        enabled=True, host="127.0.0.1", port=free_port(), endpoints=plain.webhooks.endpoints
    )
    fleet = replace(plain, webhooks=hooks)

    def make_ports(site: ApiContext) -> list[Port]:
        return ports_of(fleet, site, tmp_path / ".nightherd", random_text)

    async def main() -> None:
        async with served(tmp_path, fleet=fleet, make_ports=make_ports) as world:
            body = b'{"action": "opened", "issue": {"number": 1, "title": "x"}}'
            taken = await world.ask(
                "POST", "/v1/hooks/issues", body, port=world.ports[0], host="hooks.example",
                x_github_delivery="1", x_github_event="issues",
                x_hub_signature_256=sign_github(SECRET, body),
            )  # fmt: skip
            jobs = await world.ask("GET", "/v1/jobs", port=world.ports[0])
            listed = await world.ask("GET", "/v1/hooks/issues/deliveries", port=world.ports[0])

            assert (taken.status, jobs.status, listed.status) == (202, 404, 404)

    anyio.run(main)


def talk(world: World, *parts: bytes, until_closed: bool = True) -> bytes:
    """Say the parts to the server and hear it out."""
    with connect(world.socket_path, 60) as client:
        for part in parts:
            client.sendall(part)
        heard = b""
        while until_closed and (more := client.recv(65_536)):
            heard += more
        return heard


def test_one_who_says_nothing_or_never_finishes_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol.PatientProtocol, "head_patience_s", 5.0)

    async def main() -> None:
        async with served(tmp_path) as world:
            heard: list[bytes] = []

            async def say(*parts: bytes) -> None:
                try:
                    heard.append(await to_thread.run_sync(talk, world, *parts))
                except ConnectionResetError:
                    heard.append(b"")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(say)
                tasks.start_soon(say, b"GET /healthz HT")
                tasks.start_soon(say, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: 1")
                # A whole request first, and half of another after it.
                whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                tasks.start_soon(say, whole + b"GET /v1/jo")

            assert sorted(len(one) > 0 for one in heard) == [False, False, False, True]
            assert (await world.get("/healthz")).status == 200

    anyio.run(main)


def test_a_body_that_trickles_is_not_waited_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            door = guard.Door(
                counters=world.site.counters,
                hook_limit=lambda: 1_000,
                chunk_patience_s=0.2,
                body_patience_s=0.5,
            )
            path = tmp_path / "impatient.sock"
            app = guard.Guard(make_app(world.site), door)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve, app, world.site, path)

                async def is_up() -> bool:
                    return await anyio.Path(path).exists()

                await until(is_up)
                head = (
                    b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\ncontent-type: application/json\r\n"
                    b"content-length: 100\r\n\r\n{"
                )
                heard = await to_thread.run_sync(_talk_at, path, head)
                tasks.cancel_scope.cancel()

            assert heard.startswith(b"HTTP/1.1 408")
            assert b"too_slow" in heard

    anyio.run(main)


def _talk_at(path: Path, said: bytes) -> bytes:
    with connect(path, 60) as client:
        client.sendall(said)
        heard = b""
        while more := client.recv(65_536):
            heard += more
        return heard


def test_a_chunked_body_is_counted_as_it_comes(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            head = (
                b"POST /v1/hooks/issues HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            chunk = b"%x\r\n%s\r\n" % (64 * 1024, b"x" * (64 * 1024))

            heard = await to_thread.run_sync(_send_until_answered, world, head, chunk)

            assert heard.startswith(b"HTTP/1.1 413")

    anyio.run(main)


def _send_until_answered(world: World, head: bytes, chunk: bytes) -> bytes:
    with connect(world.socket_path, 60) as client:
        client.sendall(head)
        try:
            for _ in range(17):
                client.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was told enough
        return client.recv(65_536)


def test_a_follower_that_takes_nothing_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol.PatientProtocol, "listen_patience_s", 0.3)

    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("loud", "x" * 10_000)
            await world.execute(job_id, "loud")
            ask = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
            with connect(world.socket_path, 60) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.sendall(ask.encode())

                async def came_and_went() -> bool:
                    sent = world.site.counters.requests["GET", 200]
                    return sent == 1 and world.site.counters.followers == 0

                await until(came_and_went)
            assert world.site.counters.events_sent < 200

    anyio.run(main)


def test_nothing_of_the_servers_is_left_open(tmp_path: Path) -> None:
    def handles() -> int:
        there = Path("/proc/self/fd")
        return len(list(there.iterdir())) if there.exists() else 0

    async def main() -> None:
        async with served(tmp_path) as world:
            await world.get("/v1/jobs")

    anyio.run(main)
    before = handles()
    anyio.run(main)

    assert handles() <= before
