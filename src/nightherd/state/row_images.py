"""The second copy of a row: its last image in the outbox or the ledger, for a row that is damaged.

Readers use it, so it is light: a command that lists jobs loads nothing more for it.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from nightherd.db.connection import Database
from nightherd.errors import InvalidValueError, StateError
from nightherd.files.regular import is_intact, open_regular
from nightherd.state.layout import LEDGER, LEDGER_FILE

Image = dict[str, Any]


def last_image(database: Database, table: str, key_column: str, key: str) -> Image | None:
    """Return the row as the last change wrote it; None when no change that can be read has it, or it was deleted.

    When the last line that mentions the row is damaged, there is none either: an older image may be
    out of date, and a job that has ended would run again.
    """
    try:
        waiting = database.execute("SELECT rows FROM outbox ORDER BY change DESC")
    except StateError:
        waiting = []  # damaged too: the ledger has the same lines
    # Newest first, and no further than needed: a ledger holds years.
    images = chain(
        json_texts(str(rows) for (rows,) in waiting if key in str(rows)),
        ledger_images(database.path.with_name(LEDGER), key),
    )
    for rows in images:
        if rows is None:
            return None
        for image in rows:
            if image.get("table") == table and image.get("row", {}).get(key_column) == key:
                return None if image.get("deleted") else dict(image["row"])
    return None


def json_texts(texts: Iterable[str]) -> Iterator[list[Image] | None]:
    """Decode the images of each text; None for one that cannot be decoded."""
    for text in texts:
        yield _decoded(text.encode(errors="surrogateescape"))


def ledger_images(ledger: Path, key: str) -> Iterator[list[Image] | None]:
    """Yield the images of every line that mentions `key`, newest first; None for a damaged line."""
    wanted = json.dumps(key, ensure_ascii=False)[1:-1].encode()
    for path in sorted(ledger.glob("*.jsonl"), reverse=True):
        if LEDGER_FILE.fullmatch(path.name):
            try:
                for line in _lines_with(path, wanted):
                    document = _decoded(line) if is_intact(line) else None
                    yield document.get("rows") if isinstance(document, dict) else None
            except OSError:
                yield None  # what it would say of the row is not known


def _lines_with(path: Path, wanted: bytes) -> Iterator[bytes]:
    """Yield the whole lines that contain `wanted`, last to first."""
    with open_regular(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return
        yield from _mapped_lines(file.fileno(), wanted)


def _mapped_lines(descriptor: int, wanted: bytes) -> Iterator[bytes]:
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        # A fragment after the last line end is not a change.
        end = data.rfind(b"\n") + 1
        while (place := data.rfind(wanted, 0, end)) >= 0:
            start = data.rfind(b"\n", 0, place) + 1
            yield data[start : data.find(b"\n", place)]
            end = start


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def encode_images(images: Sequence[dict[str, Any]]) -> str:
    """`images` as JSON; `InvalidValueError` for a text or number that no file could hold."""
    try:
        return msgspec.json.encode(images).decode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"text that is not valid Unicode: {error.reason}") from error
    except OverflowError as error:
        raise InvalidValueError("a number that is too large to be stored") from error
