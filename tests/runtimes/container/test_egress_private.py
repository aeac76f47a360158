"""`private_hosts`: a mirror in the house's network is reached by name, and nothing else there, on this machine or of a cloud.

The network is one of the test's own: a thread moves into an empty network namespace, and gives its loopback interface the
addresses.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from components import Components
from nightherd.model.containers.egress import EgressRules
from nightherd.model.containers.policy import AllowedHost
from runtimes.container.origin import Origin, Proxy, origin, with_proxy

T = TypeVar("T")
MIRROR, METADATA, ALIBABA = "10.77.0.1", "169.254.169.254", "100.100.100.200"
CLONE_NEWNET = 0x40000000
SIOCSIFADDR, SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8916, 0x8913, 0x8914, 1
Work = Callable[[], object]


def set_up_loopback(*addresses: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        flags = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        up = struct.unpack("16sh14x", flags)[1] | IFF_UP
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", up))
        for number, address in enumerate(addresses):
            raw = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
            name = f"lo:{number}".encode()
            fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack("16s16s", name, raw))


@pytest.fixture
def in_house(components: Components) -> Callable[[Callable[[], T]], T]:
    """Does something in a network that has only these addresses; threads that it starts are there too."""
    if sys.platform != "linux" or os.geteuid() != 0:
        components.absent("a network of one's own", "run the tests as root on Linux")

    def inside(work: Callable[[], T]) -> T:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "no network namespace")
        set_up_loopback(MIRROR, METADATA, ALIBABA)
        return work()

    def run(work: Callable[[], T]) -> T:
        # Only the thread that does it changes its namespace.
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(inside, work).result()

    return run


def asked(proxy: Proxy, server: Origin, name: str) -> bytes:
    host = f"{name}:{server.port}".encode()
    return proxy.ask(b"GET http://" + host + b"/ HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")[:12]


@pytest.mark.parametrize(
    ("name", "address", "status"),
    [
        ("mirror.lan", MIRROR, b"200"),
        ("deep.corp.lan", MIRROR, b"200"),
        ("corp.lan", MIRROR, b"403"),
        ("open.example", MIRROR, b"403"),
        ("other.lan", MIRROR, b"403"),
        ("mirror.lan", "127.0.0.1", b"403"),
        ("mirror.lan", METADATA, b"403"),
        ("mirror.lan", ALIBABA, b"403"),
        ("mirror.lan", "0.0.0.0", b"403"),
        ("mirror.lan", "::ffff:127.0.0.1", b"403"),
        ("mirror.lan", "::1", b"403"),
    ],
)
def test_only_named_hosts_are_reached_in_a_private_network(
    in_house: Callable[[Work], object], name: str, address: str, status: bytes
) -> None:
    def work() -> None:
        with origin(address="0.0.0.0") as server:
            rules = EgressRules(
                allowed=(AllowedHost(name="open.example", port=server.port),),
                private=(
                    AllowedHost(name="mirror.lan", port=server.port),
                    AllowedHost(name="*.corp.lan", port=server.port),
                ),
            )
            answer = with_proxy(
                rules,
                lambda proxy: asked(proxy, server, name),
                resolve=lambda _name, _port: [address],
                allow_private=False,
            )
            reached = list(server.got)
        assert answer == b"HTTP/1.1 " + status
        assert bool(reached) is (status == b"200")

    in_house(work)


def test_addresses_that_may_not_be_are_passed_over(in_house: Callable[[Work], object]) -> None:
    """Of several addresses, and of a name that changes: each is looked at on its own, each time."""
    answers = [[METADATA, "127.0.0.1", MIRROR], ["127.0.0.1"], [MIRROR]]

    def work() -> None:
        with origin(address=MIRROR) as server, origin(address="127.0.0.1", port=server.port) as own:
            rules = EgressRules(private=(AllowedHost(name="mirror.lan", port=server.port),))
            got = with_proxy(
                rules,
                lambda proxy: [asked(proxy, server, "mirror.lan") for _ in range(3)],
                resolve=lambda _name, _port: answers.pop(0),
                allow_private=False,
            )
            assert own.got == []
        assert [one[-3:] for one in got] == [b"200", b"403", b"200"]

    in_house(work)


def test_the_other_port_of_a_named_host_is_refused(in_house: Callable[[Work], object]) -> None:
    def work() -> None:
        with origin(address=MIRROR) as server:
            rules = EgressRules(private=(AllowedHost(name="mirror.lan"),))
            answer = with_proxy(
                rules,
                lambda proxy: asked(proxy, server, "mirror.lan"),
                resolve=lambda _name, _port: [MIRROR],
                allow_private=False,
            )
            assert server.got == []
        assert answer.endswith(b"403")

    in_house(work)
