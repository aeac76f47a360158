"""Beyond this machine: TLS, reverse proxies that name people, and which names, addresses and origins are believed."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from components import Components
from nightherd.errors import ConfigError, ConfigInvalidError
from nightherd.model.access.role import Role
from nightherd.model.access.web import Tls, Web, dashboard_url
from nightherd.web.access.addressed import Addresses, networks_of, place_of
from nightherd.web.ports import addresses_of, find_certificate
from nightherd.wiring.fleets import load_fleet
from web.browser import log_in, on_port
from web.web_world import World, token_of

PROXY, STRANGER = "127.0.0.2", "127.0.0.3"
BEHIND: dict[str, Any] = {
    "trusted_proxy": (f"{PROXY}/32",),
    "identity_header": "x-forwarded-user",
    "public_url": "https://herd.example",
}
PEOPLE = {"alice": Role.ADMIN, "vera": Role.VIEWER}
PAGE = {
    "Host": "internal:80",
    "X-Forwarded-Host": "herd.example",
    "X-Forwarded-Proto": "https",
    "Origin": "https://herd.example",
    "Sec-Fetch-Site": "same-origin",
}


def certificate(openssl: str, directory: Path, name: str = "localhost") -> Tls:
    """A certificate for `name`, made for this test."""
    cert, key = directory / "cert.pem", directory / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return Tls(cert=str(cert), key=str(key))


async def ask_from(
    world: World,
    source: str,
    headers: dict[str, str],
    path: str = "/v1/me",
    method: str = "GET",
    body: Any = None,
) -> tuple[int, dict[str, Any]]:
    """One request from an address of this machine."""
    status, _, document = await answered(world, source, headers, path, method, body)
    return status, document


async def cookie_from(
    world: World, source: str, headers: dict[str, str], body: Any
) -> tuple[int, str]:
    """The status of a login, and the cookie that it set."""
    status, sent, _ = await answered(world, source, headers, "/v1/login", "POST", body)
    return status, sent.get("set-cookie", "")


async def answered(
    world: World, source: str, headers: dict[str, str], path: str, method: str, body: Any
) -> tuple[int, http.client.HTTPMessage, dict[str, Any]]:
    """Status, headers and document of the answer to one request from an address of this machine."""

    def ask() -> tuple[int, http.client.HTTPMessage, dict[str, Any]]:
        connection = http.client.HTTPConnection(
            "127.0.0.1", world.ports[0], timeout=60, source_address=(source, 0)
        )
        sent = {**headers, "content-type": "application/json"}
        text = None if body is None else json.dumps(body)
        connection.request(method, path, body=text, headers=sent)
        answer = connection.getresponse()
        found = answer.status, answer.headers, json.loads(answer.read())
        connection.close()
        return found

    return await to_thread.run_sync(ask)


def test_a_port_with_a_certificate_speaks_https_alone(
    tmp_path: Path, components: Components
) -> None:
    tls = certificate(components.program("openssl"), tmp_path)

    async def main() -> None:
        async with on_port(tmp_path, tls=tls) as world:
            port = world.ports[0]
            token = token_of(tmp_path)

            def ask() -> tuple[int, str, int]:
                trusted = ssl.create_default_context(cafile=tls.cert)
                connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusted)
                body = json.dumps({"token": token})
                headers = {
                    "Origin": f"https://127.0.0.1:{port}",
                    "Content-Type": "application/json",
                }
                connection.request("POST", "/v1/login", body=body, headers=headers)
                answer = connection.getresponse()
                answer.read()
                headers["Origin"] = f"http://127.0.0.1:{port}"
                connection.request("POST", "/v1/login", body=body, headers=headers)
                plain = connection.getresponse().status
                connection.close()
                return answer.status, answer.headers["set-cookie"], plain

            status, cookie, plain_origin = await to_thread.run_sync(ask)
            with pytest.raises((http.client.HTTPException, OSError)):
                await world.ask("GET", "/healthz", port=port)

            assert (status, plain_origin) == (200, 403)
            assert "; Secure" in cookie

    anyio.run(main)


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("nothing")

    with pytest.raises(ConfigError, match=r"web\.tls.*key\.pem"):
        find_certificate(Tls(cert="cert.pem", key="key.pem"), tmp_path)


@pytest.mark.parametrize(
    ("source", "changes", "status"),
    [
        (PROXY, {}, 200),
        (STRANGER, {}, 403),
        (STRANGER, {"Host": "127.0.0.1:PORT", "Origin": "http://127.0.0.1:PORT"}, 401),
        (PROXY, {"X-Forwarded-User": "mallory"}, 403),
        (PROXY, {"X-Forwarded-User": "web"}, 401),
        (PROXY, {"X-Forwarded-User": ""}, 401),
        (PROXY, {"Sec-Fetch-Site": "cross-site"}, 403),
        (PROXY, {"Sec-Fetch-Site": "same-site"}, 403),
        (PROXY, {"Sec-Fetch-Site": ""}, 403),
        (PROXY, {"Origin": "http://herd.example"}, 403),
        (PROXY, {"Origin": "https://herd.example:444"}, 403),
        (PROXY, {"X-Forwarded-Host": "evil.example", "Origin": "https://evil.example"}, 403),
    ],
)
def test_people_are_who_the_trusted_proxy_says_and_nobody_else_says_it(
    tmp_path: Path, source: str, changes: dict[str, str], status: int
) -> None:
    async def main() -> None:
        async with on_port(tmp_path, **BEHIND, people=PEOPLE) as world:
            headers = {**PAGE, "X-Forwarded-User": "alice"}
            for name, value in changes.items():
                headers[name] = value.replace("PORT", str(world.ports[0]))
                if not value:
                    del headers[name]

            found, document = await ask_from(world, source, headers)

            assert found == status, document
            if status == 200:
                assert document["data"]["name"] == "alice"
                assert document["data"]["role"] == "admin"

    anyio.run(main)


@pytest.mark.parametrize(
    ("origin", "status"), [("https://herd.example", 200), ("http://herd.example", 403)]
)
def test_behind_a_proxy_that_says_no_scheme_the_one_of_the_public_address_counts(
    tmp_path: Path, origin: str, status: int
) -> None:
    async def main() -> None:
        async with on_port(tmp_path, **BEHIND) as world:
            token = {"token": token_of(tmp_path)}
            headers = {"Host": "herd.example", "Origin": origin, "Sec-Fetch-Site": "same-origin"}

            found, cookie = await cookie_from(world, PROXY, headers, token)

            assert found == status
            assert ("; Secure" in cookie) is (status == 200)

    anyio.run(main)


def test_a_viewer_of_the_proxy_cannot_act(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path, **BEHIND, people=PEOPLE) as world:
            job = {"agent": "hello", "prompt": "x"}
            vera, alice = ({**PAGE, "X-Forwarded-User": name} for name in ("vera", "alice"))
            refused, _ = await ask_from(world, PROXY, vera, "/v1/jobs", "POST", job)
            taken, _ = await ask_from(world, PROXY, alice, "/v1/jobs", "POST", job)
            read, _ = await ask_from(world, PROXY, vera, "/v1/jobs")

            assert (refused, taken, read) == (403, 201, 200)

    anyio.run(main)


def test_without_roles_for_people_everyone_the_proxy_names_is_a_viewer() -> None:
    assert Web().role_of("anybody") is Role.VIEWER
    assert Web(people={"a": Role.ADMIN}).role_of("b") is None
    assert Web(people={"a": Role.ADMIN, "*": Role.OPERATOR}).role_of("b") is Role.OPERATOR


def test_failed_logins_are_counted_for_the_client_behind_the_proxy(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path, **BEHIND) as world:
            wrong = {"token": "guessed"}

            async def fail(client: str, source: str = PROXY) -> int:
                headers = {**PAGE, "X-Forwarded-For": f"spoofed, {client}"}
                return (await ask_from(world, source, headers, "/v1/login", "POST", wrong))[0]

            first = [await fail("10.0.0.1") for _ in range(11)]

            assert first == [401] * 10 + [429]
            assert await fail("10.0.0.2") == 401
            assert (await log_in(world, **wrong)).status == 401

    anyio.run(main)


def test_unencrypted_requests_from_other_machines_are_taken_from_the_proxy_only() -> None:
    addresses = addresses_of(Web(host="0.0.0.0", trusted_proxy=("10.0.0.0/8",)))

    def takes(client: str) -> bool:
        return addresses.takes_plain({"type": "http", "client": (client, 1)})

    assert takes("10.1.2.3")
    assert takes("::ffff:10.1.2.3")
    assert takes("127.0.0.1")
    assert not takes("192.168.1.2")
    assert addresses_of(Web(host="0.0.0.0", tls=Tls(cert="a", key="b"))).takes_plain(
        {"type": "http", "client": ("192.168.1.2", 1)}
    )


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("192.168.1.2", True),
        ("::1", True),
        ("herd.example", True),
        ("evil.example", False),
        ("", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_on_every_interface_addresses_pass_and_names_have_to_be_listed(
    host: str, is_known: bool
) -> None:
    addresses = addresses_of(Web(host="0.0.0.0", hosts=frozenset({"Herd.Example"})))

    assert addresses.knows(host, {"type": "http", "server": ("10.0.0.9", 3232)}) is is_known


def test_an_origin_has_the_same_scheme_host_and_port() -> None:
    addresses = Addresses(public_url="https://herd.example/nightherd")
    here = place_of("http://localhost:3232")
    assert here == ("http", "localhost", 3232)

    assert addresses.allows("http://localhost:3232", here)
    assert addresses.allows("HTTP://LOCALHOST:3232", here)
    for origin in (
        "http://localhost",
        "https://localhost:3232",
        "http://localhost:3233",
        "null",
        "x",
    ):
        assert not addresses.allows(origin, here)
    assert not addresses.allows("https://herd.example", here)
    assert addresses.allows("https://herd.example", ("http", "herd.example", 80))
    assert not addresses.allows("http://herd.example", ("https", "herd.example", 443))
    assert networks_of(["10.0.0.0/8", "::1"])[1].num_addresses == 1


@pytest.mark.parametrize(
    ("web", "address"),
    [
        (Web(), "http://localhost:9/"),
        (Web(host="0.0.0.0", tls=Tls(cert="a", key="b")), "https://127.0.0.1:9/"),
        (Web(host="::", tls=Tls(cert="a", key="b"), base_path="/x"), "https://[::1]:9/x/"),
        (Web(host="0.0.0.0", public_url="https://h.example/x"), "https://h.example/x/"),
        (Web(public_url="https://h.example"), "http://localhost:9/"),
    ],
)
def test_the_address_of_the_dashboard(web: Web, address: str) -> None:
    assert dashboard_url(web, 9) == address


@pytest.mark.parametrize(
    ("keys", "place", "said"),
    [
        ("host: 0.0.0.0", "2:", "add 'tls' with 'cert' and 'key', or 'trusted_proxy'"),
        ("identity_header: X-User", "2:", "'identity_header' needs 'trusted_proxy'"),
        ("trusted_proxy: [10.0.0.300]", "2:", "is not a network"),
        ("trusted_proxy: [10.0.0.1/8]", "2:", "is not a network"),
        ("people: {alice: admin}", "2:", "'people' needs 'identity_header'"),
        ("base_path: herd", "2:", "is not a path"),
        ("base_path: /a/../b", "2:", "is not a path"),
        ("tls: {cert: a.pem}", "2:", "key"),
    ],
)
def test_settings_that_do_not_protect_are_refused_at_their_line(
    tmp_path: Path, keys: str, place: str, said: str
) -> None:
    file = tmp_path / "nightherd.yaml"
    file.write_text(f"web:\n  {keys}\n  enabled: true\nagents: []\n")

    with pytest.raises(ConfigInvalidError) as caught:
        load_fleet(file, environ={}, cwd=tmp_path)

    (problem,) = caught.value.problems
    assert said in f"{problem.message} {problem.hint}"
    assert problem.place.line == int(place.rstrip(":"))
