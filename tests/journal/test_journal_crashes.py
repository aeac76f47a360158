"""Writers killed, frozen and starved at every point: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from journal.journal_processes import Orders, Processes, acknowledged, journals_in, text_of
from nightherd.errors import JournalError
from nightherd.model.journal.event import AssistantEvent, Event, SystemEvent
from nightherd.testing.contracts.journal import JOB, begin, say, texts
from nightherd.testing.fork_server import ForkServer

POINTS = (
    "journal.before_write",
    "journal.after_write",
    "journal.before_blob",
    "journal.after_blob",
    "journal.before_mend",
    "journal.after_mend",
    "journal.after_blank",
    "journal.before_sync",
    "journal.after_sync",
)
FRAGMENT = b'{"type":"assistant","v":1,"seq":1,"epoch":1,"content":"cut o'
WRITE_POINTS = POINTS[:2]
TIMES = {point: range(5) if point in WRITE_POINTS else range(1) for point in POINTS}
MANY = 20
LIVES = 3
PADDINGS = (0, 5_000, 20_000, 200_000)
PLACES = [(point, time) for point in POINTS for time in TIMES[point]]


@pytest.fixture(scope="module")
def processes(fork_server: ForkServer) -> Processes:
    return Processes(fork_server)


def check_history(folder: Path, *epochs: int) -> list[Event]:
    """Gapless, undamaged, and with all that the writers of these epochs were told is written."""
    journals = journals_in(folder)
    events = list(journals.read(JOB))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    known = {event.seq: text_of(event) for event in events if not isinstance(event, SystemEvent)}
    marks = [mark for mark in known.values() if mark is not None]
    assert len(marks) == len(set(marks))
    for epoch in epochs:
        for line in acknowledged(folder, epoch):
            if line[0].isdigit():
                seq, text = line.split()
                assert known[int(seq)] == text
    assert journals.last(JOB, len(events), load_blobs=True) == events
    findings = journals.examine(JOB)
    assert (findings.bad_lines, findings.missing) == ((), 0)
    return events


@pytest.mark.parametrize(("point", "time"), PLACES)
@pytest.mark.parametrize("padding", PADDINGS)
def test_writer_killed_at_any_point_loses_nothing_it_was_told_is_written(
    processes: Processes, tmp_path: Path, point: str, time: int, padding: int
) -> None:
    journals = journals_in(tmp_path)
    journals.path(JOB).write_bytes(FRAGMENT)
    orders = Orders(folder=str(tmp_path), at=point, pass_by=time, padding=padding, with_blob=True)

    assert processes.run(orders) == -signal.SIGKILL
    before = acknowledged(tmp_path, 1)
    owner = begin(journals, epoch=2)
    added = owner.append(say("next"))
    events = check_history(tmp_path, 1)

    assert events[-1] == added
    assert sum(1 for event in events if isinstance(event, SystemEvent)) == 1
    # At most one event beyond those acknowledged: the one whose line was in the file already.
    written = [event for event in events[:-1] if not isinstance(event, SystemEvent)]
    assert len(before) <= len(written) <= len(before) + 1


@pytest.mark.parametrize("many", range(1, MANY + 1))
def test_writer_killed_while_it_writes_large_lines_leaves_only_whole_ones(
    processes: Processes, tmp_path: Path, many: int
) -> None:
    for epoch in (1, 2):
        writer = processes.start(
            Orders(folder=str(tmp_path), epoch=epoch, count=100_000, padding=300_000)
        )
        while len(acknowledged(tmp_path, epoch)) < many:
            os.sched_yield()
        writer.send(signal.SIGKILL)
        assert writer.wait().status == -signal.SIGKILL

    added = begin(journals_in(tmp_path), epoch=3).append(say("next"))
    events = check_history(tmp_path, 1, 2)

    assert events[-1] == added
    assert len(events) > 2 * many


@pytest.mark.parametrize(("point", "time"), PLACES)
def test_writer_frozen_at_any_point_is_unheard_after_another_took_over(
    processes: Processes, tmp_path: Path, point: str, time: int
) -> None:
    journals = journals_in(tmp_path)
    journals.path(JOB).write_bytes(FRAGMENT)
    orders = Orders(
        folder=str(tmp_path), at=point, pass_by=time, with_blob=True, signal=signal.SIGSTOP
    )
    zombie = processes.start(orders)
    zombie.wait_until_stopped()

    owner = begin(journals, epoch=2)
    mine = [owner.append(say("one"))]
    zombie.send(signal.SIGCONT)
    assert zombie.wait().status == 0
    mine.append(owner.append(say("two")))
    events = check_history(tmp_path, 1)

    assert [event for event in events if event.epoch == 2 and text_of_owner(event)] == mine
    first = events.index(mine[0])
    assert all(event.epoch == 2 for event in events[first:])
    told = acknowledged(tmp_path, 1)
    still_writing = point not in ("journal.before_sync", "journal.after_sync")
    assert ("FencedError" in told) == (still_writing and (point, time) != (WRITE_POINTS[1], 4))


def text_of_owner(event: Event) -> str | None:
    return event.content if isinstance(event, AssistantEvent) else None


def test_writer_without_room_says_so_and_goes_on_when_there_is_some(
    processes: Processes, tmp_path: Path
) -> None:
    # Room for the first line and a part of the second: the system takes what fits, then refuses.
    orders = Orders(folder=str(tmp_path), padding=1_000, room=2_000)

    assert processes.run(orders) == 0

    assert acknowledged(tmp_path, 1) == ["1 1:0", "JournalError", "3 1:2", "4 1:3"]
    events = check_history(tmp_path, 1)
    assert [text_of(event) for event in events] == ["1:0", None, "1:2", "1:3"]
    assert journals_in(tmp_path).examine(JOB).torn == 1


def test_following_goes_on_from_one_process_to_the_next(
    processes: Processes, tmp_path: Path
) -> None:
    lives = [
        Orders(folder=str(tmp_path), epoch=epoch, at="journal.before_write", pass_by=3)
        for epoch in range(1, LIVES + 1)
    ]

    def wait(timeout: float, /) -> bool:
        if not lives:
            return True
        assert processes.run(lives.pop(0)) == -signal.SIGKILL
        return False

    followed = list(journals_in(tmp_path).follow(JOB, wait=wait))

    assert followed == check_history(tmp_path, 1, 2, 3)
    assert texts(followed) == [f"{epoch}:{number}" for epoch in (1, 2, 3) for number in range(3)]


def test_follower_of_a_busy_writer_misses_and_doubles_nothing(
    processes: Processes, tmp_path: Path
) -> None:
    count = 400
    writer = processes.start(Orders(folder=str(tmp_path), count=count, padding=3_000))
    follower = journals_in(tmp_path).follower(JOB)
    seen: list[Event] = []

    with follower:
        while len(seen) < count:
            seen.extend(follower.poll())

    assert writer.wait().status == 0
    assert [event.seq for event in seen] == list(range(1, count + 1))
    assert follower.findings().bad_lines == ()


def test_journal_deleted_under_its_writer_is_reported_at_the_next_sync(tmp_path: Path) -> None:
    journals = journals_in(tmp_path)
    journal = begin(journals)
    journal.append(say("one"))
    journals.path(JOB).unlink()

    with pytest.raises(JournalError, match="deleted") as caught:
        journal.sync()
    assert caught.value.code == "ENOENT"
