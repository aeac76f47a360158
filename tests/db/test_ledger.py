"""The ledger's files: whole lines stay, fragments go, numbers have no gaps, months only move forward."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd.db.ledger import Entry, Ledger, read_ledger
from nightherd.errors import SchemaVersionError, StateFileError
from nightherd.ports import no_probe

ROWS = '[{"table":"jobs","row":{"id":"job-1","summary":null,"priority":3}}]'


def entry(change: int, at: str = "2026-03-01T12:00:00.000000Z", rows: str = ROWS) -> Entry:
    return Entry(change=change, at=at, kind="SubmitJob", rows=rows)


def changes(directory: Path, after: int = 0) -> list[int]:
    return [line.change for line in read_ledger(directory, after=after)]


def test_lines_read_back_as_they_were_written(tmp_path: Path) -> None:
    Ledger(tmp_path, no_probe).append([entry(1), entry(2)])

    first, second = read_ledger(tmp_path)

    assert (first.v, first.change, first.at, first.kind) == (
        1,
        1,
        "2026-03-01T12:00:00.000000Z",
        "SubmitJob",
    )
    assert first.rows[0].table == "jobs"
    assert first.rows[0].row == {"id": "job-1", "summary": None, "priority": 3}
    assert second.change == 2
    (file,) = tmp_path.iterdir()
    assert (file.name, file.stat().st_mode & 0o777) == ("2026-03.jsonl", 0o600)


def test_another_appender_is_noticed(tmp_path: Path) -> None:
    one, other = Ledger(tmp_path, no_probe), Ledger(tmp_path, no_probe)
    one.append([entry(1)])
    other.append([entry(2)])

    assert one.last_change() == 2
    one.append([entry(3)])

    assert changes(tmp_path) == [1, 2, 3]


def test_another_appender_that_began_a_new_month_is_noticed(tmp_path: Path) -> None:
    """At the turn of a month, the one who slept must neither take changes for missing nor write them again."""
    april = "2026-04-01T00:00:00.000000Z"
    one, other = Ledger(tmp_path, no_probe), Ledger(tmp_path, no_probe)
    one.append([entry(1)])
    other.append([entry(2, april)])

    assert one.last_change() == 2
    one.append([entry(3, april)])

    assert changes(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("kept", [0, 1, 40, -2])
def test_fragment_of_a_killed_appender_is_cut_and_written_again(tmp_path: Path, kept: int) -> None:
    Ledger(tmp_path, no_probe).append([entry(1), entry(2)])
    file = tmp_path / "2026-03.jsonl"
    whole = file.read_bytes()
    with file.open("ab") as appending:
        appending.write(entry(3).line()[:kept])

    assert changes(tmp_path) == [1, 2]
    ledger = Ledger(tmp_path, no_probe)
    assert ledger.last_change() == 2
    ledger.append([entry(3)])

    assert file.read_bytes() == whole + entry(3).line()


def test_fragment_alone_in_a_new_month_is_cut(tmp_path: Path) -> None:
    april = "2026-04-01T00:00:00.000000Z"
    Ledger(tmp_path, no_probe).append([entry(1)])
    (tmp_path / "2026-04.jsonl").write_bytes(entry(2, april).line()[:9])

    Ledger(tmp_path, no_probe).append([entry(2, april)])

    assert changes(tmp_path) == [1, 2]
    assert (tmp_path / "2026-04.jsonl").read_bytes() == entry(2, april).line()


def test_line_longer_than_one_look_is_found(tmp_path: Path) -> None:
    long = f'[{{"table":"job_texts","row":{{"prompt":"{"x" * 300_000}"}}}}]'
    Ledger(tmp_path, no_probe).append([entry(1), entry(2, rows=long)])

    assert Ledger(tmp_path, no_probe).last_change() == 2


def test_months_have_their_own_files_and_the_clock_may_go_back(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, no_probe)
    months = ["2026-03-31T23:59:59.999999Z", "2026-04-01T00:00:00.000000Z"]
    ledger.append([entry(1, months[0]), entry(2, months[1])])
    ledger.append([entry(3, months[0])])

    names = {path.name: len(path.read_bytes().splitlines()) for path in tmp_path.iterdir()}

    assert names == {"2026-03.jsonl": 1, "2026-04.jsonl": 2}
    assert changes(tmp_path) == [1, 2, 3]
    assert changes(tmp_path, after=1) == [2, 3]
    assert changes(tmp_path, after=3) == []


def test_files_before_the_wanted_change_are_not_read(tmp_path: Path) -> None:
    Ledger(tmp_path, no_probe).append([entry(1), entry(2, "2026-04-01T00:00:00.000000Z")])
    (tmp_path / "2026-03.jsonl").write_bytes(b"damaged\n")

    assert changes(tmp_path, after=1) == [2]


def test_reading_on_from_anywhere_in_a_long_file_misses_nothing(tmp_path: Path) -> None:
    Ledger(tmp_path, no_probe).append([entry(change) for change in range(1, 3001)])

    for after in (0, 1, 777, 1500, 2998, 2999, 3000, 9000):
        assert changes(tmp_path, after=after) == list(range(after + 1, 3001))


def test_damage_far_before_what_is_new_is_still_found_when_it_is_met(tmp_path: Path) -> None:
    Ledger(tmp_path, no_probe).append([entry(change) for change in range(1, 3001)])
    path = tmp_path / "2026-03.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2_000:] = [b"x" * len(line.rstrip()) + b"\n" for line in lines[2_000:]]
    path.write_bytes(b"".join(lines))

    with pytest.raises(StateFileError, match=r"2026-03\.jsonl:2001"):
        changes(tmp_path, after=2_500)


def test_gap_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, no_probe)
    ledger.append([entry(1)])

    with pytest.raises(StateFileError, match="change 3 cannot follow change 1"):
        ledger.append([entry(3)])

    assert changes(tmp_path) == [1]


def test_missing_line_is_reported_with_its_place(tmp_path: Path) -> None:
    Ledger(tmp_path, no_probe).append([entry(1), entry(2), entry(3)])
    file = tmp_path / "2026-03.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[2])

    with pytest.raises(StateFileError, match=r"2026-03\.jsonl:2: change 3, not 2"):
        changes(tmp_path)


@pytest.mark.parametrize("line", [b"{}\n", b"\n", b"\xff\xfe\n", b'{"v":0,"change":2}\n'])
def test_damaged_line_is_reported_and_kept(tmp_path: Path, line: bytes) -> None:
    Ledger(tmp_path, no_probe).append([entry(1)])
    file = tmp_path / "2026-03.jsonl"
    damaged = file.read_bytes() + line
    file.write_bytes(damaged)

    with pytest.raises(StateFileError) as caught:
        changes(tmp_path)
    assert caught.value.code == "LEDGER_DAMAGED"
    with pytest.raises(StateFileError):
        Ledger(tmp_path, no_probe).append([entry(2)])
    assert file.read_bytes() == damaged


@pytest.mark.parametrize("line", [b'{"v":9,"change":2}\n', b'{"v":2,"at":7}\n'])
def test_line_of_a_newer_nightherd_is_refused_and_no_damage(tmp_path: Path, line: bytes) -> None:
    Ledger(tmp_path, no_probe).append([entry(1)])
    file = tmp_path / "2026-03.jsonl"
    newer = file.read_bytes() + line
    file.write_bytes(newer)

    with pytest.raises(SchemaVersionError, match="newer nightherd"):
        changes(tmp_path)
    with pytest.raises(SchemaVersionError, match="newer nightherd"):
        Ledger(tmp_path, no_probe).append([entry(2)])
    assert file.read_bytes() == newer


def test_directory_that_is_gone_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="Not found") as caught:
        Ledger(tmp_path / "nowhere", no_probe).append([entry(1)])

    assert caught.value.code == "ENOENT"
    assert Ledger(tmp_path / "nowhere", no_probe).last_change() == 0
