"""Connecting to a host by name: the name is resolved once, and only an address that was checked is connected to."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import anyio
from anyio import to_thread
from anyio.abc import SocketStream

from nightherd.model.containers.egress import Destination, EgressRules, Reach, reach_of

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a name, for a port; called in a thread, and may block. `OSError` when there are none."""
MOST_LOOKUPS = 8
"""At the same time."""
MOST_ADDRESSES = 6
"""Of one name that are tried."""
ATTEMPT_S = 10.0
DIALED_S = 40.0
"""How long it may take altogether, with the look-up."""


WHY_NOT = {
    Reach.PUBLIC: "its name stands for an address that is not public",
    Reach.PRIVATE: "its name stands for an address that is neither public nor of a private network",
}


class RefusedAddressError(Exception):
    """Raised for a destination that must not be connected to."""


def resolve(name: str, port: int) -> Sequence[str]:
    """The addresses of `name`, as this machine knows them."""
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for _, _, _, _, address in found]


class Dialer:
    """Connects to what the rules allow, in the event loop that first uses it."""

    def __init__(self, rules: EgressRules, resolve: Resolve, allow_private: bool) -> None:
        self._rules = rules
        self._resolve = resolve
        self._allow_private = allow_private
        self._lookups: anyio.CapacityLimiter | None = None

    async def dial(self, destination: Destination) -> SocketStream:
        """A connection; `RefusedAddressError` when there may be none, `OSError` when there is none."""
        if not self._rules.allow(destination):
            raise RefusedAddressError("it is not one of the allowed_hosts")
        addresses = await self._addresses(destination)
        reach = Reach.ANY if self._allow_private else self._rules.reach(destination)
        if reach is not Reach.ANY:
            addresses = [one for one in addresses if reach_of(one) <= reach]
            if reach is Reach.PUBLIC:
                addresses = [one for one in addresses if not _is_own(one)]
            if not addresses:
                raise RefusedAddressError(WHY_NOT[reach])
        last: OSError = OSError("it has no address")
        for address in addresses[:MOST_ADDRESSES]:
            try:
                with anyio.fail_after(ATTEMPT_S):
                    return await anyio.connect_tcp(address, destination.port)
            except OSError as error:  # also when the time is over
                last = error
        raise last

    async def _addresses(self, destination: Destination) -> list[str]:
        if self._lookups is None:
            self._lookups = anyio.CapacityLimiter(MOST_LOOKUPS)
        found = await to_thread.run_sync(
            self._resolve,
            destination.name,
            destination.port,
            abandon_on_cancel=True,
            limiter=self._lookups,
        )
        return list(dict.fromkeys(found))


def _is_own(address: str) -> bool:
    """Whether the address is one of this machine's: then it is also what connections to it come from."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))  # sends nothing
            return bool(probe.getsockname()[0] == address)
    except OSError:
        return False  # there is no way to it
