"""The guard of a process that sends notifications: which addresses it may connect to, and that it does nothing else.

It looks at the numeric address of every connection in the moment it is made. So neither a redirect nor a name that
means another address the second time gets around it. An audit hook cannot be taken away again: only the child has one.
"""

from __future__ import annotations

import os
import socket
import sys
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

NAT64 = IPv6Network("64:ff9b::/96")
CONNECTING = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
STARTING = frozenset(
    {
        "subprocess.Popen",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
    }
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def is_public(text: str) -> bool:
    """Whether a numeric address is one of the public internet; what it embeds or maps to counts."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return is_public(str(inner))
        if address.is_site_local:
            return False  # private networks of long ago, which `is_global` does not know
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that is reached through this one, if it is such."""
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo is not None else None)


class Guard:
    """Refuses connections to addresses that are not public, starting programs, and writing files."""

    def __init__(self, allow_hosts: tuple[str, ...]) -> None:
        self._names = {one.strip().strip("[]").lower().rstrip(".") for one in allow_hosts}
        self._addresses = {one for one in self._names if _is_numeric(one)}
        self.refused: str | None = None
        """The last thing that was refused, for the error."""

    def install(self) -> None:
        """Guard this process from now on, for good."""
        resolve = socket.getaddrinfo

        def getaddrinfo(host: Any, *arguments: Any, **options: Any) -> Any:
            found = resolve(host, *arguments, **options)
            name = host.decode(errors="replace") if isinstance(host, bytes) else host
            if isinstance(name, str) and name.lower().rstrip(".") in self._names:
                self._addresses.update(str(one[4][0]).partition("%")[0] for one in found)
            return found

        socket.getaddrinfo = getaddrinfo
        sys.addaudithook(self.audit)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raise `PermissionError` for what this process may not do."""
        if event in CONNECTING:
            self._check_address(arguments[1] if len(arguments) > 1 else None, event)
        elif event in STARTING:
            self._refuse(f"starting a program ({event})")
        elif event == "open" and _writes(arguments[2]) and arguments[0] != os.devnull:
            self._refuse("writing a file")

    def _check_address(self, address: Any, event: str) -> None:
        if address is None and event != "socket.connect":
            return  # over a connection that was checked when it was made
        if not isinstance(address, tuple) or not isinstance(address[0], str):
            self._refuse("a connection that is not over the network")
            return
        host = address[0].partition("%")[0]
        if host in self._addresses or is_public(host):
            return
        if not _is_numeric(host):
            self._refuse("a connection to a name that was not resolved first")
        self._refuse(f"a connection to {host}, which is not a public address")

    def _refuse(self, what: str) -> None:
        self.refused = what
        raise PermissionError(f"refused: {what}")


def _writes(flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & WRITING)


def _is_numeric(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
