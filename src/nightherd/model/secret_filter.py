"""Secret filter: masks secrets in a stream of bytes, so that what is cut afterwards never holds half a secret."""

from __future__ import annotations

import re

from nightherd.model.secret import Secrets


class SecretFilter:
    """Masks what is fed to it. It holds back as many bytes as a secret that may have begun there needs."""

    def __init__(self, secrets: Secrets) -> None:
        self._names = {value.encode(): name for value, name in secrets.names.items()}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = (
            re.compile(b"|".join(map(re.escape, longest_first))) if self._names else None
        )
        self._longest = max(map(len, self._names), default=0)
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take `chunk`; return what can be passed on by now."""
        if self._pattern is None:
            return chunk
        data = self._held + chunk
        # Every secret that begins before this place is there to its end.
        safe, done = max(len(data) - self._longest + 1, 0), 0
        masked: list[bytes] = []
        for secret in self._pattern.finditer(data):
            if secret.start() >= safe:
                break
            masked += (data[done : secret.start()], self._mask(secret))
            done = secret.end()
        masked.append(data[done:safe])
        self._held = data[max(done, safe) :]
        return b"".join(masked)

    def finish(self) -> bytes:
        """Return the rest: nothing follows it."""
        rest, self._held = self._held, b""
        return rest if self._pattern is None else self._pattern.sub(self._mask, rest)

    def _mask(self, secret: re.Match[bytes]) -> bytes:
        return b"[secret:%s]" % self._names[secret[0]].encode()
