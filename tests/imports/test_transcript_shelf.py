"""The shelf and finished journals: what stands under a name is whole and private, what failed left nothing."""

from __future__ import annotations

import io
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightherd.cli.screen.progress import Bar
from nightherd.errors import AtomicWriteError, InvalidValueError, JournalError
from nightherd.files.atomic import TEMP_NAME
from nightherd.imports.shelf import TranscriptCopies
from nightherd.journal.files import JournalFiles
from nightherd.journal.finished import FinishedJournalFiles
from nightherd.model.ids import JobId
from nightherd.model.journal.event import AssistantEvent, Event
from nightherd.testing.determinism import FakeClock

JOB = JobId("job-2026-01-02-abc123")


@pytest.fixture
def shelf(tmp_path: Path) -> TranscriptCopies:
    return TranscriptCopies(tmp_path / "shelf")


def put(shelf: TranscriptCopies, name: str, *blocks: bytes) -> None:
    with shelf.draft(name) as draft:
        for block in blocks:
            draft.write(block)
        draft.keep()
    shelf.sync()


def test_copy_is_private_in_private_directories(shelf: TranscriptCopies, tmp_path: Path) -> None:
    put(shelf, "a/b/c.jsonl", b"one", b"two")

    path = tmp_path / "shelf/a/b/c.jsonl"
    assert path.read_bytes() == b"onetwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(above.stat().st_mode) for above in list(path.parents)[:3]] == [0o700] * 3


def test_draft_that_is_not_kept_leaves_nothing(shelf: TranscriptCopies, tmp_path: Path) -> None:
    put(shelf, "a.jsonl", b"old")

    with shelf.draft("a.jsonl") as draft:
        draft.write(b"new")
    with pytest.raises(TypeError), shelf.draft("a.jsonl") as draft:
        draft.write("not bytes")  # type: ignore[arg-type]  # the point is that it raises

    assert [path.name for path in (tmp_path / "shelf").iterdir()] == ["a.jsonl"]
    assert (tmp_path / "shelf/a.jsonl").read_bytes() == b"old"


def test_kept_copy_gets_its_name_when_the_shelf_is_synced(
    shelf: TranscriptCopies, tmp_path: Path
) -> None:
    with shelf.draft("a.jsonl") as draft:
        draft.write(b"text")
        draft.keep()

    before = (tmp_path / "shelf/a.jsonl").exists()
    shelf.sync()

    assert not before
    assert [path.name for path in (tmp_path / "shelf").iterdir()] == ["a.jsonl"]


def test_closed_shelf_leaves_nothing_that_was_never_synced(
    shelf: TranscriptCopies, tmp_path: Path
) -> None:
    with shelf.draft("a.jsonl") as draft:
        draft.write(b"text")
        draft.keep()

    shelf.close()

    assert list((tmp_path / "shelf").iterdir()) == []


def test_copy_that_cannot_get_its_name_is_an_error_and_costs_no_other(
    shelf: TranscriptCopies, tmp_path: Path
) -> None:
    names = ["a.jsonl", *(f"b{number:02}.jsonl" for number in range(40))]
    for name in names:
        with shelf.draft(name) as draft:
            draft.write(b"text")
            draft.keep()
    (tmp_path / "shelf/a.jsonl").mkdir()

    with pytest.raises(AtomicWriteError):
        shelf.sync()

    assert sorted(path.name for path in (tmp_path / "shelf").iterdir()) == names


def test_unfinished_draft_has_a_name_that_is_known_as_temporary(
    shelf: TranscriptCopies, tmp_path: Path
) -> None:
    with shelf.draft("a.jsonl") as draft:
        draft.write(b"half")

        (path,) = (tmp_path / "shelf").iterdir()

    assert TEMP_NAME.fullmatch(path.name)


@pytest.mark.parametrize(
    ("blocks", "extends"),
    [
        ([b"old text"], True),
        ([b"old", b" text and more"], True),
        ([b"o", b"ld text"], True),
        ([b"old tex"], False),
        ([b"new text"], False),
        ([b"old", b" txet"], False),
        ([], False),
    ],
)
def test_draft_knows_whether_it_extends_what_is_there(
    blocks: list[bytes], extends: bool, shelf: TranscriptCopies
) -> None:
    put(shelf, "a.jsonl", b"old text")

    with shelf.draft("a.jsonl") as draft:
        for block in blocks:
            draft.write(block)

        assert draft.extends_old is extends
        assert draft.is_same is (b"".join(blocks) == b"old text")


def test_copy_is_current_only_once_it_is_marked(shelf: TranscriptCopies) -> None:
    put(shelf, "a.jsonl", b"text")
    at = 1_700_000_000_123_456_789

    before = shelf.is_current("a.jsonl", size=4, modified_ns=at)
    shelf.mark("a.jsonl", modified_ns=at)

    assert not before
    assert shelf.is_current("a.jsonl", size=4, modified_ns=at)
    assert not shelf.is_current("a.jsonl", size=5, modified_ns=at)
    assert not shelf.is_current("b.jsonl", size=4, modified_ns=at)


def test_read_only_shelf_compares_and_writes_nothing(tmp_path: Path) -> None:
    shelf = TranscriptCopies(tmp_path / "shelf", is_read_only=True)

    put(shelf, "a.jsonl", b"text")

    assert not (tmp_path / "shelf").exists()


def test_name_that_leads_out_of_the_shelf_is_refused(shelf: TranscriptCopies) -> None:
    with pytest.raises(InvalidValueError), shelf.draft("../a.jsonl"):
        pass


def test_what_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "shelf").write_text("a file in the directory's place")

    with pytest.raises(AtomicWriteError), TranscriptCopies(tmp_path / "shelf").draft("a/b.jsonl"):
        pass


def event(seq: int) -> AssistantEvent:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return AssistantEvent(v=1, seq=seq, epoch=1, timestamp=at, content=f"event {seq}")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    return tmp_path / "jobs"


def read(jobs: Path) -> list[Event]:
    files = JournalFiles(jobs, jobs.parent / "blobs", clock=FakeClock())
    return list(files.read(JOB))


def test_finished_journal_is_exactly_its_events(jobs: Path) -> None:
    journals = FinishedJournalFiles(jobs, jobs.parent / "blobs")

    journals.write(JOB, [event(1), event(2), event(3)])
    journals.write(JOB, [event(1), event(2)])
    journals.sync()

    assert read(jobs) == [event(1), event(2)]
    assert [path.name for path in jobs.iterdir()] == [f"{JOB}.jsonl"]
    assert stat.S_IMODE((jobs / f"{JOB}.jsonl").stat().st_mode) == 0o600


def test_events_that_fail_half_way_leave_the_journal_as_it_was(jobs: Path) -> None:
    journals = FinishedJournalFiles(jobs, jobs.parent / "blobs")
    journals.write(JOB, [event(1)])

    def failing() -> Iterator[Event]:
        yield event(1)
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        journals.write(JOB, failing())

    assert read(jobs) == [event(1)]
    assert len(list(jobs.iterdir())) == 1


def test_journal_that_cannot_be_written_is_a_journal_error(tmp_path: Path) -> None:
    journals = FinishedJournalFiles(tmp_path / "nowhere", tmp_path / "blobs")

    with pytest.raises(JournalError, match="cannot write the journal"):
        journals.write(JOB, [event(1)])


def test_bar_counts_and_takes_names_as_they_are() -> None:
    screen = io.StringIO()

    with Bar(screen, 2, is_colored=False) as bar:
        bar.update("[bold]first[/bold]")
        bar.update("second")

    assert "2/2" in screen.getvalue()
