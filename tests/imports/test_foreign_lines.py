"""Foreign files in blocks: lines come whole and counted however they are cut, and none is held for ever."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imports.foreign_trees import CWD, assistant, lines, user
from nightherd.imports.claude import directory_of, slug_of
from nightherd.imports.claude_lines import MESSAGE_MEMORY, Tally, decode
from nightherd.imports.lines import Line, LineCutter, opened, read_lines, read_object, shown


def cut(text: bytes, sizes: Iterator[int], limit: int) -> list[Line]:
    cutter = LineCutter(limit)
    found: list[Line] = []
    place = 0
    while place < len(text):
        size = next(sizes)
        found += cutter.feed(text[place : place + size])
        place += size
    return [*found, *cutter.end()]


@given(
    text=st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\r\n", b"x" * 9])).map(b"".join),
    sizes=st.lists(st.integers(1, 7), min_size=1),
)
def test_lines_are_the_same_however_the_file_is_cut(text: bytes, sizes: list[int]) -> None:
    def again() -> Iterator[int]:
        while True:
            yield from sizes

    found = cut(text, again(), limit=8)

    expected = text.split(b"\n")
    is_ended = expected[-1] == b""
    wanted = expected[:-1] if is_ended else expected
    assert [line.number for line in found] == list(range(1, len(wanted) + 1))
    assert [line.text for line in found] == [line if len(line) <= 8 else None for line in wanted]
    assert [line.is_ended for line in found] == [True] * (len(wanted) - 1) + [is_ended] * bool(
        wanted
    )


def test_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbf{}\n{}")

    assert list(read_lines(tmp_path / "file")) == [Line(1, b"{}"), Line(2, b"{}", is_ended=False)]


def test_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="Not a regular file"), opened(tmp_path / "pipe"):
        pass


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "not JSON: "),
        (b"[]", "not a JSON object"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 7"),
        (b"[" * 100_000, "nested too deeply"),
        (b"7", "not a JSON object"),
    ],
)
def test_what_is_no_object_is_told_in_words(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_object(text)


def test_lone_surrogates_become_a_mark_and_pairs_stay_faces() -> None:
    assert read_object(rb'{"a":"\ud83d","b":"\ud83d\ude00","\udc00":1}') == {
        "a": "\N{REPLACEMENT CHARACTER}",
        "b": "\N{GRINNING FACE}",
        "\N{REPLACEMENT CHARACTER}": 1,
    }


def test_path_with_bytes_that_are_no_text_can_be_shown() -> None:
    assert shown(Path(os.fsdecode(b"/a/\xff"))) == "/a/\\xff"


def tally_of(*values: object) -> Tally:
    tally = Tally()
    tally.feed(lines(*values).encode())
    tally.end()
    return tally


@given(sizes=st.lists(st.integers(1, 300), min_size=1), odd=st.sampled_from(["", "{", "[]", "\r"]))
def test_tally_is_the_same_however_the_file_is_cut(sizes: list[int], odd: str) -> None:
    values = [
        user(),
        assistant(costUSD=0.5),
        odd,
        assistant(),
        user([{"type": "tool_result"}]),
        odd,
    ]
    text = lines(*values).encode()
    whole, parts = tally_of(*values), Tally()
    place = 0
    for size in cycle(sizes):
        parts.feed(text[place : place + size])
        place += size
        if place >= len(text):
            break
    parts.end()

    def facts(tally: Tally) -> tuple[object, ...]:
        counts = (tally.messages, tally.turns, tally.cost, tally.token_estimate)
        return (*counts, tally.first_at, tally.last_at, tally.title, tally.bad_lines)

    assert facts(parts) == facts(whole)
    assert parts.messages == 3


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        (("custom-title", "ai-title", "summary"), "custom-title 2"),
        (("ai-title", "summary"), "ai-title 2"),
        (("summary",), "summary 2"),
        ((), "Why is the cart empty?"),
    ],
)
def test_title_is_by_person_then_claude_then_summary_then_prompt(
    titles: tuple[str, ...], expected: str
) -> None:
    keys = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
    given = [{"type": kind, keys[kind]: f"{kind} {number}"} for number in (1, 2) for kind in titles]

    assert tally_of(*given, user("<command-name>/clear</command-name>"), user()).title == expected


def test_title_line_without_a_title_is_as_good_as_absent() -> None:
    found = tally_of(
        {"type": "custom-title", "customTitle": "  "}, {"type": "ai-title", "aiTitle": 7}
    )

    assert found.title is None


def test_answers_that_claude_code_made_up_itself_do_not_count() -> None:
    made_up = assistant()
    made_up["message"]["model"] = "<synthetic>"

    found = tally_of(user(), made_up)

    assert (found.messages, found.turns, found.token_estimate) == (1, 0, 0)


def test_parts_of_one_answer_count_once_also_with_results_between() -> None:
    result = user([{"type": "tool_result"}])

    found = tally_of(
        user(), assistant(id="a"), result, assistant(id="a"), result, assistant(id="b")
    )

    assert (found.messages, found.turns) == (5, 2)


def test_memory_of_message_ids_is_bounded() -> None:
    found = tally_of(*(assistant(id=f"m{number}") for number in range(MESSAGE_MEMORY + 100)))

    assert found.turns == MESSAGE_MEMORY + 100
    assert len(found._seen) == MESSAGE_MEMORY


def test_absurd_numbers_are_not_believed() -> None:
    odd = assistant(costUSD=float(10**30))
    odd["message"]["usage"] = {"input_tokens": 10**30, "output_tokens": -5}

    found = tally_of(odd)

    assert (found.cost, found.token_estimate) == (0, 0)


def test_line_with_unexpected_types_gives_what_it_can() -> None:
    line = decode(b'{"type":"user","cwd":7,"message":{"id":5,"content":[{"type":"text"},3]}}')

    assert (line.type, line.cwd) == ("user", None)
    assert line.message is not None
    assert isinstance(line.message.content, list)
    assert [block.type for block in line.message.content] == ["text"]


@pytest.mark.parametrize(
    ("recorded", "slug", "expected"),
    [
        (["/tmp", "/srv/my-shop", "/srv/my/shop"], "-srv-my-shop", "/srv/my-shop"),
        (["/elsewhere"], "-srv-shop", "/elsewhere"),
        ([], "-srv-shop", "/srv/shop"),
        (["/" + "a" * 300], "-" + "a" * 199 + "-1f3k", "/" + "a" * 300),
    ],
)
def test_directory_is_the_recorded_one_that_fits_the_slug(
    recorded: list[str], slug: str, expected: str
) -> None:
    assert directory_of(recorded, slug) == expected


def test_slug_is_made_of_letters_and_digits() -> None:
    assert slug_of(CWD) == "-srv-shop"
    assert slug_of("/srv/.ümlaut_x") == "-srv---mlaut-x"
