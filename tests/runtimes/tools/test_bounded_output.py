"""Bounded output: both ends of any stream, whatever pieces it arrives in."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from nightherd.runtimes.tools.output import BoundedOutput

NOTE = re.compile(r"\n\[\.\.\. ([\d,]+) bytes left out \.\.\.\]\n")


def collect(data: bytes, limit: int, sizes: list[int]) -> str:
    output = BoundedOutput(limit)
    position = 0
    for size in sizes:
        output.add(data[position : position + size])
        position += size
    output.add(data[position:])
    return output.text()


@given(st.binary(max_size=100), st.integers(100, 200), st.lists(st.integers(0, 30), max_size=10))
def test_what_fits_is_kept_whole(data: bytes, limit: int, sizes: list[int]) -> None:
    assert collect(data, limit, sizes) == data.decode(errors="replace")


@given(
    st.text(st.sampled_from("aé€😀\n"), min_size=30, max_size=200),
    st.integers(0, 20),
    st.lists(st.integers(0, 30), max_size=10),
)
def test_what_does_not_fit_keeps_both_ends_and_counts_the_rest(
    text: str, limit: int, sizes: list[int]
) -> None:
    data = text.encode()

    kept = collect(data, limit, sizes)

    note = NOTE.search(kept)
    assert note is not None
    head, tail = kept[: note.start()], kept[note.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) <= limit // 2
    assert len(tail.encode()) <= limit - limit // 2
    left_out = int(note[1].replace(",", ""))
    assert left_out == len(data) - len(head.encode()) - len(tail.encode())
    assert left_out <= len(data) - limit + 6


@given(st.binary(max_size=200), st.integers(0, 40), st.lists(st.integers(0, 30), max_size=10))
def test_pieces_make_no_difference(data: bytes, limit: int, sizes: list[int]) -> None:
    assert collect(data, limit, sizes) == collect(data, limit, [])
