"""Known: types that msgspec has looked into before anybody reads one.

It does so when a type is first read. Two threads that first read one at the same time, with another type of ours
inside, end the process (msgspec 0.22: the second sees what the first has half made). So a module that has such a
type read in functions names it when it is loaded, which one thread does.
"""

from __future__ import annotations

from typing import Any

import msgspec


def known(*kinds: type[msgspec.Struct]) -> tuple[msgspec.json.Decoder[Any], ...]:
    """A decoder for each: from now on these may be read in any thread."""
    return tuple(msgspec.json.Decoder(kind) for kind in kinds)
