"""How mounts, ports, users and hosts are spelled, and which are refused."""

from __future__ import annotations

import contextlib
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.containers.hosts import parse_allowed_host
from nightherd.model.containers.mounts import (
    check_target,
    is_root,
    is_unsafe_source,
    parse_port,
    parse_tmpfs,
    parse_user,
    parse_volume,
)
from nightherd.model.containers.policy import AllowedHost, Mount, PublishedPort


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("/a:/b", Mount(source="/a", target="/b")),
        ("/a:/b:rw", Mount(source="/a", target="/b")),
        ("/a:/b//c/:ro", Mount(source="/a", target="/b/c", is_read_only=True)),
        ("/with:colon:/b", Mount(source="/with:colon", target="/b")),
    ],
)
def test_a_volume(text: str, mount: Mount) -> None:
    assert parse_volume(text) == mount


@pytest.mark.parametrize("text", ["", "/a", "/a:b", ":/b", "/a:/b:x", "a:b:/c", "/a:/\0b"])
def test_a_text_that_is_no_volume(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_volume(text)


@pytest.mark.parametrize(
    "target",
    [
        "/", "//", "/.", "/a/..", "/proc", "/proc/self", "/sys", "/sys/fs/cgroup", "/dev", "/dev/sda", "/dev/../dev",
        "/run/nightherd", "/run/nightherd/x", "/var/run/nightherd", "/x/../run/nightherd", "/workspace", "/workspace/",
    ],
)  # fmt: skip
def test_a_target_that_hides_what_a_container_needs(target: str) -> None:
    for text in (f"/a:{target}", f"{target}:size=1m"):
        with pytest.raises(InvalidValueError, match="cannot be mounted over"):
            parse_volume(text) if text.startswith("/a:") else parse_tmpfs(text)


@pytest.mark.parametrize("target", ["/run", "/procs", "/dev/shm", "/workspace/.cache", "/var/run"])
def test_a_target_beside_them(target: str) -> None:
    assert check_target(target) == target


@pytest.mark.parametrize(
    "source",
    [
        "/", "/var", "/run", "/var/run", "/run/docker.sock", "/var/run/docker.sock", "/run/user", "/run/user/1000",
        "/run/user/1000/docker.sock", "/run/user/1000/podman/podman.sock", "/run/podman", "/proc", "/proc/1/root",
        "/sys/fs", "/dev/sda", "/var/lib/docker/volumes", "/x/../run", "/srv/e", "/srv", "/run/containerd",
    ],
)  # fmt: skip
def test_a_source_that_gives_the_machine_away(source: str) -> None:
    assert is_unsafe_source(source, "/srv/e/engine.sock")


@pytest.mark.parametrize(
    "source", ["/srv/data", "/home/me", "/etc/ssl", "/run/user/1000/x", "/procs"]
)
def test_a_source_like_any_other(source: str) -> None:
    assert not is_unsafe_source(source, "/srv/e/engine.sock")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/scratch", ("/scratch", "")),
        ("/scratch:size=64m,mode=1777,exec", ("/scratch", "size=64m,mode=1777,exec")),
        ("/s:uid=1,gid=2,nr_inodes=1k,ro", ("/s", "uid=1,gid=2,nr_inodes=1k,ro")),
    ],
)
def test_a_directory_in_memory(text: str, expected: tuple[str, str]) -> None:
    assert parse_tmpfs(text) == expected


@pytest.mark.parametrize(
    "option", ["suid", "dev", "bind", "size", "size=", "shared", "x=1", "", " ro"]
)
def test_options_that_a_directory_in_memory_may_not_have(option: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_tmpfs(f"/x:size=1m,{option}")


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("80", PublishedPort(container=80)),
        ("8080:80", PublishedPort(container=80, host=8080)),
        ("1:65535", PublishedPort(container=65_535, host=1)),
    ],
)
def test_a_port(text: str, port: PublishedPort) -> None:
    assert parse_port(text) == port


@pytest.mark.parametrize(
    "text", ["0", "65536", "0:80", "80:0", "99999:80", "a", "1:2:3", "", "80/udp", "-1"]
)
def test_a_text_that_is_no_port(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_port(text)


def test_users() -> None:
    assert parse_user("1000") == "1000"
    assert parse_user("01000:0100") == "1000:100"
    assert [is_root(one) for one in (None, "1000:0", "0", parse_user("000:5"))] == [
        False, False, True, True,
    ]  # fmt: skip
    for text in ("root", "-1", "4294967295", "1:", ""):
        with pytest.raises(InvalidValueError):
            parse_user(text)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("api.example.com", AllowedHost(name="api.example.com")),
        ("API.Example.COM.", AllowedHost(name="api.example.com")),
        ("api.example.com:8443", AllowedHost(name="api.example.com", port=8443)),
        ("*.example.com", AllowedHost(name="*.example.com")),
        ("*.example.com:80", AllowedHost(name="*.example.com", port=80)),
        ("xn--bcher-kva.example", AllowedHost(name="xn--bcher-kva.example")),
        ("registry:5000", AllowedHost(name="registry", port=5000)),
    ],
)
def test_a_host(text: str, host: AllowedHost) -> None:
    assert parse_allowed_host(text) == host


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.", "a.*.b", "*a.b", "https://a.b", "a.b/c", "a b", "a.b:", "a.b:0", "a.b:65536", "a..b", "-a.b",
     "b\u00fccher.example", "a.b:\u0663", "a" * 64 + ".b", "a." * 127 + "b"],
)  # fmt: skip
def test_a_text_that_is_no_host(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_allowed_host(text)


@pytest.mark.parametrize(
    "text",
    ["127.1", "2130706433", "0x7f000001", "0x7f.1", "127.0.0.1.", "127.0.0.1:80", "[::1]", "[::1]:80", "::ffff:1.2.3.4",
     "*.1", "*.0.0.1", "0177.0.0.1", "fe80::1%eth0"],
)  # fmt: skip
def test_an_address_is_refused_however_it_is_spelled(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_allowed_host(text)


@given(st.ip_addresses() | st.integers(0, 2**32 - 1), st.sampled_from(["", ":443"]))
def test_no_address_is_a_host(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | int, port: str
) -> None:
    with pytest.raises(InvalidValueError):
        parse_allowed_host(f"{address}{port}")


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_volume, parse_tmpfs, parse_port, parse_user, parse_allowed_host):
        with contextlib.suppress(InvalidValueError):
            parse(text)
