"""Readable files that a killed command left behind: found cheaply, and brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def is_mirror_behind(state_dir: Path) -> bool:
    """Return whether files are kept that show less than the ledger has, and no live process is there to write them."""
    from nightherd.mirror.behind import is_followed, mirrored_change
    from nightherd.state.ledger_end import last_recorded

    change = mirrored_change(state_dir)
    if change is None or change >= last_recorded(state_dir / "ledger"):
        return False
    return not is_followed(state_dir)


def refresh_stale_mirror(state_dir: Path) -> None:
    """Bring the readable files up to date if they are behind: what every command does before it exits."""
    from nightherd.wiring.mirrors import refresh_mirror

    if is_mirror_behind(state_dir):
        refresh_mirror(state_dir, is_new=False)
