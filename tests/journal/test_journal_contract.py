"""Both journals keep the contract: the one in files and the one in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Durability
from nightherd.ports import Journals
from nightherd.testing.contracts import journal
from nightherd.testing.contracts.journal import JOURNAL_CONTRACT
from nightherd.testing.determinism import FakeClock
from nightherd.testing.memory_journals import MemoryJournals

Check = Callable[[Journals], None]

each_check = pytest.mark.parametrize(
    "check", JOURNAL_CONTRACT, ids=lambda check: check.__name__.removeprefix("check_")
)


@each_check
@pytest.mark.parametrize("durability", list(Durability))
def test_journal_files_keep_the_contract(
    check: Check, durability: Durability, tmp_path: Path
) -> None:
    check(JournalFiles(tmp_path, tmp_path / "blobs", clock=FakeClock(), durability=durability))


@each_check
def test_memory_journals_keep_the_contract(check: Check) -> None:
    check(MemoryJournals(clock=FakeClock()))


def test_every_check_is_part_of_the_contract() -> None:
    written = {name for name in vars(journal) if name.startswith("check_")}

    assert written == {check.__name__ for check in JOURNAL_CONTRACT}
