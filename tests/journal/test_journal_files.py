"""Journals on disk: permissions, blobs, durability, and files as they are found in the world."""

from __future__ import annotations

import gc
import hashlib
import os
import stat
import tracemalloc
from pathlib import Path

import pytest

from nightherd.errors import JournalError
from nightherd.journal.bodies import NOTE
from nightherd.journal.files import JournalFiles
from nightherd.journal.follow import Follower
from nightherd.model.agents.agent import Durability
from nightherd.model.journal.event import ToolResultEvent
from nightherd.testing.contracts.journal import JOB, LARGE, begin, execution_of, say, texts
from nightherd.testing.determinism import FakeClock


def journals_in(folder: Path, durability: Durability = Durability.CHECKPOINT) -> JournalFiles:
    return JournalFiles(folder, folder / "blobs", clock=FakeClock(), durability=durability)


def line(seq: int, text: str, *, epoch: int = 1) -> bytes:
    head = f'{{"type":"assistant","v":1,"seq":{seq},"epoch":{epoch},"content":'
    return f'{head}"{text}"}}\n'.encode()


def test_journal_and_blobs_are_for_their_owner_alone(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    begin(journals).append(say(LARGE))

    modes = {
        path.relative_to(tmp_path).parts[0]: stat.S_IMODE(path.stat().st_mode)
        for path in (journals.path(JOB), *(tmp_path / "blobs").iterdir())
    }

    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "blobs").stat().st_mode) == 0o700


def test_same_large_body_is_stored_once_under_its_hash(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    journal = begin(journals)

    for _ in range(3):
        journal.append(ToolResultEvent(result=LARGE))

    [blob] = (tmp_path / "blobs").iterdir()
    assert blob.name == hashlib.sha256(LARGE.encode()).hexdigest()
    assert blob.read_text() == LARGE
    assert journals.path(JOB).stat().st_size < 2_000
    light = journals.last(JOB, 1)[0]
    assert light.extra is not None
    assert light.extra[NOTE]["blobs"]["result"]["size"] == len(LARGE)


def test_body_of_64_kib_stays_in_its_line_and_more_does_not(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    journal = begin(journals)

    journal.append(say("x" * (64 * 1024 - 2)))  # the quotes count
    assert not (tmp_path / "blobs").exists()
    journal.append(say("x" * (64 * 1024 - 1)))

    assert len(list((tmp_path / "blobs").iterdir())) == 1
    assert [len(text or "") for text in texts(journals.read(JOB))] == [65_534, 65_535]


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda blob: blob.unlink(), "blob_missing"),
        (lambda blob: blob.write_text("else"), "blob_damaged"),
        (lambda blob: blob.write_text(LARGE.replace("a", "b")), "blob_damaged"),
    ],
)
def test_blob_that_is_not_what_its_name_says_is_an_error_not_a_body(
    tmp_path: Path, damage: object, code: str
) -> None:
    journals = journals_in(tmp_path)
    begin(journals).append(say(LARGE))
    [blob] = (tmp_path / "blobs").iterdir()
    assert callable(damage)
    damage(blob)

    with pytest.raises(JournalError) as caught:
        list(journals.read(JOB))

    assert caught.value.code == code
    assert len(list(journals.read(JOB, load_blobs=False))) == 1


def test_blob_name_that_leads_elsewhere_is_never_opened(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    (tmp_path / "secret").write_text("secret")
    note = '{"$journal":{"blobs":{"content":{"sha256":"../secret","size":6,"kind":"text"}}}}'
    journals.path(JOB).write_text(
        f'{{"type":"assistant","v":1,"seq":1,"epoch":1,"extra":{note}}}\n'
    )

    with pytest.raises(JournalError, match="not the name of a blob"):
        list(journals.read(JOB))


def test_journal_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    (tmp_path / "elsewhere").write_bytes(line(1, "x"))
    journals.path(JOB).symlink_to(tmp_path / "elsewhere")

    for attempt in (lambda: begin(journals), lambda: list(journals.read(JOB))):
        with pytest.raises(JournalError) as caught:
            attempt()
        assert caught.value.code == "ELOOP"


def test_missing_folder_is_an_error_that_names_the_journal(tmp_path: Path) -> None:
    journals = journals_in(tmp_path / "gone")

    with pytest.raises(JournalError, match="cannot open the journal") as caught:
        begin(journals)

    assert caught.value.code == "ENOENT"
    assert caught.value.path == str(journals.path(JOB))


@pytest.mark.parametrize(
    ("durability", "expected"),
    [
        (Durability.PROCESS, []),
        (Durability.CHECKPOINT, ["blob", "blobs", "journal", "jobs"]),
        (Durability.FSYNC, ["blob", "blobs", "journal", "jobs", "journal", "journal"]),
    ],
)
def test_durability_decides_what_is_synced_and_in_which_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Durability, expected: list[str]
) -> None:
    synced: list[str] = []
    journals = journals_in(tmp_path, durability)

    def note(descriptor: int) -> None:
        paths = {"jobs": tmp_path, "blobs": tmp_path / "blobs", "journal": journals.path(JOB)}
        file = os.fstat(descriptor).st_ino
        known = [name for name, path in paths.items() if path.stat().st_ino == file]
        synced.extend(known or ["blob"])

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "fdatasync", note, raising=False)
    journal = begin(journals)

    journal.append(say(LARGE))
    journal.append(say("two"))
    journal.sync()

    assert synced == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b"\xef\xbb\xbf" + line(1, "a") + line(2, "b"), ["a", "b"]),
        (line(1, "a").replace(b"\n", b"\r\n") + line(2, "b").replace(b"\n", b"\r\n"), ["a", "b"]),
        (line(1, "a\u2028b\u2029c\x7f"), ["a\u2028b\u2029c\x7f"]),
        (line(1, "a") + b"   \n\t\n" + line(2, "b"), ["a", "b"]),
    ],
    ids=["empty", "newlines", "bom", "crlf", "separators", "blank"],
)
def test_file_that_looks_different_but_is_sound_reads_and_goes_on(
    tmp_path: Path, data: bytes, expected: list[str]
) -> None:
    journals = journals_in(tmp_path)
    journals.path(JOB).write_bytes(data)

    assert texts(journals.read(JOB)) == expected
    assert texts(journals.last(JOB, 9)) == expected
    begin(journals, epoch=2).append(say("next"))

    assert texts(journals.read(JOB)) == [*expected, "next"]
    assert journals.examine(JOB).bad_lines == ()
    assert journals.path(JOB).read_bytes().startswith(data)


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"type":"assistant","v":1,"seq":2,"epoch":1,"content":"\xff"}\n',
        b"\x00" * 50 + b"\n",
        line(2, "lost")[:-9] + b"\n",
        b"} else {\n",
    ],
    ids=["not utf-8", "nul", "cut", "foreign"],
)
def test_damaged_line_in_the_middle_is_reported_where_it_is_and_kept(
    tmp_path: Path, damaged: bytes
) -> None:
    journals = journals_in(tmp_path)
    data = line(1, "one") + damaged + line(3, "three") + line(4, "four")
    journals.path(JOB).write_bytes(data)

    begin(journals, epoch=2).append(say("five"))

    assert texts(journals.read(JOB)) == ["one", "three", "four", "five"]
    assert texts(journals.last(JOB, 9)) == ["one", "three", "four", "five"]
    findings = journals.examine(JOB)
    [bad] = findings.bad_lines
    assert (bad.offset, bad.length, findings.missing) == (len(line(1, "one")), len(damaged), 1)
    assert journals.path(JOB).read_bytes().startswith(data)


def test_clock_that_goes_backwards_changes_no_order(tmp_path: Path) -> None:
    clock = FakeClock()
    journals = JournalFiles(tmp_path, tmp_path / "blobs", clock=clock)
    journal = begin(journals)
    first = journal.append(say("one"))
    assert first.timestamp is not None
    clock.advance(-2 * (first.timestamp - first.timestamp.replace(year=2025)))

    second = journal.append(say("two"))

    assert second.timestamp is not None
    assert second.timestamp < first.timestamp
    assert list(journals.read(JOB)) == [first, second]


def test_follower_finds_its_place_again_when_the_file_shrank_or_was_replaced(
    tmp_path: Path,
) -> None:
    journals = journals_in(tmp_path)
    path = journals.path(JOB)
    with journals.follower(JOB) as follower:
        assert follower.poll() == []
        path.write_bytes(line(1, "one") + line(2, "two"))
        assert texts(follower.poll()) == ["one", "two"]
        os.truncate(path, len(line(1, "one")))
        assert follower.poll() == []
        path.write_bytes(line(1, "one") + line(2, "two") + line(3, "three"))
        assert texts(follower.poll()) == ["three"]
        path.unlink()
        assert follower.poll() == []
        path.write_bytes(b"".join(line(number, str(number)) for number in range(1, 6)))
        assert texts(follower.poll()) == ["4", "5"]
        other = tmp_path / "other"
        other.write_bytes(b"".join(line(number, str(number)) for number in range(1, 7)))
        other.replace(path)
        assert texts(follower.poll()) == ["6"], "who asks once is told everything"


def test_follower_never_shows_half_a_line_or_half_a_character(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    data = line(1, "\N{SNOWMAN}\U0001f600") + line(2, "two")
    shown: list[tuple[int, str | None]] = []

    with Follower(path) as follower:
        for size in range(1, len(data) + 1):
            with path.open("ab") as file:
                file.write(data[size - 1 : size])
            shown.extend((size, text) for text in texts(follower.poll()))

    assert shown == [
        (len(line(1, "\N{SNOWMAN}\U0001f600")), "\N{SNOWMAN}\U0001f600"),
        (len(data), "two"),
    ]


def test_follower_that_could_not_load_a_blob_shows_the_event_once_it_can(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    journal = begin(journals)
    journal.append(say("one"))
    journal.append(say(LARGE))
    [blob] = (tmp_path / "blobs").iterdir()
    with journals.follower(JOB, load_blobs=True) as follower:
        blob.rename(tmp_path / "away")
        with pytest.raises(JournalError):
            follower.poll()

        (tmp_path / "away").rename(blob)

        assert texts(follower.poll()) == ["one", LARGE]


def test_long_journal_is_entered_anywhere_without_reading_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = journals_in(tmp_path)
    journal = begin(journals)
    for _ in range(2_000):
        journal.append(say("x" * 5_000))
    read = 0
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        nonlocal read
        data = pread(descriptor, size, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)

    assert next(journals.read(JOB, after=1_321)).seq == 1_322
    assert [event.seq for event in journals.last(JOB, 3)] == [1_998, 1_999, 2_000]
    assert begin(journals, epoch=2).last_seq == 2_000
    assert read < journals.path(JOB).stat().st_size / 3


def test_reading_a_journal_takes_the_memory_of_a_few_blocks(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    journal = begin(journals)
    for _ in range(2_000):
        journal.append(say("x" * 5_000))

    tracemalloc.start()
    try:
        count = sum(1 for _ in journals.read(JOB))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert count == 2_000
    assert peak < journals.path(JOB).stat().st_size / 20


def test_every_probe_point_is_named_after_the_journal(tmp_path: Path) -> None:
    points: list[str] = []
    journals = JournalFiles(tmp_path, tmp_path / "blobs", clock=FakeClock(), probe=points.append)
    journals.path(JOB).write_bytes(b"half")

    journal = begin(journals)
    journal.append(say(LARGE))
    journal.sync()

    assert points == [
        "journal.before_mend",
        "journal.before_write",
        "journal.after_write",
        "journal.after_mend",
        "journal.after_blank",
        "journal.before_blob",
        "journal.after_blob",
        "journal.before_write",
        "journal.after_write",
        "journal.before_sync",
        "journal.after_sync",
    ]


def test_short_writes_of_the_system_make_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = journals_in(tmp_path)
    journal = begin(journals)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))

    written = [journal.append(say(str(number))) for number in range(3)]

    monkeypatch.undo()
    assert list(journals.read(JOB)) == written
    assert journals.examine(JOB).bad_lines == ()


def test_journal_that_nobody_holds_any_more_gives_its_handle_back(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    held = journals.open(JOB, epoch=1, execution=execution_of(1))
    handle = held._fd
    os.fstat(handle)

    del held
    gc.collect()

    assert not is_open_at(handle, journals.path(JOB))


def is_open_at(handle: int, path: Path) -> bool:
    """Whether the handle is there and still that file's: another thread may have got the number since."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False
