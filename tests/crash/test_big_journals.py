"""Memory does not grow with the journal: reading, following and finding take the same for any size."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.big_journal_trials import MEASURE, fill, journals_at
from nightherd.testing.contracts.journal import JOB
from nightherd.testing.fork_server import ForkServer
from soak import often

SIZE = often(100, soak=300) << 20
MOST_KIB = 24 << 10
"""What a process may grow by: a few blocks, their events, and the interpreter's own room."""


@pytest.mark.slow
def test_journal_larger_than_memory_may_grow_is_used_in_constant_memory(tmp_path: Path) -> None:
    path = journals_at(tmp_path).path(JOB)
    count = fill(path, SIZE)
    assert path.stat().st_size > 0.95 * SIZE

    with ForkServer() as server:
        ended = server.run(MEASURE, {"folder": str(tmp_path), "count": count})
    path.unlink()

    assert (ended.status, ended.error) == (0, "")
    grown = {name: int(kib) for name, kib in (line.split() for line in ended.said)}
    assert len(grown) == 7
    assert max(grown.values()) < MOST_KIB, grown
