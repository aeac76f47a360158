"""Pages of events: the right ones at every place, at the same cost in a long journal as in a short one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Durability
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.journal.event import AssistantEvent
from nightherd.ports import Journals
from nightherd.testing.determinism import FakeClock
from nightherd.views.jobs.event_pages import EventPage, page_after, page_around, page_before

JOB = JobId("job-2026-01-02-abc123")
EMPTY = JobId("job-2026-01-02-xyz789")


def written(directory: Path, count: int, text: str = "word") -> JournalFiles:
    directory.mkdir(exist_ok=True)
    journals = JournalFiles(
        directory, directory / "blobs", clock=FakeClock(), durability=Durability.PROCESS
    )
    journal = journals.open(JOB, epoch=1, execution=generate_execution_id(JOB, 1))
    for number in range(1, count + 1):
        journal.append(AssistantEvent(content=f"{text} {number}"))
    journal.close()
    return journals


def shown(page: EventPage) -> tuple[list[int], bool, bool]:
    return [event.seq for event in page.events], page.has_before, page.has_after


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (0, ([1, 2, 3], False, True)),
        (3, ([4, 5, 6], True, True)),
        (7, ([8, 9, 10], True, False)),
        (9, ([10], True, False)),
        (10, ([], True, False)),
        (99, ([], True, False)),
    ],
)
def test_page_after_an_event(
    after: int, expected: tuple[list[int], bool, bool], tmp_path: Path
) -> None:
    assert shown(page_after(written(tmp_path, 10), JOB, after, 3)) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (0, ([], False, True)),
        (1, ([], False, True)),
        (2, ([1], False, True)),
        (4, ([1, 2, 3], False, True)),
        (5, ([2, 3, 4], True, True)),
        (11, ([8, 9, 10], True, False)),
        (2**53, ([8, 9, 10], True, False)),
    ],
)
def test_page_before_an_event(
    before: int, expected: tuple[list[int], bool, bool], tmp_path: Path
) -> None:
    assert shown(page_before(written(tmp_path, 10), JOB, before, 3)) == expected


@pytest.mark.parametrize(
    ("around", "limit", "expected"),
    [
        (5, 3, ([4, 5, 6], True, True)),
        (5, 4, ([3, 4, 5, 6], True, True)),
        (1, 3, ([1, 2, 3], False, True)),
        (10, 3, ([8, 9, 10], True, False)),
        (99, 3, ([8, 9, 10], True, False)),
        (5, 100, (list(range(1, 11)), False, False)),
    ],
)
def test_page_around_an_event(
    around: int, limit: int, expected: tuple[list[int], bool, bool], tmp_path: Path
) -> None:
    assert shown(page_around(written(tmp_path, 10), JOB, around, limit)) == expected


def test_job_without_a_journal_has_empty_pages(tmp_path: Path) -> None:
    journals = written(tmp_path, 1)

    pages = [
        page_after(journals, EMPTY, 0, 5),
        page_before(journals, EMPTY, 5, 5),
        page_around(journals, EMPTY, 5, 5),
    ]

    assert [shown(page) for page in pages] == [([], False, False)] * 3
    assert [(page.first_seq, page.last_seq) for page in pages] == [(None, 0)] * 3


def test_pages_before_one_another_have_every_event_once_across_damaged_lines(
    tmp_path: Path,
) -> None:
    journals = written(tmp_path, 300)
    lines = journals.path(JOB).read_bytes().splitlines(keepends=True)
    lines[40:140] = [b"\x00" * 30 + b"\n"] * 100
    journals.path(JOB).write_bytes(b"".join(lines))

    seen: list[int] = []
    before = 2**53
    while True:
        page = page_before(journals, JOB, before, 7)
        seen = [event.seq for event in page.events] + seen
        if not page.has_before:
            break
        assert page.first_seq is not None
        before = page.first_seq

    assert seen == [*range(1, 41), *range(141, 301)]


def test_page_of_a_long_journal_reads_little_more_than_one_of_a_short_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        data = original(descriptor, size, offset)
        read.append(len(data))
        return data

    def cost(journals: Journals, count: int) -> list[int]:
        costs = []
        for place in (1, count // 3, count // 2, count - 5, count):
            for page in (page_after, page_before, page_around):
                read.clear()
                page(journals, JOB, place, 50)
                costs.append(sum(read))
        return costs

    short = written(tmp_path / "short", 500, "x" * 100)
    long = written(tmp_path / "long", 50_000, "x" * 100)
    size = long.path(JOB).stat().st_size
    monkeypatch.setattr(os, "pread", counted)
    costs_short, costs_long = cost(short, 500), cost(long, 50_000)

    # A hundred times the events: halving takes seven steps more, each of them a block.
    assert max(costs_long) < max(costs_short) + 12 * 32 * 1024
    assert max(costs_long) < size / 10
