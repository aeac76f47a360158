"""The change feed: whoever asks again and again hears of every change once, whatever it looks like from outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nightherd.db.ledger import Entry, Ledger
from nightherd.errors import StateFileError
from nightherd.ports import no_probe
from nightherd.state import outbox as feed_module
from nightherd.state.outbox import LedgerFeed

MARCH = "2026-03-31T23:59:59.000000Z"
APRIL = "2026-04-01T00:00:00.000000Z"


def append(directory: Path, *changes: int, at: str = MARCH) -> None:
    rows = '[{"table":"jobs","row":{"id":"job-1"}}]'
    entries = [Entry(change=one, at=at, kind="SubmitJob", rows=rows) for one in changes]
    Ledger(directory, no_probe).append(entries)


def numbers(feed: LedgerFeed, after: int) -> list[int]:
    return [entry.change for entry in feed.read(after=after)]


def test_files_are_not_opened_again_before_somebody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path, 1, 2)
    feed = LedgerFeed(tmp_path)
    assert numbers(feed, 0) == [1, 2]

    with monkeypatch.context() as patched:
        patched.delattr(feed_module, "read_lines")
        assert numbers(feed, 2) == []
        with pytest.raises(NameError):  # what it has read is not kept, only where it ended
            numbers(feed, 1)

    append(tmp_path, 3)
    assert numbers(feed, 2) == [3]
    assert numbers(feed, 1) == [2, 3]


def test_one_who_stops_half_way_gets_the_rest(tmp_path: Path) -> None:
    append(tmp_path, 1, 2, 3)
    feed = LedgerFeed(tmp_path)

    assert next(feed.read()).change == 1
    assert numbers(feed, 1) == [2, 3]


def test_change_written_while_somebody_reads_is_not_missed(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    feed = LedgerFeed(tmp_path)
    reading = feed.read()
    heard = [next(reading).change]
    append(tmp_path, 3)
    heard += [entry.change for entry in reading]

    assert [*heard, *numbers(feed, heard[-1])] == [1, 2, 3]


def test_new_month_is_noticed(tmp_path: Path) -> None:
    append(tmp_path, 1)
    feed = LedgerFeed(tmp_path)
    assert numbers(feed, 0) == [1]

    append(tmp_path, 2, at=APRIL)
    assert numbers(feed, 1) == [2]
    append(tmp_path, 3, at=APRIL)
    assert numbers(feed, 2) == [3]


def test_line_that_was_unfinished_comes_once_it_is_whole(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    feed = LedgerFeed(tmp_path)
    assert (numbers(feed, 0), numbers(feed, 1)) == ([1], [])

    with file.open("ab") as more:
        more.write(whole[-9:])

    assert numbers(feed, 1) == [2]


def test_ledger_that_another_takes_the_place_of_is_read_anew(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    feed = LedgerFeed(tmp_path)
    assert numbers(feed, 0) == [1, 2]
    (file,) = tmp_path.iterdir()

    other = tmp_path / "other"
    other.write_bytes(
        re.sub(rb',"crc":"[^"]*"', b"", file.read_bytes()).replace(b'"change":2', b'"change":7')
    )
    other.replace(file)

    with pytest.raises(StateFileError, match="change 7, not 2"):
        numbers(feed, 2)
