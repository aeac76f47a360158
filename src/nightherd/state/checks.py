"""The checks of a state directory's files and database: what looks, and what mends."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path

from nightherd.engine.doctor import Check
from nightherd.state.checkup import Checkup
from nightherd.state.mending import Mending


def state_checks(root: Path, now: datetime) -> tuple[list[Check], list[Check]]:
    """The quick checks, and those that read everything."""
    checkup, mending = Checkup(root), Mending(root)
    temp_files = partial(checkup.temp_files, now)
    agreement = partial(checkup.agreement, now)
    quick = [
        Check("sqlite", "SQLite", checkup.sqlite),
        Check("filesystem", "filesystem", checkup.filesystem),
        Check("disk", "free space", checkup.disk),
        Check("directory", "directories", checkup.directory, mending.directory),
        Check("permissions", "permissions", checkup.permissions, mending.permissions),
        Check("temp-files", "temporary files", temp_files, mending.temp_file),
        Check("database", "database", checkup.database),
        Check("ledger", "ledger", checkup.ledger),
    ]
    deep = [
        Check("whole-database", "database, every page", checkup.whole_database, is_deep=True),
        Check("agreement", "ledger replayed", agreement, is_deep=True),
    ]
    return quick, deep
