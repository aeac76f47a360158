"""Events of an export, compared with those on record: what these only name is in the export too."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any


def as_on_record(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with the texts of settings taken out; each has to be what its hash names."""
    found = []
    for event in events:
        extra = event.get("extra") or {}
        if event.get("subtype") == "execution_started" and "settings" in extra:
            named = dict(extra["settings"])
            assert sha256(named.pop("text").encode()).hexdigest() == named["sha256"]
            found.append({**event, "extra": {**extra, "settings": named}})
        else:
            found.append(event)
    return found
