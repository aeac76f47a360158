"""`nightherd open` with a real daemon: a browser is logged in, and no code is in a command line."""

from __future__ import annotations

import html
import json
import re
import stat
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from surfaces.drivers import Shell
from web.web_world import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FLEET = """\
web: {enabled: true, port: PORT}
agents:
  - name: hello
    runtime: scripted
    default_prompt: everybody
    script: [{say: "Hello, ${prompt}."}]
  - name: thief
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {command: "PYTHON -m nightherd open --print > stolen.txt 2>&1; true"}
"""


@pytest.fixture
def served(shell: Shell, fleet: Path) -> int:
    port = free_port()
    (fleet / "nightherd.yaml").write_text(
        FLEET.replace("PORT", str(port)).replace("PYTHON", sys.executable)
    )
    return port


def log_in(url: str) -> dict[str, str]:
    """What the page does with the link: it sends the code to the server that it came from."""
    address, _, code = url.partition("#code=")
    origin = address.rstrip("/")
    headers = {"content-type": "application/json", "origin": origin}
    body = json.dumps({"code": code}).encode()
    request = urllib.request.Request(f"{origin}/v1/login", body, headers, method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        data = json.load(answer)["data"]
        cookie = answer.headers["set-cookie"].partition(";")[0]
    return {
        "origin": origin,
        "cookie": cookie,
        "sec-fetch-site": "same-origin",
        "x-nightherd-secret": data["secret"],
    }


def me(headers: dict[str, str]) -> dict[str, object]:
    request = urllib.request.Request(f"{headers['origin']}/v1/me", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        found = json.load(answer)["data"]
    assert isinstance(found, dict)
    return found


def test_a_browser_is_opened_through_a_file_and_stays_logged_in(
    shell: Shell, fleet: Path, served: int
) -> None:
    seen = fleet / "seen.txt"
    browser = fleet / "browser.sh"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    started = shell.run("start", "--detach")
    try:
        assert f"dashboard: http://localhost:{served}/ (log in: nightherd open)" in started.err
        status = shell.run("status", "--json").data
        opened = shell.run("open", BROWSER=f"{browser} %s")
        assert opened.code == 0, opened.err
        (given,) = seen.read_text().split()
        page = fleet / ".nightherd/open.html"
        assert given == page.as_uri()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        (url,) = re.findall(r'href="([^"]+)"', page.read_text())
        code = html.unescape(url).partition("#code=")[2]
        assert code
        assert code not in given + opened.out + opened.err

        headers = log_in(html.unescape(url))
        assert me(headers)["role"] == "admin"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            log_in(html.unescape(url))
        assert shell.run("restart").code == 0
        assert me(headers)["role"] == "admin"
        assert status["daemon"]["address"] == f"http://localhost:{served}/"
    finally:
        shell.run("stop", "--now")


def test_a_printed_link_logs_in_and_an_agent_gets_none(
    shell: Shell, fleet: Path, served: int
) -> None:
    assert shell.run("start", "--detach").code == 0
    try:
        printed = shell.run("open", "--print")
        assert me(log_in(printed.out.strip()))["fleet"] == fleet.name
        assert shell.run("run", "thief", "-q").code == 0
        stolen = (fleet / "stolen.txt").read_text()
        assert "#code=" not in stolen
        assert "an agent started this process" in stolen
    finally:
        shell.run("stop", "--now")


def test_without_a_dashboard_the_key_is_named(shell: Shell, fleet: Path) -> None:
    none = shell.run("open")
    assert none.code == 69
    assert shell.run("start", "--detach").code == 0
    try:
        refused = shell.run("open", "--print")
        assert refused.code == 5
        assert "web.enabled" in refused.err
    finally:
        shell.run("stop", "--now")
