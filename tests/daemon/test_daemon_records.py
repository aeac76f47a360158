"""Who runs a state directory: whoever says so in it, and not in what it was copied from."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from nightherd.daemon.record import find_daemon, make_record, write_record

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_a_copy_is_run_by_nobody(tmp_path: Path) -> None:
    """A backup that somebody looks into while the fleet runs: to stop it would stop the fleet."""
    fleet, copy, moved = tmp_path / "fleet", tmp_path / "copy", tmp_path / "moved"
    fleet.mkdir()
    write_record(fleet, make_record(at=NOW, version="1", config="nightherd.yaml", agents=None))

    shutil.copytree(fleet, copy)
    found = find_daemon(fleet)
    fleet.rename(moved)

    assert found is not None
    assert find_daemon(copy) is None
    assert find_daemon(moved) == found
