"""Live text as a file: written together, gone when it is recorded, and followed from another process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nightherd.journal.files import JournalFiles
from nightherd.journal.live_text import FIRST_S, INTERVAL_S
from nightherd.model.ids import JobId
from nightherd.model.journal.live_text import TextDelta
from nightherd.testing.determinism import FakeClock

JOB = JobId("job-2025-03-04-txt123")


class Timers:
    """A `call_later` whose time comes when the test says so."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.delays: list[float] = []

    def __call__(self, delay: float, callback: Callable[[], None], /) -> _Timer:
        self.delays.append(delay)
        self.due.append(callback)
        return _Timer(self, callback)

    def ring(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


class _Timer:
    def __init__(self, timers: Timers, callback: Callable[[], None]) -> None:
        self._timers, self._callback = timers, callback

    def cancel(self) -> None:
        self._timers.due.remove(self._callback)


@pytest.fixture
def journals(tmp_path: Path) -> JournalFiles:
    (tmp_path / "jobs").mkdir()
    return JournalFiles(tmp_path / "jobs", tmp_path / "blobs", clock=FakeClock())


def delta(text: str, at: int = 0, *, part: int = 1, epoch: int = 1) -> TextDelta:
    return TextDelta(epoch=epoch, after=3, part=part, at=at, text=text)


def texts(deltas: list[TextDelta]) -> list[tuple[int, int, str]]:
    return [(one.part, one.at, one.text) for one in deltas]


def test_a_quick_answer_makes_no_file(journals: JournalFiles) -> None:
    timers = Timers()
    live = journals.live_text(JOB, timers)

    live.append(delta("hello"))
    live.clear()

    assert timers.due == []
    assert not journals.text_path(JOB).exists()


def test_pieces_that_come_together_are_one_line_for_the_owner_alone(journals: JournalFiles) -> None:
    timers = Timers()
    live = journals.live_text(JOB, timers)
    live.append(delta("he"))
    live.append(delta("llo", 2))

    assert len(timers.due) == 1
    timers.ring()

    path = journals.text_path(JOB)
    assert path.read_bytes().count(b"\n") == 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert texts(journals.leftover_text(JOB)) == [(1, 0, "hello")]
    assert list(journals.job_ids()) == []


def test_the_first_piece_of_an_answer_is_written_soon_and_the_others_less_often(
    journals: JournalFiles,
) -> None:
    timers = Timers()
    live = journals.live_text(JOB, timers)
    live.append(delta("one "))
    timers.ring()
    live.append(delta("two", 4))
    timers.ring()
    live.clear()
    live.append(delta("another answer", part=2))

    assert timers.delays == [FIRST_S, INTERVAL_S, FIRST_S]


def test_a_follower_gets_each_piece_once_across_answers_and_executions(
    journals: JournalFiles,
) -> None:
    timers, follower = Timers(), journals.text_follower(JOB)
    live = journals.live_text(JOB, timers)
    assert follower.poll() == []

    live.append(delta("one "))
    timers.ring()
    assert texts(follower.poll()) == [(1, 0, "one ")]
    live.append(delta("two", 4))
    timers.ring()
    assert texts(follower.poll()) == [(1, 4, "two")]

    # The first part is recorded while the second comes in; the file is written anew and longer.
    live.clear()
    live.append(delta("one more text that is long enough", part=2))
    live.append(delta("!", 33, part=2))
    timers.ring()
    assert texts(follower.poll()) == [(2, 0, "one more text that is long enough!")]
    live.clear()
    live.append(delta("one more text that is long enough! And on", part=2))
    timers.ring()
    assert texts(follower.poll()) == [(2, 34, " And on")]

    live.close()
    assert not journals.text_path(JOB).exists()
    assert follower.poll() == []
    again = journals.live_text(JOB, timers)
    again.append(delta("anew", epoch=2))
    timers.ring()
    assert texts(follower.poll()) == [(1, 0, "anew")]
    again.close()
    follower.close()


def test_closing_leaves_the_file_of_another_execution(journals: JournalFiles) -> None:
    timers = Timers()
    old, new = journals.live_text(JOB, timers), journals.live_text(JOB, timers)
    old.append(delta("old"))
    timers.ring()
    journals.remove_text(JOB)
    new.append(delta("new", epoch=2))
    timers.ring()

    old.close()

    assert texts(journals.leftover_text(JOB)) == [(1, 0, "new")]
    new.close()


def test_a_torn_or_foreign_file_gives_what_can_be_read(journals: JournalFiles) -> None:
    path = journals.text_path(JOB)
    path.write_bytes(b'{"epoch":1,"after":3,"part":1,"at":0,"text":"he"}\n{"epoch":1,"af')

    assert texts(journals.leftover_text(JOB)) == [(1, 0, "he")]
    assert texts(journals.text_follower(JOB).poll()) == [(1, 0, "he")]

    path.write_bytes(b"no json\n")
    assert journals.leftover_text(JOB) == []
    path.unlink()
    os.mkfifo(path)
    assert journals.leftover_text(JOB) == []


def test_a_disk_that_takes_nothing_fails_nothing(tmp_path: Path) -> None:
    journals = JournalFiles(tmp_path / "gone", tmp_path / "blobs", clock=FakeClock())
    timers = Timers()
    live = journals.live_text(JOB, timers)

    live.append(delta("hello"))
    timers.ring()
    live.clear()
    live.close()

    assert journals.leftover_text(JOB) == []
