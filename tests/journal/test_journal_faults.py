"""What goes wrong outside: each fault has its error, and leaves nothing half done."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nightherd.errors import JournalError, NightherdError
from nightherd.journal.blobs import Blobs
from nightherd.journal.codec import encode_line
from nightherd.journal.files import JournalFiles
from nightherd.model.journal.event import AssistantEvent, SystemEvent, ToolResultEvent
from nightherd.testing.contracts.journal import JOB, LARGE, begin, say, texts
from nightherd.testing.determinism import FakeClock


@pytest.fixture
def journals(tmp_path: Path) -> JournalFiles:
    return JournalFiles(tmp_path, tmp_path / "blobs", clock=FakeClock())


def refuse(*_: object) -> Any:
    raise OSError(5, "Input/output error")


def test_folder_in_place_of_a_journal_is_an_error_for_readers_and_writers(
    journals: JournalFiles,
) -> None:
    journals.path(JOB).mkdir()
    attempts: list[Callable[[], object]] = [
        lambda: begin(journals),
        lambda: list(journals.read(JOB)),
        lambda: journals.last(JOB, 3),
        lambda: journals.examine(JOB),
        lambda: next(journals.follow(JOB, wait=lambda timeout, /: True)),
    ]

    for attempt in attempts:
        with pytest.raises(JournalError) as caught:
            attempt()
        assert caught.value.code == "EISDIR"
        assert caught.value.path == str(journals.path(JOB))


def test_file_in_place_of_the_blob_folder_fails_the_append_and_not_the_journal(
    journals: JournalFiles, tmp_path: Path
) -> None:
    journal = begin(journals)
    (tmp_path / "blobs").write_text("in the way")

    with pytest.raises(JournalError, match="blob") as caught:
        journal.append(say(LARGE))
    journal.append(say("after"))

    assert caught.value.code == "EEXIST"
    assert texts(journals.read(JOB)) == ["after"]
    assert journals.examine(JOB).bad_lines == ()


def test_blob_that_cannot_be_finished_leaves_no_file_behind(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)

    def failing() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(JournalError, match="No space left") as caught:
        blobs.put(failing())
    with pytest.raises(TypeError):
        blobs.put([b"half", "no bytes"])  # type: ignore[list-item]  # a caller's mistake, on purpose

    assert caught.value.code == "ENOSPC"
    assert list(tmp_path.iterdir()) == []


def test_disk_that_does_not_sync_is_an_error_at_the_sync(
    journals: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begin(journals)
    journal.append(say("small"))
    for call in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, call, refuse, raising=False)

    with pytest.raises(JournalError, match="cannot sync") as caught:
        journal.sync()
    assert caught.value.code == "EIO"
    # A body that may not be on the disk is not named by any line.
    with pytest.raises(JournalError, match="cannot sync the blob"):
        journal.append(say(LARGE))
    assert [event.seq for event in journals.read(JOB)] == [1]


@pytest.mark.parametrize(
    ("when", "data", "verb"),
    [
        ("open", b"line\n" * 9, "read"),
        ("open", b"no newline", "read"),
        ("append", b"", "read"),
    ],
)
def test_disk_that_does_not_read_is_an_error_that_says_so(
    journals: JournalFiles, monkeypatch: pytest.MonkeyPatch, when: str, data: bytes, verb: str
) -> None:
    journals.path(JOB).write_bytes(data)
    journal = begin(journals) if when == "append" else None
    with journals.path(JOB).open("ab") as file:
        file.write(b"another writer's\n")
    monkeypatch.setattr(os, "pread", refuse)

    with pytest.raises(JournalError, match=f"cannot {verb} the journal") as caught:
        begin(journals) if journal is None else journal.append(say("one"))

    assert caught.value.code == "EIO"


def test_repair_that_fails_is_done_by_the_next_to_open(
    journals: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(journals).append(say("one"))
    with journals.path(JOB).open("ab") as file:
        file.write(b'{"torn')
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        with pytest.raises(JournalError, match="cannot repair"):
            begin(journals, epoch=2)

    begin(journals, epoch=3).append(say("two"))

    assert texts(journals.read(JOB)) == ["one", "two"]
    findings = journals.examine(JOB)
    assert (findings.torn, findings.bad_lines) == (1, ())


def test_append_that_failed_half_way_is_mended_by_the_next(
    journals: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begin(journals)
    journal.append(say("one"))
    write, left = os.write, [20]

    def full(descriptor: int, data: bytes) -> int:
        if left[0] == 0:
            raise OSError(28, "No space left on device")
        taken = write(descriptor, data[: left[0]])
        left[0] -= taken
        return taken

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for _ in range(2):  # the second time not even the repair finds room
            with pytest.raises(JournalError, match="No space left") as caught:
                journal.append(say("two"))
            assert caught.value.code == "ENOSPC"
    written = journal.append(say("two"))

    assert texts(journals.read(JOB)) == ["one", "two"]
    assert written.seq == 3
    assert isinstance(list(journals.read(JOB))[1], SystemEvent)
    assert journals.examine(JOB).bad_lines == ()


def test_append_that_failed_before_its_newline_is_history_once_there_is_room(
    journals: JournalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line was whole but for its end: nobody was told, but it is no garbage either."""
    journal = begin(journals)
    write = os.write

    def all_but_the_newline(descriptor: int, data: bytes) -> int:
        if data == b"\n":
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:-1])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", all_but_the_newline)
        with pytest.raises(JournalError):
            journal.append(say("one"))
    journal.append(say("two"))

    assert texts(journals.read(JOB)) == ["one", "two"]


def test_fragment_longer_than_any_line_is_cut_without_being_read_whole(
    journals: JournalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("codec", "lines", "place", "writer"):
        monkeypatch.setattr(f"nightherd.journal.{module}.LINE_LIMIT", 100_000)
    begin(journals).append(say("one"))
    with journals.path(JOB).open("ab") as file:
        file.write(b"z" * 400_000)
    assert texts(journals.read(JOB)) == ["one"]

    begin(journals, epoch=2).append(say("two"))

    assert texts(journals.read(JOB)) == ["one", "two"]
    [blob] = (tmp_path / "blobs").iterdir()
    assert blob.stat().st_size == 400_000
    with journals.follower(JOB) as follower:
        assert texts(follower.poll()) == ["one"]
        assert texts(follower.poll()) == ["two"]


def test_note_that_makes_no_sense_is_an_error_that_names_the_event(
    journals: JournalFiles,
) -> None:
    line = '{"type":"assistant","v":1,"seq":1,"epoch":1,"extra":{"$journal":{"blobs":3}}}\n'
    journals.path(JOB).write_text(line)

    with pytest.raises(JournalError, match="event 1") as caught:
        list(journals.read(JOB))

    assert caught.value.code == "note"


def test_event_nested_without_end_is_refused(journals: JournalFiles) -> None:
    nested: list[Any] = []
    nested.append(nested)
    journal = begin(journals)

    for event in (AssistantEvent(extra={"deep": nested}), ToolResultEvent(result=nested)):
        with pytest.raises(NightherdError, match="nested too deeply"):
            journal.append(event)
        with pytest.raises(JournalError, match="nested too deeply"):
            encode_line(event)

    assert journal.append(say("after")).seq == 1
