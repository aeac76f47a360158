"""Pages of the log: newest first, every line once, and no more read than is shown."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.logs import pages
from nightherd.logs.files import UNREADABLE, LogFiles
from nightherd.logs.pages import BLOCK, log_names, read_page
from nightherd.model.log import LogLine, LogPlace
from nightherd.model.secrets import Secrets

AT = datetime(2026, 11, 15, 3, tzinfo=UTC)
NO_SECRETS = Secrets({}, None)


def line(number: int, at: int, agent: str | None = "hello", **more: object) -> LogLine:
    time = AT + timedelta(seconds=at)
    return LogLine(at=time, event="test", agent=agent, data={"number": number, **more})


def write(directory: Path, *lines: LogLine, limit: int = 10**9) -> LogFiles:
    files = LogFiles(directory, NO_SECRETS, limit=limit, kept=50)
    for one in lines:
        files.write(one)
    files.close()
    return files


def all_pages(directory: Path, size: int, name: str | None = None) -> list[int]:
    """Every line's number, page by page; each place through its text, as a client has it."""
    found: list[int] = []
    place: LogPlace | None = None
    while True:
        page = read_page(directory, name, place, size)
        found += [one.data["number"] for one in page.lines]
        if page.next is None:
            return found
        assert len(page.lines) == size
        place = LogPlace.of(str(page.next))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_pages_have_every_line_once_newest_first(size: int, tmp_path: Path) -> None:
    agents = ("one", "two", None)
    write(tmp_path, *(line(number, number // 2, agents[number % 3]) for number in range(20)))

    found = all_pages(tmp_path, size)

    assert sorted(found) == list(range(20))
    assert [number // 2 for number in found] == sorted((n // 2 for n in range(20)), reverse=True)
    assert all_pages(tmp_path, size, "one") == [18, 15, 12, 9, 6, 3, 0]
    assert log_names(tmp_path) == ["nightherd", "one", "two"]


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(st.integers(0, 6), max_size=30),
    size=st.integers(1, 5),
    limit=st.sampled_from([200, 500, 10**9]),
)
def test_lines_of_the_same_time_and_lines_out_of_order_come_once(
    times: list[int], size: int, limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("logs")
    agents = ("one", "two")
    write(
        directory,
        *(line(number, at, agents[number % 2]) for number, at in enumerate(times)),
        limit=limit,
    )

    assert sorted(all_pages(directory, size)) == list(range(len(times)))


def test_rotated_files_are_read_too(tmp_path: Path) -> None:
    write(tmp_path, *(line(number, number) for number in range(40)), limit=600)

    assert len(list(tmp_path.iterdir())) > 3
    assert all_pages(tmp_path, 7) == list(range(39, -1, -1))


def test_a_log_rotated_between_two_blocks_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "FIRST_BLOCK", 200)
    monkeypatch.setattr(pages, "BLOCK", 200)
    write(tmp_path, *(line(number, number) for number in range(20)))
    read = pages._File.read
    rotations: list[Path] = []

    def rotate_first(file: pages._File, start: int, end: int) -> bytes:
        found = read(file, start, end)
        if not rotations:
            rotations.append(file.path.replace(file.path.with_name("hello.log.1")))
            write(tmp_path, line(99, 99))
        return found

    monkeypatch.setattr(pages._File, "read", rotate_first)

    page = read_page(tmp_path, None, None, 50)

    assert [one.data["number"] for one in page.lines] == list(range(19, -1, -1))


def test_a_line_that_is_still_written_is_left_out_and_a_damaged_one_is_shown(
    tmp_path: Path,
) -> None:
    write(tmp_path, line(0, 0), line(1, 1))
    with (tmp_path / "hello.log").open("ab") as file:
        file.write(b'no line at all\n{"at":"2026-11-15T03:00:02","event":"naive"}\n')
        file.write(b'{"at":"2026-11-15T03:00:09Z","eve')

    page = read_page(tmp_path, None, None, 10)

    assert [one.event for one in page.lines] == ["naive", UNREADABLE, "test", "test"]
    assert page.lines[1].message == "no line at all"


def test_long_lines_span_blocks(tmp_path: Path) -> None:
    long = "x" * (3 * BLOCK)
    write(tmp_path, *(line(number, number, text=long) for number in range(4)), line(4, 4))

    assert all_pages(tmp_path, 2) == [4, 3, 2, 1, 0]


def test_a_page_in_the_middle_of_a_long_log_reads_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *(line(number, number, text="x" * 200) for number in range(20_000)))
    size = (tmp_path / "hello.log").stat().st_size
    read, count = pages._File.read, [0]

    def counted(file: pages._File, start: int, end: int) -> bytes:
        count[0] += end - start
        return read(file, start, end)

    monkeypatch.setattr(pages._File, "read", counted)

    page = read_page(tmp_path, None, LogPlace(at=AT + timedelta(seconds=5_000)), 10)

    assert [one.data["number"] for one in page.lines] == list(range(5_000, 4_990, -1))
    assert size > 50 * BLOCK
    assert count[0] < 20 * BLOCK


def test_no_logs_are_an_empty_page(tmp_path: Path) -> None:
    (tmp_path / "daemon.out").write_text("not a log\n")
    os.mkfifo(tmp_path / "pipe.txt")

    assert read_page(tmp_path / "none", None, None, 10).lines == []
    assert read_page(tmp_path, None, None, 10).lines == []
    assert read_page(tmp_path, "../secrets", None, 10).lines == []


@pytest.mark.parametrize(
    "text", ["", "x", "2026-11-15T03:00:00Z", "x~1", "2026-11-15T03:00:00Z~-1"]
)
def test_other_texts_are_no_places(text: str) -> None:
    with pytest.raises(InvalidValueError):
        LogPlace.of(text)
