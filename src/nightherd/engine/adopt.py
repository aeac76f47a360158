"""Adoption: what taking over another tool's records needs, and the account of what became of them.

The readers in `imports/` give foreign records in the forms of `adopt_jobs.py` and `adopt_transcripts.py`;
those modules record them through the ports of a `Desk`. What is written for a record comes before the row
that names it, so that a run that was killed is simply run again (INV-DURABLE, INV-ONCE).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from nightherd.model.ids import ALPHABET, RandomText, SessionId, generate_session_id
from nightherd.model.secret import Secrets
from nightherd.model.session import Session
from nightherd.ports import (
    FinishedJournals,
    Journals,
    StateReader,
    StateWriter,
    TranscriptShelf,
)

OnProgress = Callable[[str], None]
"""Told of every foreign record that is done with, by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A record that was read and not taken over, and why."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A record that could not be read: where, and why."""

    file: str
    reason: str
    line: int | None = None


@dataclass(slots=True, kw_only=True)
class Report:
    """What became of every foreign record, filled in while they are gone through."""

    imported: dict[str, int] = field(default_factory=dict)
    """How many were recorded, by kind."""
    unchanged: int = 0
    """Records that were here already, as they are there."""
    skipped: list[Skipped] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    def count(self, kind: str, number: int = 1) -> None:
        """`number` more of `kind` are recorded, or would be."""
        self.imported[kind] = self.imported.get(kind, 0) + number

    def skip(self, source: str, reason: str) -> None:
        """`source` is left where it is."""
        self.skipped.append(Skipped(source=source, reason=reason))

    @property
    def is_useless(self) -> bool:
        """Whether there was something, and none of it could be read."""
        some = any(self.imported.values()) or self.unchanged or self.skipped
        return bool(self.unreadable) and not some


@dataclass(frozen=True, slots=True, kw_only=True)
class Pens:
    """What recording needs."""

    state: StateWriter
    journals: FinishedJournals


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Everything adoption needs from the world. Without `pens` it is a dry run: nothing is written."""

    reader: StateReader
    journals: Journals
    shelf: TranscriptShelf
    secrets: Secrets
    version: str
    pens: Pens | None = None


def session_id_for(
    kind: str, name: str, is_same: Callable[[Session], bool], desk: Desk
) -> SessionId:
    """The id of the session made from a foreign record: the same for the same record, whoever imports it.

    So two imports at the same time cannot make two sessions of one record. An id that another session has
    is passed over.
    """
    salt = 0
    while True:
        found = generate_session_id(hashed_text(f"{kind}\n{name}\n{salt}"))
        known = desk.reader.find_session(found)
        if known is None or is_same(known):
            return found
        salt += 1


def hashed_text(seed: str) -> RandomText:
    """Text of the id alphabet that follows from `seed`."""

    def text(length: int) -> str:
        number = int.from_bytes(hashlib.sha256(seed.encode(errors="replace")).digest())
        letters = []
        for _ in range(length):
            number, letter = divmod(number, len(ALPHABET))
            letters.append(ALPHABET[letter])
        return "".join(letters)

    return text


def in_utc(at: datetime | None) -> datetime | None:
    """The same instant in UTC; None for one that UTC cannot say, as the first day there is somewhere else."""
    try:
        return at.astimezone(UTC) if at is not None else None
    except OverflowError:
        return None
