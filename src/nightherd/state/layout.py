"""The names of what a state directory holds (docs/formats/state.md), and the ledger's last change for readers that load nothing else of the ledger."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nightherd.files.regular import last_line, open_regular

DATABASE = "nightherd.db"
WRITE_LOCK = "write.lock"
JOBS = "jobs"
SESSIONS = "sessions"
LOGS = "logs"
LEDGER = "ledger"
BLOBS = "blobs"
SNAPSHOTS = "snapshots"
SETUP = "setup"
CLONES = "clones"
LANDING = "landing"
CONTAINERS = "containers"
OTHERS = (SNAPSHOTS, SETUP, CLONES, LANDING, CONTAINERS)
"""Directories whose files have names, owners and modes that git, a user or a container gave them; only they themselves are private."""
GITIGNORE = ".gitignore"
STATE_FILE = "state.yaml"
DAMAGED_ROWS = "damaged-rows.jsonl"
NOTED_DAMAGE = "noted-damage.jsonl"


LEDGER_FILE = re.compile(r"\d{4}-\d{2}\.jsonl")
CHANGE = re.compile(rb'\{"v":\d+,"change":(\d+),')


def last_recorded(ledger: Path) -> int:
    """Return the number of the last whole line; 0 when there is none, or it is unknown."""
    try:
        names = sorted(filter(LEDGER_FILE.fullmatch, os.listdir(ledger)), reverse=True)  # noqa: PTH208 (every reader asks)
        for name in names:
            with open_regular(ledger / name) as file:
                _, line = last_line(file)
            if line:
                matched = CHANGE.match(line)
                return int(matched[1]) if matched is not None else 0
    except OSError:
        pass
    return 0
