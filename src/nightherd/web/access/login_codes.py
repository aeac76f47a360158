"""Login codes and the limit of failed logins. Both are in memory: a restart forgets them."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from nightherd.model.ids import RandomText
from nightherd.model.inbox.token import SECRET_LENGTH, secret_hash

LIFETIME_S = 60.0
MOST_CODES = 64
FAILURES = 10
"""Failed logins that one client may have in a row."""
PAUSE_S = 6.0
"""After how long a client that used them up may fail once more."""
MOST_CLIENTS = 4_096


class _Code(msgspec.Struct, frozen=True):
    person: str
    until: float


class LoginCodes:
    """Codes that log a browser in, once and within a minute. Only hashes are kept."""

    def __init__(self) -> None:
        self._codes: OrderedDict[str, _Code] = OrderedDict()

    def make(self, person: str, at: float, random_text: RandomText) -> str:
        """Return a new code for the person; `at` is on a monotonic clock, as everywhere here."""
        self._forget(at)
        code = random_text(SECRET_LENGTH)
        self._codes[secret_hash(code)] = _Code(person, at + LIFETIME_S)
        while len(self._codes) > MOST_CODES:
            self._codes.popitem(last=False)
        return code

    def take(self, code: str, at: float) -> str | None:
        """Use the code up, and return its person; None for a code that is unknown, used or too old."""
        self._forget(at)
        found = self._codes.pop(secret_hash(code), None)
        return None if found is None else found.person

    def _forget(self, at: float) -> None:
        for key in [key for key, code in self._codes.items() if code.until <= at]:
            del self._codes[key]


class FailedLogins:
    """How many logins of each client failed lately: after some, every further one has to wait."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Of each client: what is left of its failures, and when that was so."""

    def count(self, client: str, at: float) -> float:
        """Count a login before it is tried, so that logins at the same time are no way around the limit.

        Returns 0 if it may be tried; else nothing is counted, and how long the client has to wait is returned.
        """
        left = self._left(client, at)
        if left < 1:
            return (1 - left) * PAUSE_S
        self._clients[client] = (left - 1, at)
        self._clients.move_to_end(client)
        while len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)
        return 0.0

    def forgive(self, client: str) -> None:
        """Take back what was counted for a login that did not fail."""
        counted = self._clients.get(client)
        if counted is not None:
            left, since = counted
            self._clients[client] = (min(float(FAILURES), left + 1), since)

    def _left(self, client: str, at: float) -> float:
        left, since = self._clients.get(client, (float(FAILURES), at))
        return min(float(FAILURES), left + max(at - since, 0.0) / PAUSE_S)
