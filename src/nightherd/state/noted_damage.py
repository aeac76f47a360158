"""Noted damage: what nothing can mend and somebody has taken note of, one line each. Nothing is changed by it.

What a line says is told by the doctor for ever; a line that cannot be read notes nothing, and so what it noted
is a problem again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from nightherd.files.append import append_jsonl
from nightherd.files.regular import read_regular
from nightherd.state.layout import NOTED_DAMAGE


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    at: datetime
    job_id: str | None = None
    message: str


class NotedDamage:
    """What has been noted in one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / NOTED_DAMAGE

    def read(self) -> Mapping[str, str]:
        """What was found, and the day it was noted."""
        if not self._path.exists():
            return {}
        found: dict[str, str] = {}
        for line in read_regular(self._path).splitlines():
            try:
                noted = msgspec.json.decode(line, type=Noted)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            found[noted.message] = noted.at.date().isoformat()
        return found

    def add(self, damage: Iterable[tuple[str | None, str]], at: datetime) -> None:
        """Note it: whose, and what."""
        for job_id, message in damage:
            append_jsonl(
                self._path, msgspec.to_builtins(Noted(at=at, job_id=job_id, message=message))
            )
