"""What `network: egress` lets out: which names and ports, and which addresses a name may stand for."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterable, Mapping
from enum import IntEnum
from urllib.parse import urlsplit

import msgspec

from nightherd.errors import RefusedError
from nightherd.model.containers.hosts import LABEL, LARGEST_PORT, LONGEST_NAME, NUMERIC_LABEL
from nightherd.model.containers.policy import AllowedHost

HOST_NAME = re.compile(rf"{LABEL}(\.{LABEL})*")
PORT = re.compile(r"[1-9][0-9]{0,4}")
PUNYCODE = "xn--"
CLAUDE_API = AllowedHost(name="api.anthropic.com")
BASE_URL = re.compile(r"ANTHROPIC_([A-Z]+_)?BASE_URL")
"""Variables that say where Claude's API is: that of Anthropic, or of a cloud."""
USES_CLOUD = "CLAUDE_CODE_USE_"
SCHEMES = {"http": 80, "https": 443}
LOCAL = "127.0.0.1"
PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
TUNNELS = tuple(map(ipaddress.IPv6Network, ("2001::/32", "2002::/16")))
"""Teredo and 6to4: they carry an IPv4 address inside."""
SPECIAL_IPV4 = tuple(
    map(ipaddress.IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"))
)
"""Addresses that Python takes for public ones: for protocols, of 6to4 relays, and Azure's service for its own machines."""


PRIVATE = tuple(
    map(
        ipaddress.ip_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"),
    )
)
"""What networks of a house or a company use."""
CLOUD_SERVICES = tuple(
    map(
        ipaddress.ip_network,
        ("100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/64", "fd00:c1::a9fe:a9fe/128"),
    )
)
"""Addresses among those at which clouds hand out credentials of their machines: Alibaba, AWS, Google, Oracle."""


class Reach(IntEnum):
    """Which addresses a name may stand for; each includes those before it."""

    PUBLIC = 0
    """Those of the internet."""
    PRIVATE = 1
    """Those of private networks, but no loopback or link-local ones."""
    ANY = 2


class Destination(msgspec.Struct, frozen=True):
    """A host by its normalised name, and a port."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


class EgressRules(msgspec.Struct, frozen=True, kw_only=True):
    """The destinations of one run."""

    allowed: tuple[AllowedHost, ...] = ()
    private: tuple[AllowedHost, ...] = ()
    """What may be in a private network."""
    implied: tuple[AllowedHost, ...] = ()
    """What the runtime itself cannot do without. The operator chose them, so they may have private addresses."""

    def allow(self, destination: Destination) -> bool:
        """Whether it may be reached."""
        return matches((*self.allowed, *self.private, *self.implied), destination)

    def reach(self, destination: Destination) -> Reach:
        """At which addresses it may be reached."""
        if matches(self.implied, destination):
            return Reach.ANY
        return Reach.PRIVATE if matches(self.private, destination) else Reach.PUBLIC


def matches(hosts: Iterable[AllowedHost], destination: Destination) -> bool:
    """Whether one of `hosts` is the destination; `*.example.com` is each name below example.com, and not itself."""
    name = destination.name
    return any(
        host.port == destination.port
        and (name.endswith(host.name[1:]) if host.name.startswith("*.") else name == host.name)
        for host in hosts
    )


def normal_name(text: str) -> str | None:
    """The host name `text` in lower case ASCII without a final dot; None for what is no name, as an address in any spelling.

    A name with other letters becomes its IDNA form. What is returned is the only thing that is compared and resolved.
    """
    if not text or len(text) > LONGEST_NAME + 1:
        return None
    try:
        name = text.lower() if text.isascii() else text.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    name = name.removesuffix(".")
    if len(name) > LONGEST_NAME or HOST_NAME.fullmatch(name) is None:
        return None
    labels = name.split(".")
    if NUMERIC_LABEL.fullmatch(labels[-1]) is not None:
        return None
    return name if all(map(_is_plain, labels)) else None


def _is_plain(label: str) -> bool:
    """Whether the label is what it seems: a punycode one must be the only spelling of what it stands for."""
    if not label.startswith(PUNYCODE):
        return True
    code = label.removeprefix(PUNYCODE)
    try:
        decoded = code.encode().decode("punycode")
        again = decoded.encode("punycode").decode()
    except (UnicodeError, OverflowError):
        return False
    is_same = again == code and unicodedata.normalize("NFKC", decoded) == decoded
    return is_same and decoded.isprintable() and not decoded.isascii()


def parse_port(text: str) -> int | None:
    """The port in decimal digits, without a leading zero; None for anything else."""
    if PORT.fullmatch(text) is None or int(text) > LARGEST_PORT:
        return None
    return int(text)


def parse_authority(text: str, default_port: int | None = None) -> Destination | None:
    """The destination `host:port`, or `host` where there is a default; None for anything else, as a user or an address."""
    name, colon, digits = text.partition(":")
    port = parse_port(digits) if colon else default_port
    normal = normal_name(name)
    return None if normal is None or port is None else Destination(normal, port)


def is_public(address: str) -> bool:
    """Whether the IP address belongs to the public internet: not to this machine, a private network or a cloud's own services."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped
        if inner is None and ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip not in PUBLIC_IPV6 or any(ip in network for network in TUNNELS):
            return False
    is_special = ip.is_multicast or ip.is_reserved or any(ip in network for network in SPECIAL_IPV4)
    return ip.is_global and not is_special


def reach_of(address: str) -> Reach:
    """What a name must be allowed to stand for, to stand for this IP address."""
    if is_public(address):
        return Reach.PUBLIC
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return Reach.ANY
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    is_service = any(ip in network for network in CLOUD_SERVICES)
    is_private = any(ip in network for network in PRIVATE)
    return Reach.PRIVATE if is_private and not is_service else Reach.ANY


def implied_hosts(environment: Mapping[str, str]) -> tuple[AllowedHost, ...]:
    """The hosts of the API that Claude uses with this environment; `RefusedError` when one of them cannot be allowed.

    Those of clouds are known only where a variable names them.
    """
    urls = {name: url for name, url in environment.items() if BASE_URL.fullmatch(name) and url}
    hosts = [_host_of(name, url) for name, url in urls.items()]
    uses_cloud = any(name.startswith(USES_CLOUD) for name in environment)
    if "ANTHROPIC_BASE_URL" not in urls and not uses_cloud:
        hosts.append(CLAUDE_API)
    return tuple(dict.fromkeys(hosts))


def _host_of(variable: str, url: str) -> AllowedHost:
    try:
        parts = urlsplit(url)
        port = parts.port or SCHEMES.get(parts.scheme)
        name = normal_name(parts.hostname or "")
    except ValueError:
        name = port = None
    if name is None or port is None or name == "localhost":
        raise RefusedError(
            f"{variable} must have the name of a host: with network: egress, addresses and localhost cannot be reached",
            hint="give the host a name, or use network: bridge",
        )
    return AllowedHost(name=name, port=port)


def proxy_variables(port: int) -> dict[str, str]:
    """The variables that make programs use the proxy at this port of their own loopback interface."""
    proxy, around = f"http://{LOCAL}:{port}", f"localhost,{LOCAL}"
    values = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": around}
    return {**values, **{name.lower(): value for name, value in values.items()}}
