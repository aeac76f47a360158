"""The checks of a state directory's files and database: what looks, and what mends."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path

from nightherd.engine.doctor import Check, OnStep
from nightherd.ports import Clock
from nightherd.state.checkup import Checkup
from nightherd.state.intruders import intruders, put_aside
from nightherd.state.mending import Mending
from nightherd.state.row_repair import damaged_rows, repair_rows
from nightherd.state.soundness import Soundness

REPLAYED = "ledger replayed"


def state_checks(
    root: Path, clock: Clock, now: datetime, on_step: OnStep
) -> tuple[list[Check], list[Check]]:
    """The quick checks, and those that read everything."""
    checkup, soundness, mending = Checkup(root), Soundness(root), Mending(root, clock)
    temp_files = partial(checkup.temp_files, now)
    agreement = partial(soundness.agreement, now, partial(on_step, REPLAYED))
    quick = [
        Check("sqlite", "SQLite", soundness.sqlite),
        Check("filesystem", "filesystem", checkup.filesystem),
        Check("disk", "free space", checkup.disk),
        Check("files", "files", partial(intruders, root), partial(put_aside, root, clock)),
        Check("directory", "directories", checkup.directory, mending.directory),
        Check("permissions", "permissions", checkup.permissions, mending.permissions),
        Check("temp-files", "temporary files", temp_files, mending.temp_file),
        Check(
            "rows",
            "rows",
            partial(damaged_rows, root),
            mend_all=partial(repair_rows, root, clock),
        ),
        Check("database", "database", soundness.database),
        Check("ledger", "ledger", soundness.ledger, mending.ledger),
    ]
    deep = [
        Check("whole-database", "database, every page", soundness.whole_database, is_deep=True),
        Check("agreement", REPLAYED, agreement, mending.agreement, is_deep=True),
    ]
    return quick, deep
