"""Found lines: what the search program prints, with secrets masked first and long lines cut after that."""

from __future__ import annotations

from collections.abc import Callable

from nightherd.model.secret import Secrets
from nightherd.model.secret_filter import SecretFilter
from nightherd.runtimes.tools.search_program import MAX_LINE, TEXT_MARK

CUT = " [...]"


class FoundLines:
    """Takes what the program prints and passes it on line by line; `finish` passes on the rest."""

    def __init__(self, secrets: Secrets, pass_on: Callable[[bytes], None]) -> None:
        self._filter = SecretFilter(secrets)
        self._pass_on = pass_on
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        """Take `chunk`, which follows all that was added before."""
        self._take(self._filter.feed(chunk))

    def finish(self) -> None:
        """Nothing follows."""
        self._take(self._filter.finish())
        rest, self._rest = self._rest, b""
        if rest:
            self._pass_on(_shown(rest))

    def _take(self, masked: bytes) -> None:
        *lines, self._rest = (self._rest + masked).split(b"\n")
        if lines:
            self._pass_on(b"".join(_shown(line) + b"\n" for line in lines))


def _shown(line: bytes) -> bytes:
    """Return the line without its mark, the text of the file cut to what is shown of it."""
    place, mark, text = line.partition(TEXT_MARK)
    if not mark:
        return line
    found = text.decode(errors="surrogateescape")
    if len(found) > MAX_LINE:
        found = found[:MAX_LINE] + CUT
    return place + found.encode(errors="surrogateescape")
