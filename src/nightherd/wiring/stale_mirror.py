"""Readable files that a killed command left behind: found cheaply, and brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightherd.wiring.loading import load

if TYPE_CHECKING:
    from pathlib import Path


def is_mirror_behind(state_dir: Path) -> bool:
    """Return whether files are kept that show less than the ledger has, and no live process is there to write them."""
    change = load("nightherd.mirror.behind:mirrored_change")(state_dir)
    if change is None or change >= load("nightherd.state.ledger_end:last_recorded")(
        state_dir / "ledger"
    ):
        return False
    return not load("nightherd.mirror.behind:is_followed")(state_dir)


def refresh_stale_mirror(state_dir: Path) -> None:
    """Bring the readable files up to date if they are behind: what every command does before it exits."""
    if is_mirror_behind(state_dir):
        load("nightherd.wiring.mirrors:refresh_mirror")(state_dir, is_new=False)
