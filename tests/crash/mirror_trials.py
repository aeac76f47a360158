"""A mirror that catches up in a process which is killed at one of its system calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crash.system_calls import probe_system_calls
from nightherd.files.atomic import SYSTEM_CALLS, FileCalls
from nightherd.journal.files import JournalFiles
from nightherd.mirror.follower import MirrorFollower
from nightherd.ports import Probe
from nightherd.state.outbox import LedgerFeed
from nightherd.state.reader import SqliteReader
from nightherd.testing.determinism import FakeClock
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say

CATCH_UP = f"{__name__}:catch_up"


def follower_in(root: Path, calls: FileCalls = SYSTEM_CALLS) -> MirrorFollower:
    """The mirror of the state directory."""
    journals = JournalFiles(root / "jobs", root / "blobs", clock=FakeClock())
    return MirrorFollower(
        root,
        LedgerFeed(root / "ledger"),
        SqliteReader(root),
        journals,
        clock=FakeClock(),
        agents={"grazer": None, "waiting": None},
        calls=calls,
    )


def catch_up(order: dict[str, Any], say: Say) -> None:
    """Catch up; end at the `nth` call, or say each of them."""

    def tell(point: str, /) -> None:
        say(point)

    probe: Probe = Ending(nth=order["nth"]) if order["nth"] else tell
    calls = probe_system_calls(probe)
    follower_in(Path(order["root"]), calls).catch_up()
