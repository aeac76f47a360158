"""The dashboard's files: which path shows what, what browsers keep, and what protects their users."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.web.access.addressed import Addresses
from nightherd.web.access.guard import Door
from nightherd.web.access.identify import Identify
from nightherd.web.page import with_base
from nightherd.web.ports import Port
from web.browser import on_port
from web.web_world import served

INDEX = '<!doctype html><html><head><meta charset="utf-8"><script type="module" src="./assets/app-1.js"></script></head><body><div id="root"></div></body></html>'


@pytest.fixture
def ui(tmp_path: Path) -> Path:
    """A built dashboard."""
    directory = tmp_path / "ui"
    (directory / "assets").mkdir(parents=True)
    (directory / "index.html").write_text(INDEX)
    (directory / "assets/app-1.js").write_text("export const x = 1;\n" * 100)
    (directory / "assets/font.woff2").write_bytes(b"\x00\x01")
    (directory / "sw.js").write_text("self.x = 1")
    (directory / "manifest.webmanifest").write_text("{}")
    (tmp_path / "secret.txt").write_text("secret")
    (directory / "link.txt").symlink_to(tmp_path / "secret.txt")
    return directory


def with_ui(tmp_path: Path, ui: Path, base: str = "") -> Any:
    def make_ports(site: Any) -> list[Port]:
        addresses = Addresses(hosts=frozenset({"127.0.0.1"}), base_path=base)
        identify = Identify(credentials=site, token="t" * 20, addresses=addresses)
        door = Door(
            counters=site.counters,
            hook_limit=lambda: 1_000,
            addresses=addresses,
            identify=identify,
        )
        return [Port(host="127.0.0.1", port=0, door=door)]

    return served(tmp_path, make_ports=make_ports, ui=ui)


@pytest.mark.parametrize(
    "path", ["/", "/jobs", "/jobs/job-1", "/inbox?x=1", "/index.html", "//v1/jobs"]
)
def test_every_path_outside_the_api_shows_the_page(tmp_path: Path, ui: Path, path: str) -> None:
    async def main() -> None:
        async with with_ui(tmp_path, ui) as world:
            answer = await world.ask("GET", path, port=world.ports[0])

            assert answer.status == 200
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.headers["cache-control"] == "no-cache"
            assert '<head><base href="/"><meta' in answer.body.decode()

    anyio.run(main)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1", 401), ("/v1/jobs", 401), ("/v1/nothing", 401), ("/metrics", 401), ("/answer/x", 404)],
)
def test_paths_of_the_api_never_show_the_page(
    tmp_path: Path, ui: Path, path: str, status: int
) -> None:
    async def main() -> None:
        async with with_ui(tmp_path, ui) as world:
            answer = await world.ask("GET", path, port=world.ports[0])
            known = await world.ask(
                "GET", "/v1/nothing", port=world.ports[0], authorization="Bearer " + "t" * 20
            )

            assert answer.status == status
            assert b"root" not in answer.body
            assert (known.status, known.document["code"]) == (404, "not_found")

    anyio.run(main)


def test_assets_are_kept_for_good_and_the_rest_is_asked_for_again(tmp_path: Path, ui: Path) -> None:
    async def main() -> None:
        async with with_ui(tmp_path, ui) as world:
            port = world.ports[0]
            script = await world.ask("GET", "/assets/app-1.js", port=port)
            small = await world.ask(
                "GET", "/assets/app-1.js", port=port, accept_encoding="gzip, br"
            )
            font = await world.ask("GET", "/assets/font.woff2", port=port)
            worker = await world.ask("GET", "/sw.js", port=port)
            manifest = await world.ask("GET", "/manifest.webmanifest", port=port)
            known = await world.ask(
                "GET", "/assets/app-1.js", port=port, if_none_match=script.headers["etag"]
            )
            head = await world.ask("HEAD", "/assets/app-1.js", port=port)
            missing = await world.ask("GET", "/assets/app-2.js", port=port)

            assert script.headers["content-type"] == "text/javascript; charset=utf-8"
            assert "immutable" in script.headers["cache-control"]
            assert gzip.decompress(small.body) == script.body
            assert len(small.body) < len(script.body)
            assert (font.headers["content-type"], font.body) == ("font/woff2", b"\x00\x01")
            assert worker.headers["cache-control"] == "no-cache"
            assert manifest.headers["content-type"].startswith("application/manifest+json")
            assert (known.status, known.body) == (304, b"")
            assert head.headers["content-length"] == str(len(script.body))
            assert missing.status == 404

    anyio.run(main)


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/link.txt",
        "/.git",
        "/a%00b",
    ],
)
def test_no_file_outside_of_the_dashboard_is_shown(tmp_path: Path, ui: Path, path: str) -> None:
    async def main() -> None:
        async with with_ui(tmp_path, ui) as world:
            answer = await world.ask("GET", path, port=world.ports[0])

            assert answer.status in (200, 404)
            assert b"secret" not in answer.body

    anyio.run(main)


def test_the_page_may_load_nothing_from_elsewhere_and_no_answer_may_be_embedded(
    tmp_path: Path, ui: Path
) -> None:
    async def main() -> None:
        async with with_ui(tmp_path, ui) as world:
            port = world.ports[0]
            page = await world.ask("GET", "/", port=port)
            answer = await world.ask(
                "GET", "/v1/jobs", port=port, authorization="Bearer " + "t" * 20
            )

            policy = dict(
                part.split(" ", 1) for part in page.headers["content-security-policy"].split("; ")
            )
            assert policy["default-src"] == "'none'"
            assert policy["frame-ancestors"] == policy["form-action"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert policy["require-trusted-types-for"] == "'script'"
            assert policy["trusted-types"] == "nightherd dompurify"
            assert "sandbox" in answer.headers["content-security-policy"]
            for one in (page, answer):
                assert one.headers["x-content-type-options"] == "nosniff"
                assert one.headers["referrer-policy"] == "no-referrer"
                assert one.headers["cross-origin-opener-policy"] == "same-origin"
                assert one.headers["cross-origin-resource-policy"] == "same-origin"
            assert answer.headers["cache-control"] == "no-store"

    anyio.run(main)


def test_an_installation_without_the_dashboard_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with with_ui(tmp_path, tmp_path / "nothing") as world:
            answer = await world.ask("GET", "/", port=world.ports[0])

            assert answer.status == 404
            assert b"The dashboard is not part of this installation" in answer.body

    anyio.run(main)


def test_only_reading_is_taken_outside_of_the_api(tmp_path: Path, ui: Path) -> None:
    async def main() -> None:
        async with with_ui(tmp_path, ui) as world:
            answer = await world.ask("POST", "/jobs", {}, port=world.ports[0])

            assert (answer.status, answer.document["code"]) == (405, "method_not_allowed")

    anyio.run(main)


def test_everything_is_served_below_the_base_path(tmp_path: Path, ui: Path) -> None:
    async def main() -> None:
        async with with_ui(tmp_path, ui, base="/herd") as world:
            port, token = world.ports[0], "Bearer " + "t" * 20
            page = await world.ask("GET", "/herd/jobs", port=port)
            root = await world.ask("GET", "/herd", port=port)
            script = await world.ask("GET", "/herd/assets/app-1.js", port=port)
            jobs = await world.ask("GET", "/herd/v1/jobs", port=port, authorization=token)
            unknown = await world.ask("GET", "/herd/v1/jobs", port=port)
            stripped = await world.ask("GET", "/v1/me", port=port, authorization=token)
            login = await world.ask("POST", "/herd/v1/login", {"token": "t" * 20}, port=port)

            assert '<base href="/herd/">' in page.body.decode()
            assert root.body == page.body
            assert script.status == jobs.status == stripped.status == 200
            assert unknown.status == 401
            assert stripped.data["base_path"] == "/herd"
            assert "Path=/herd;" in login.headers["set-cookie"]

    anyio.run(main)


def test_a_base_of_the_page_itself_is_replaced() -> None:
    assert with_base('<head><base href="/"><x>', "/a") == '<head><base href="/a/"><x>'
    assert with_base('<HEAD lang="en"><x>', "") == '<HEAD lang="en"><base href="/"><x>'


def test_the_page_of_a_real_port_asks_for_no_token(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            page = await world.ask("GET", "/", port=world.ports[0])
            named = await world.ask("GET", "/", port=world.ports[0], host="evil.example")

            assert page.status in (200, 404)  # with a dashboard, or without
            assert named.status == 403

    anyio.run(main)
