"""An index that catches up in a process which is killed at one of its points, or by another process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nightherd.index.indexer import Indexer
from nightherd.journal.files import JournalFiles
from nightherd.ports import Probe, no_probe
from nightherd.state.outbox import LedgerFeed
from nightherd.testing.determinism import FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say

CATCH_UP = f"{__name__}:catch_up"


def indexer_in(root: Path, probe: Probe = no_probe) -> Indexer:
    """What indexes the state directory."""
    journals = JournalFiles(root / "jobs", root / "blobs", clock=FakeClock())
    return Indexer(root, LedgerFeed(root / "ledger"), journals, probe=probe)


def catch_up(order: dict[str, Any], say: Say) -> None:
    """Catch up; end at the `nth` point, or say each of them."""

    def tell(point: str, /) -> None:
        say(point)

    probe: Probe = Ending(nth=order["nth"]) if order["nth"] else tell
    indexer_in(Path(order["root"]), probe).catch_up()
