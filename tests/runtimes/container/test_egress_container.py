"""`network: egress` in a real container: the allowed hosts are reached through the proxy, and nothing else at all."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from components import Components
from docker_engine import DockerEngine
from nightherd.model.agents.script import Say, UseTool
from nightherd.model.containers.policy import AllowedHost, ContainerNetwork
from nightherd.model.journal.event import (
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    is_terminal,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.runtimes.claude.capabilities import CLI
from runtimes.container.egress_inside import Inside, warnings
from runtimes.container.origin import certificate, origin


@pytest.fixture
def inside(docker_engine: DockerEngine, container_image: str, tmp_path: Path) -> Inside:
    return Inside(docker_engine, container_image, tmp_path)


def allow(inside: Inside, *hosts: tuple[str, int]) -> None:
    allowed = tuple(AllowedHost(name=name, port=port) for name, port in hosts)
    inside.policy = replace(inside.policy, allowed_hosts=allowed)


def test_an_allowed_host_is_reached_with_and_without_tls(
    inside: Inside, components: Components
) -> None:
    server, _ = certificate(components.program("openssl"), inside.work, "api.example")
    os.chown(inside.work / "cert.pem", 1000, 1000)
    with origin() as plain, origin(context=server) as secure:
        allow(inside, ("*.example", plain.port), ("api.example", secure.port))
        answers, events = inside.probe(
            ("get", f"http://www.example:{plain.port}/"),
            ("get", f"https://api.example:{secure.port}/"),
        )

    assert answers == ["ok", "ok"]
    assert warnings(events) == []


def test_no_other_host_is_reached_by_any_way(inside: Inside) -> None:
    redirect = "HTTP/1.1 302 Found\r\nLocation: http://evil.test:{}/\r\nContent-Length: 0\r\n\r\n"
    with origin() as evil, origin(redirect.format(evil.port).encode()) as server:
        port = evil.port
        allow(inside, ("api.example", server.port))
        answers, events = inside.probe(
            ("get", f"http://evil.test:{port}/"),
            ("get", f"https://evil.test:{port}/"),
            ("get", f"http://10.0.0.1:{port}/"),
            ("get", f"http://2130706433:{port}/"),
            ("get", f"http://api.example:{server.port}/redirects"),
            ("get", f"http://127.0.0.1:{port}/"),
            ("get", f"http://localhost:{port}/"),
            ("connect", "127.0.0.1", port),
            ("connect", "169.254.169.254", 80),
            ("connect", "1.1.1.1", 443),
            ("connect", "api.example", server.port),
        )

    assert all("403" in answer for answer in answers[:5]), answers
    assert not [one for one in answers if one in ("ok", "connected")]
    assert evil.got == []
    assert warnings(events) == [
        f"connection to evil.test:{port} refused: it is not one of the allowed_hosts",
        *(
            f"connection to {address}:{port} refused: hosts are reached by name; this is an address, or no host"
            for address in ("10.0.0.1", "2130706433")
        ),
    ]


def test_a_name_that_stands_for_the_hosts_loopback_reaches_nothing(inside: Inside) -> None:
    inside.allow_private = False
    with origin() as server:
        allow(inside, ("api.example", server.port))
        answers, events = inside.probe(("get", f"http://api.example:{server.port}/"))

    assert "403" in answers[0]
    assert server.got == []
    (warning,) = warnings(events)
    assert warning.endswith("its name stands for an address that is not public")


def test_a_refused_host_is_in_the_journal_before_the_result_that_saw_it(inside: Inside) -> None:
    _, events = inside.probe(("get", "http://evil.test/"))
    kinds = [type(event) for event in events]
    (warned,) = [
        at
        for at, event in enumerate(events)
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.WARNING
    ]

    assert kinds.index(ToolUseEvent) < warned < kinds.index(ToolResultEvent)
    assert is_terminal(events[-1])


def test_only_egress_gets_the_variables_of_a_proxy(inside: Inside) -> None:
    asked = [("environment", name) for name in ("HTTPS_PROXY", "http_proxy", "NO_PROXY")]

    (https, http, around), _ = inside.probe(*asked)
    inside.policy = replace(inside.policy, network=ContainerNetwork.NONE)
    without, _ = inside.probe(*asked)

    assert https == http
    assert https.startswith("http://127.0.0.1:")
    assert around == "localhost,127.0.0.1"
    assert without == [None, None, None]


def test_a_reused_container_keeps_nothing_of_the_proxy_before(inside: Inside) -> None:
    inside.policy = replace(inside.policy, is_ephemeral=False)
    (first,), _ = inside.probe(("environment", "HTTP_PROXY"))
    port = int(first.rpartition(":")[2])

    (second, old), events = inside.probe(
        ("environment", "HTTP_PROXY"), ("connect", "127.0.0.1", port)
    )

    (container,) = [
        one.extra or {}
        for one in events
        if isinstance(one, SystemEvent) and one.subtype is SystemSubtype.CONTAINER
    ]
    assert container["is_reused"]
    assert second != first
    assert "ConnectionRefused" in old


def test_a_run_that_is_stopped_tells_what_was_refused_and_leaves_no_proxy(inside: Inside) -> None:
    late: list[Event] = []
    probe = json.dumps([("get", "http://evil.test/")])
    command = f"python3 probe.py '{probe}'; touch tried; sleep 600"
    request = inside.request(UseTool("Bash", {"command": command}), late=late.append)

    async def stop() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(inside.execute, request, [])
            await anyio.to_thread.run_sync(wait_for, inside.work / "tried")
            tasks.cancel_scope.cancel()

    anyio.run(stop)

    assert warnings(late) == [
        "connection to evil.test:80 refused: it is not one of the allowed_hosts"
    ]
    assert "egress-proxy" not in [thread.name for thread in threading.enumerate()]


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


def test_an_address_as_claudes_api_is_refused_before_anything_runs(inside: Inside) -> None:
    request = inside.request(Say("never"))
    request = replace(
        request,
        agent=replace(request.agent, runtime=CLI),
        environment={"ANTHROPIC_BASE_URL": "http://127.0.0.1:4000", "ANTHROPIC_API_KEY": "k"},
    )

    (event,) = inside.run(request)

    assert isinstance(event, ErrorEvent)
    assert event.message.startswith("ANTHROPIC_BASE_URL must have the name of a host")
