"""The ledger's last change, found by readers that load nothing else of the ledger."""

from __future__ import annotations

import os
import re
from pathlib import Path

LEDGER_FILE = re.compile(r"\d{4}-\d{2}\.jsonl")
CHANGE = re.compile(rb'\{"v":\d+,"change":(\d+),')
TAIL_BYTES = 4 * 1024


def last_recorded(ledger: Path) -> int:
    """Return the number of the last whole line; 0 when there is none, or it cannot be told."""
    try:
        names = sorted(filter(LEDGER_FILE.fullmatch, os.listdir(ledger)), reverse=True)  # noqa: PTH208 (every reader asks)
        for name in names:
            line = _last_line(ledger / name)
            if line:
                found = CHANGE.match(line)
                return int(found[1]) if found is not None else 0
    except OSError:
        pass
    return 0


def _last_line(path: Path) -> bytes:
    # A pipe in the place of the file is not waited for: seeking in it fails.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        reach = TAIL_BYTES
        while True:
            start = max(0, size - reach)
            file.seek(start)
            tail = file.read(size - start)
            end = tail.rfind(b"\n")
            begin = tail.rfind(b"\n", 0, max(end, 0))
            if begin >= 0 or start == 0:
                return tail[begin + 1 : end] if end >= 0 else b""
            reach *= 8
