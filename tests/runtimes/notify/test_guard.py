"""The guard lets a process connect to public addresses and to hosts that are allowed by name, and do nothing else."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from nightherd.runtimes.notify.guard import Guard, is_public

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "198.18.0.1",
    "240.0.0.1",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "fec0::1",
    "2002:7f00:1::",  # 6to4 of 127.0.0.1
    "64:ff9b::a00:1",  # NAT64 of 10.0.0.1
    "localhost",
    "",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101"]
)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.fixture
def resolving(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Names and the addresses they mean; a test may change them."""
    known: dict[str, str] = {}

    def getaddrinfo(host: str, port: int, *_: object, **__: object) -> object:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known  # type: ignore[return-value] # a value, and patched until the test is over


def installed(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> Guard:
    """The guard with its resolver, but without its hook, which could never be taken away."""
    monkeypatch.setattr("sys.addaudithook", lambda hook: None)
    monkeypatch.setattr(socket, "getaddrinfo", socket.getaddrinfo)
    guard.install()
    return guard


def connect(guard: Guard, host: str) -> None:
    guard.audit("socket.connect", (None, (host, 443)))


def test_a_name_that_is_allowed_may_mean_a_private_address(
    monkeypatch: pytest.MonkeyPatch, resolving: dict[str, str]
) -> None:
    guard = installed(Guard(("NTFY.lan",)), monkeypatch)
    resolving |= {"ntfy.lan": "192.168.1.5", "other.lan": "192.168.1.6"}

    socket.getaddrinfo("ntfy.lan", 443)
    socket.getaddrinfo("other.lan", 443)

    connect(guard, "192.168.1.5")
    with pytest.raises(PermissionError, match=r"192\.168\.1\.6"):
        connect(guard, "192.168.1.6")


def test_a_name_that_means_another_address_the_second_time_is_refused(
    monkeypatch: pytest.MonkeyPatch, resolving: dict[str, str]
) -> None:
    guard = installed(Guard(()), monkeypatch)
    resolving["rebound.example"] = "93.184.216.34"
    connect(guard, socket.getaddrinfo("rebound.example", 443)[0][4][0])  # type: ignore[arg-type]

    resolving["rebound.example"] = "169.254.169.254"

    with pytest.raises(PermissionError, match=r"169\.254\.169\.254"):
        connect(guard, socket.getaddrinfo("rebound.example", 443)[0][4][0])  # type: ignore[arg-type]
    assert "169.254.169.254" in (guard.refused or "")


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("socket.connect", (None, "/run/docker.sock")),
        ("socket.connect", (None, ("localhost", 80))),
        ("socket.sendto", (None, ("127.0.0.1", 514))),
        ("subprocess.Popen", ("sh", ["sh"], None, None)),
        ("os.system", ("true",)),
        ("os.posix_spawn", ("/bin/sh", [], {})),
        ("os.fork", ()),
        ("open", ("/etc/cron.d/x", "w", os.O_WRONLY | os.O_CREAT)),
    ],
)
def test_everything_else_is_refused(event: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(PermissionError):
        Guard(("127.0.0.2",)).audit(event, arguments)


def test_reading_files_and_connected_sockets_are_left_alone() -> None:
    guard = Guard(())

    guard.audit("open", ("/etc/ssl/certs/x.pem", "r", os.O_RDONLY))
    guard.audit("open", (os.devnull, "w", os.O_WRONLY))
    guard.audit("socket.sendmsg", (None, None))
    guard.audit("import", ("json", None, None, None, None))

    assert guard.refused is None
