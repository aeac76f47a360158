"""Any message is found by its number, by halving: the same answer as reading everything gives, for far less."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightherd.journal.files import JournalFiles
from nightherd.journal.messages import ended_message, seq_of_message
from nightherd.journal.place import STRETCH
from nightherd.testing.contracts.journal import JOB
from nightherd.testing.determinism import FakeClock

Spec = tuple[str, int]
"""What happens next in a journal, and how many bytes it fills a line with."""

WORDS = ("message", "part", "streamed", "error", "takeover", "zombie", "repeat", "damage")


def journal_of(specs: list[Spec]) -> bytes:
    """A journal in which all of this happened, numbered as a recorder numbers."""
    lines: list[bytes] = []
    seq, epoch, ended = 0, 1, 0
    for word, padding in specs:
        said = f'"content":"{"x" * padding}"'
        if word == "damage":
            lines.append(b"{" + b"#" * padding)
            continue
        if word == "takeover":
            epoch += 1
        is_counted = word not in ("zombie", "repeat")
        seq += is_counted
        stamp = f'"v":1,"seq":{seq},"epoch":{epoch - 1 if word == "zombie" else epoch}'
        match word:
            case "message" | "zombie" | "repeat":
                rest = f'"type":"assistant",{stamp},"message":{ended + 1},"end":true,{said}'
                ended += is_counted
            case "part":
                rest = f'"type":"assistant",{stamp},"message":{ended + 1},"index":0,{said}'
            case "error":
                rest = f'"type":"error",{stamp},"message":"{"x" * padding}"'
            case _:
                rest = f'"type":"assistant",{stamp},"partial":true,{said}'
        lines.append(f"{{{rest}}}".encode())
    return b"".join(line + b"\n" for line in lines)


def journals_with(folder: Path, data: bytes) -> JournalFiles:
    journals = JournalFiles(folder, folder / "blobs", clock=FakeClock())
    journals.path(JOB).write_bytes(data)
    return journals


def check_every_message(journals: JournalFiles) -> int:
    """Every message is found where reading everything finds it; how many there are."""
    found = ((ended_message(event), event.seq) for event in journals.read(JOB))
    ends = {message: seq for message, seq in found if message is not None}
    for message in [*ends, 0, max(ends, default=0) + 1]:
        assert journals.seq_of_message(JOB, message) == ends.get(message), message
    return len(ends)


@given(
    specs=st.lists(
        st.tuples(st.sampled_from(WORDS), st.sampled_from([0, 9_000, 70_000])), max_size=60
    )
)
@settings(max_examples=60, deadline=None)
def test_message_is_found_where_reading_everything_finds_it(
    specs: list[Spec], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("journal")

    check_every_message(journals_with(folder, journal_of(specs)))


def test_message_is_found_among_thousands(tmp_path: Path) -> None:
    journals = journals_with(tmp_path, journal_of([("part", 300), ("message", 900)] * 1_000))

    assert check_every_message(journals) == 1_000


@pytest.mark.parametrize("before", [1, 40])
def test_message_is_found_across_megabytes_that_were_only_streamed(
    tmp_path: Path, before: int
) -> None:
    told: list[Spec] = [("message", 20_000)] * before
    streamed: list[Spec] = [("streamed", 1_000)] * 3_000

    journals = journals_with(tmp_path, journal_of([*told, *streamed, *told]))

    assert check_every_message(journals) == 2 * before


def test_message_whose_last_line_is_damaged_has_no_end(tmp_path: Path) -> None:
    lines = journal_of([("message", 20_000)] * 60).splitlines(keepends=True)
    lines[29] = b"#" * (len(lines[29]) - 1) + b"\n"
    journals = journals_with(tmp_path, b"".join(lines))

    assert check_every_message(journals) == 59
    assert journals.seq_of_message(JOB, 30) is None
    assert journals.seq_of_message(JOB, 31) == 31


def test_numbers_out_of_order_are_still_found(tmp_path: Path) -> None:
    data = journal_of([("message", 20_000)] * 60)
    swapped = data.replace(b'"message":7,', b'"message":X,').replace(
        b'"message":50,', b'"message":7,'
    )
    journals = journals_with(tmp_path, swapped.replace(b'"message":X,', b'"message":50,'))

    assert journals.seq_of_message(JOB, 50) == 7


def test_finding_reads_the_logarithm_of_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = journal_of([("message", 2_000)] * 10_000)
    journals = journals_with(tmp_path, data)
    read, pread = [0], os.pread

    def counting(descriptor: int, size: int, offset: int) -> bytes:
        found = pread(descriptor, size, offset)
        read[0] += len(found)
        return found

    descriptor = os.open(journals.path(JOB), os.O_RDONLY)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", counting)
        assert seq_of_message(descriptor, len(data), 7_777) == 7_777
        assert seq_of_message(descriptor, len(data), 10_001) is None
    os.close(descriptor)

    halvings = (len(data) // STRETCH).bit_length()
    assert read[0] < 2 * (halvings + 2) * 2 * STRETCH < len(data)
