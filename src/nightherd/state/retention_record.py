"""The record of automatic retention: its last run, in a file of the state directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nightherd.decoding import decode_json
from nightherd.files.atomic import atomic_write_json
from nightherd.model.checkpoints.retention import RetentionRun

RECORD = "retention.json"


def last_run(state_dir: Path) -> RetentionRun | None:
    """Return the last run; None when there was none, or its file cannot be read: then it is announced again."""
    try:
        return decode_json((state_dir / RECORD).read_bytes(), RetentionRun)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write_run(state_dir: Path, run: RetentionRun) -> None:
    """Record the run."""
    atomic_write_json(state_dir / RECORD, msgspec.to_builtins(run))


def forget_runs(state_dir: Path) -> None:
    """Begin with an announcement next time."""
    (state_dir / RECORD).unlink(missing_ok=True)
