"""Any number of writers on one file, and whatever they leave when they die: readers see what was acknowledged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.errors import FencedError
from nightherd.journal.codec import encode_line
from nightherd.journal.fence import Fence, find_anchor
from nightherd.journal.files import JournalFiles
from nightherd.journal.lines import admit
from nightherd.journal.writer import JournalFile
from nightherd.model.journal.event import AssistantEvent, Event, SystemEvent, describe, payload_of
from nightherd.model.journal.system import SystemSubtype, TornTail
from nightherd.ports import BadLine
from nightherd.testing.contracts.journal import JOB, begin, say, texts
from nightherd.testing.determinism import FakeClock

BLOCK_USERS = ("lines", "place", "writer")


@pytest.fixture
def journals(tmp_path: Path) -> JournalFiles:
    return JournalFiles(tmp_path, tmp_path / "blobs", clock=FakeClock())


@contextmanager
def blocks_of(size_bytes: int) -> Iterator[None]:
    """Read in small blocks, so that a small journal has many."""
    with pytest.MonkeyPatch.context() as patch:
        for module in BLOCK_USERS:
            patch.setattr(f"nightherd.journal.{module}.BLOCK", size_bytes)
        yield


def said(events: Iterator[Event] | list[Event]) -> list[Event]:
    """The events that tests wrote, without those of repairs."""
    return [event for event in events if isinstance(event, AssistantEvent)]


def test_journal_cut_at_any_byte_of_its_last_two_records_keeps_every_complete_one(
    tmp_path: Path,
) -> None:
    whole = JournalFiles(tmp_path / "whole", tmp_path / "blobs", clock=FakeClock())
    (tmp_path / "whole").mkdir()
    journal = begin(whole)
    written = [journal.append(say(f"number {number} \u2028 \N{SNOWMAN}")) for number in range(4)]
    data = whole.path(JOB).read_bytes()
    ends = [place + 1 for place, byte in enumerate(data) if byte == 0x0A]

    for cut in range(ends[1], len(data) + 1):
        journals = JournalFiles(tmp_path, tmp_path / "blobs", clock=FakeClock())
        path = journals.path(JOB)
        path.write_bytes(data[:cut])
        # A record whose newline alone is missing is whole; nothing of it is lost.
        complete = sum(1 for end in ends if end - 1 <= cut)

        added = begin(journals, epoch=2).append(say("added"))

        assert said(journals.read(JOB)) == [*written[:complete], added], cut
        events = list(journals.read(JOB))
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        findings = journals.examine(JOB)
        assert (findings.bad_lines, findings.missing) == ((), 0)
        assert findings.torn == (0 if cut in ends or cut + 1 in ends else 1)
        path.unlink()


def test_torn_fragment_is_cut_and_kept(journals: JournalFiles) -> None:
    begin(journals).append(say("one"))
    path = journals.path(JOB)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"half": "\xff\x00')

    begin(journals, epoch=2).append(say("two"))

    kept = list(journals.read(JOB))[1]
    assert isinstance(kept, SystemEvent)
    assert payload_of(kept) == TornTail(offset=size, fragment=b'{"half": "\xff\x00')
    assert b"half" not in path.read_bytes()
    assert texts(journals.read(JOB)) == ["one", "two"]


def test_torn_fragment_of_megabytes_is_kept_in_a_blob(
    journals: JournalFiles, tmp_path: Path
) -> None:
    fragment = b'{"half": "' + b"x" * 3_000_000
    journals.path(JOB).write_bytes(fragment)

    begin(journals).append(say("one"))

    kept = next(journals.read(JOB))
    assert isinstance(kept, SystemEvent)
    assert kept.extra is not None
    blob = tmp_path / "blobs" / kept.extra["blob"]["sha256"]
    assert blob.read_bytes() == fragment
    payload = payload_of(kept)
    assert isinstance(payload, TornTail)
    assert payload.fragment == fragment[: 64 * 1024]
    assert begin(journals, epoch=2).last_seq == 2


def test_line_glued_to_a_fragment_of_another_writer_is_written_again(
    journals: JournalFiles,
) -> None:
    journal = begin(journals, epoch=2)
    journal.append(say("one"))
    size = journals.path(JOB).stat().st_size
    with journals.path(JOB).open("ab") as file:
        file.write(b'{"type":"assistant","v":1,"seq":2,"epoch":1,"con')  # killed in the middle

    second = journal.append(say("two"))
    third = journal.append(say("three"))

    assert (second.seq, third.seq) == (2, 3)
    assert texts(journals.read(JOB)) == ["one", "two", "three"]
    [bad] = journals.examine(JOB).bad_lines
    assert bad.offset == size


def test_fragment_that_its_writer_finishes_after_all_stays_a_line(journals: JournalFiles) -> None:
    """The moment that shortening the file would lose: the slow writer's write ends just before ours."""
    begin(journals, epoch=1).append(say("one"))
    path = journals.path(JOB)
    whole = path.read_bytes().replace(b'"seq":1', b'"seq":2').replace(b"one", b"two")
    with path.open("ab") as file:
        file.write(whole[:40])

    def finish(point: str) -> None:
        if point == "journal.before_mend":
            with path.open("ab") as file:
                file.write(whole[40:])

    late = JournalFiles(path.parent, path.parent / "blobs", clock=FakeClock(), probe=finish)
    added = begin(late, epoch=2).append(say("three"))

    assert texts(journals.read(JOB)) == ["one", "two", "three"]
    assert [event.seq for event in journals.read(JOB)] == [1, 2, 3, 4]
    assert (added.seq, journals.examine(JOB).bad_lines) == (4, ())


def test_writers_of_one_epoch_take_turns_without_losing_a_line(journals: JournalFiles) -> None:
    one, two = begin(journals), begin(journals)

    written = [writer.append(say(str(turn))) for turn in range(5) for writer in (one, two)]

    assert [event.seq for event in written] == list(range(1, 11))
    assert list(journals.read(JOB)) == written


def test_owner_learns_at_its_first_line_what_an_earlier_one_wrote_late(
    journals: JournalFiles,
) -> None:
    earlier = begin(journals, epoch=1)
    owner = begin(journals, epoch=2)
    earlier.append(say("late but acknowledged"))

    assert owner.append(say("first")).seq == 2
    assert journals.examine(JOB).repeated == 1


def test_opening_finds_the_highest_epoch_behind_many_fenced_lines(journals: JournalFiles) -> None:
    zombies = [begin(journals, epoch=epoch) for epoch in range(1, 8)]
    begin(journals, epoch=9).append(say("owner"))
    for zombie in zombies:
        with pytest.raises(FencedError):
            zombie.append(say("zombie"))

    with pytest.raises(FencedError, match="epoch 9"):
        begin(journals, epoch=8)
    assert begin(journals, epoch=10).append(say("next")).seq == 2
    assert texts(journals.read(JOB)) == ["owner", "next"]
    assert texts(list(journals.last(JOB, 5))) == ["owner", "next"]
    assert journals.examine(JOB).fenced == 7


def test_every_number_of_a_journal_of_many_blocks_can_be_begun_after(
    journals: JournalFiles,
) -> None:
    journal = begin(journals)
    written = [journal.append(say("x" * (number % 50))) for number in range(120)]

    with blocks_of(100):
        for after in range(121):
            assert list(journals.read(JOB, after=after)) == written[after:]
            assert journals.last(JOB, after) == written[len(written) - after :]


def test_line_of_a_zombie_at_the_edge_of_a_block_is_not_taken_for_one_that_counts(
    journals: JournalFiles,
) -> None:
    zombies = [begin(journals, epoch=epoch) for epoch in (1, 2, 3)]
    owner = begin(journals, epoch=4)
    for zombie in zombies:
        owner.append(say("owner"))
        with pytest.raises(FencedError):
            zombie.append(say("zombie"))
    events = list(journals.read(JOB))

    for size in range(100, journals.path(JOB).stat().st_size):
        with blocks_of(size):
            assert journals.last(JOB, 1) == events[-1:]
            assert begin(journals, epoch=4).last_seq == 3


@pytest.mark.parametrize(
    ("first", "second", "is_certain"),
    [
        ((1, 7), (1, 8), True),
        ((1, 7), (2, 8), False),
        ((2, 7), (1, 8), False),
        ((1, 7), (1, 7), False),
        ((1, 7), (1, 9), False),
        ((1, 7), None, False),
    ],
)
def test_only_consecutive_neighbours_of_one_epoch_make_a_place_certain(
    first: tuple[int, int], second: tuple[int, int] | None, is_certain: bool
) -> None:
    def line(place: tuple[int, int] | None) -> Event | BadLine:
        if place is None:
            return BadLine(offset=10, length=3, reason="not an event")
        return AssistantEvent(v=1, epoch=place[0], seq=place[1])

    anchor = find_anchor([(0, line(first)), (10, line(second)), (20, line((3, 9)))])

    assert anchor == ((10, line(second)) if is_certain else None)


def test_fragment_in_one_block_is_accounted_for_by_the_torn_tail_in_the_next() -> None:
    fence = Fence(epoch=1, seq=4)
    torn = msgspec.structs.replace(
        describe(TornTail(offset=0, fragment=b"half")), v=1, seq=5, epoch=1
    )

    admit(fence, (0, b"half\n"))
    [event] = admit(fence, (5, encode_line(torn)))

    assert event == torn
    assert (fence.findings().torn, fence.findings().bad_lines) == (1, ())


steps = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.integers(1, 4)),
        st.tuples(st.just("append"), st.integers(0, 5)),
        st.tuples(st.just("append"), st.integers(0, 5)),
        st.tuples(st.just("tear"), st.integers(0, 60)),
        st.tuples(st.just("garbage"), st.integers(0, 3)),
    ),
    max_size=30,
)
GARBAGE = (b"\n", b"not json\n", b'{"type":"assistant"}\n', b"\x00\x00\xff\n")


class Writers:
    """What hypothesis drives: writers that come, go on too long, and die in the middle of a line."""

    def __init__(self, journals: JournalFiles) -> None:
        self.journals = journals
        self.handles: dict[JournalFile, int] = {}
        self.acknowledged: list[Event] = []

    def step(self, action: str, number: int) -> None:
        path = self.journals.path(JOB)
        match action:
            case "open":
                try:
                    handle = begin(self.journals, epoch=number)
                except FencedError:
                    return
                assert isinstance(handle, JournalFile)
                # An execution has one journal open at a time; its epoch is its own.
                for old in [old for old, epoch in self.handles.items() if epoch == number]:
                    old.close()
                    del self.handles[old]
                self.handles[handle] = number
            case "append" if self.handles:
                handle = list(self.handles)[number % len(self.handles)]
                try:
                    event = handle.append(say(f"{len(self.acknowledged)} " + "x" * number * 9))
                except FencedError:
                    return
                self.acknowledged.append(event)
            case "tear":
                line = b'{"type":"assistant","v":1,"seq":3,"epoch":1,"content":"torn off here'
                with path.open("ab") as file:
                    file.write(line[:number])
            case "garbage":
                with path.open("ab") as file:
                    file.write(GARBAGE[number])
            case _:
                pass

    def check(self) -> None:
        events = list(self.journals.read(JOB))
        assert said(events) == self.acknowledged
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert all(
            isinstance(event, AssistantEvent) or event.subtype is SystemSubtype.TORN_TAIL
            for event in events
            if isinstance(event, AssistantEvent | SystemEvent)
        )
        for count in (1, 2, 100):
            assert self.journals.last(JOB, count) == events[-count:]
        for after in (1, len(events) // 2, len(events)):
            assert list(self.journals.read(JOB, after=after)) == events[after:]

    def close(self) -> None:
        for handle in self.handles:
            handle.close()


@settings(max_examples=60, deadline=None)
@given(steps=steps, block=st.sampled_from([50, 200, 300, 500, 32_768]))
def test_readers_see_exactly_what_was_acknowledged_whatever_writers_do(
    steps: list[tuple[str, int]], block: int
) -> None:
    with tempfile.TemporaryDirectory() as name, blocks_of(block):
        folder = Path(name)
        writers = Writers(JournalFiles(folder, folder / "blobs", clock=FakeClock()))
        try:
            for action, number in steps:
                writers.step(action, number)
                writers.check()
        finally:
            writers.close()
