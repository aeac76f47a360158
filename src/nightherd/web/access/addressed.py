"""How a request was addressed: its scheme, host and port, which pages may send it, and what a trusted proxy adds.

A browser sends the name it was given as `Host` and the page's own place as `Origin`. Both are checked, so that
neither a name that an attacker points here nor a page of another site or port can use the API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

from starlette.types import Scope

PORTS = {"http": 80, "https": 443}
Place = tuple[str, str, int | None]
"""Scheme, host and port."""
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The names and networks of one port."""

    hosts: frozenset[str] = frozenset()
    """Names by which it may be addressed."""
    takes_any_ip: bool = False
    """Whether every IP address is accepted as its host: only names can be pointed here by others."""
    public_url: str | None = None
    networks: tuple[Network, ...] = ()
    """Networks of trusted proxies."""
    is_encrypted: bool = False
    is_open: bool = False
    """Whether other machines can reach it."""
    base_path: str = ""
    """Path below which everything is served; empty for the root."""

    def trusts(self, scope: Scope) -> bool:
        """Whether the request comes from a trusted proxy."""
        address = peer_address(scope)
        return address is not None and any(address in network for network in self.networks)

    def takes_plain(self, scope: Scope) -> bool:
        """Whether a request from there may come: unencrypted ones only from this machine or a trusted proxy."""
        if self.is_encrypted or not self.is_open:
            return True
        address = peer_address(scope)
        return address is None or address.is_loopback or self.trusts(scope)

    def place(self, scope: Scope, headers: Mapping[str, str]) -> Place:
        """The scheme, host and port that the client addressed."""
        scheme, host = str(scope.get("scheme", "http")), headers.get("host", "")
        said = None
        if self.trusts(scope):
            said = _last(headers.get("x-forwarded-proto"))
            host = _last(headers.get("x-forwarded-host")) or host
        if said is None and self.public_url is not None:
            # A proxy that passes the name on and says no scheme: people see the public address.
            public = urlsplit(self.public_url)
            scheme = public.scheme if host.lower() == public.netloc.lower() else scheme
        return place_of(f"{(said or scheme).lower()}://{host}") or (scheme, "", None)

    def knows(self, host: str, scope: Scope) -> bool:
        """Whether the port may be addressed as `host`."""
        # The address a request arrived at is ours, and no page can make a name of its own out of it.
        if host in self.hosts or (host and host == address_of(scope)):
            return True
        return self.takes_any_ip and parse_address(host) is not None

    def allows(self, origin: str, place: Place) -> bool:
        """Whether a page of `origin` may send requests to `place`: only one of the same scheme, host and port."""
        sent = place_of(origin)
        if sent is None:
            return False
        if sent == place:
            return True
        # Behind a proxy that is on this machine and says nothing, people see the public address.
        public = None if self.public_url is None else place_of(self.public_url)
        return public is not None and sent == public and place[1] == public[1]


def networks_of(texts: Sequence[str]) -> tuple[Network, ...]:
    """The networks that the fleet file names."""
    return tuple(ip_network(text) for text in texts)


def place_of(address: str) -> Place | None:
    """The scheme, host and port of an address; None for what is no address."""
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return None
    if not parts.scheme or not host:
        return None
    return parts.scheme.lower(), host, port or PORTS.get(parts.scheme.lower())


def peer_address(scope: Scope) -> IPv4Address | IPv6Address | None:
    """The address that the request comes from; None on a unix socket."""
    client = scope.get("client")
    return parse_address(str(client[0])) if client else None


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """`text` as an address; an IPv4 address that is written as an IPv6 one is the IPv4 address."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def address_of(scope: Scope) -> str:
    """The address of this machine that the request arrived at; empty on a unix socket."""
    server = scope.get("server")
    return str(server[0]).lower() if server and server[1] is not None else ""


def client_of(scope: Scope, headers: Mapping[str, str], addresses: Addresses) -> str:
    """The address of the client, as a trusted proxy says it; empty where it is unknown."""
    address = peer_address(scope)
    forwarded = _last(headers.get("x-forwarded-for")) if addresses.trusts(scope) else None
    client = (parse_address(forwarded) if forwarded else None) or address
    return "" if client is None else str(client)


def network_of(client: str) -> str:
    """What failures of a client are counted for: one customer of a provider has a whole /64 of IPv6 addresses."""
    address = parse_address(client)
    if not isinstance(address, IPv6Address):
        return client
    return str(IPv6Network((address, 64), strict=False))


def _last(header: str | None) -> str | None:
    """The last value of a header that proxies add to: what the nearest one said."""
    return None if header is None else header.rpartition(",")[2].strip() or None
