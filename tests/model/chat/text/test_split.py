"""Long answers in parts and files: nothing is lost, every part fits, and the cuts are where people would make them."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import assume, example, given
from hypothesis import strategies as st

from nightherd.model.chat.platform import LIMITS, Platform, PlatformLimits
from nightherd.model.chat.text.characters import is_boundary, units
from nightherd.model.chat.text.lines import Lines
from nightherd.model.chat.text.split import file_name, split_answer, split_text

DISCORD = LIMITS[Platform.DISCORD]
FENCE = re.compile(r"^[ \t]*(?:>[ \t]*)*(?:`{3,}|~{3,}).*$", re.MULTILINE)

pieces = st.one_of(
    st.text(alphabet="abc .!?\n", max_size=120),
    st.text(alphabet=st.characters(codec="utf-8"), max_size=60),
    st.sampled_from(
        [
            "\n\n",
            "\n",
            "\n```python\n",
            "\n```\n",
            "```",
            "\n~~~\n",
            "\n> ```js\n> x\n",
            "\n- item\n",
            "\n  1. item ",
            "\n## Heading\n",
            "`code with words`",
            "[a link](https://example.invalid/x)",
            "👨‍👩‍👧‍👦",
            "🇩🇪🇫🇷",
            "👍🏽",
            "e\u0301",
            "x" * 150,
        ]
    ),
)
markdown = st.lists(pieces, max_size=40).map("".join)


def visible(text: str) -> str:
    """Return what there is beside white space and fences."""
    return "".join(FENCE.sub("", text).split())


@given(text=markdown, limit=st.integers(20, 400))
@example(text="```\n" + "a" * 25 + "\n```", limit=20)
@example(text="```python\n```" + "\n" * 30, limit=20)
@example(text="\n```\n" + "👍🏽" * 20, limit=20)
@example(text="> ```\n> " + "a" * 40 + "\nafter", limit=24)
def test_every_part_is_within_the_limit_and_nothing_is_lost(text: str, limit: int) -> None:
    parts = split_text(text, limit)

    assert all(0 < units(part) <= limit for part in parts)
    # A fence that would take half of a message is words like any others, and may be cut.
    assume(all(2 * (len(line) + 5) <= limit for line in FENCE.findall(text)))
    assert "".join(map(visible, parts)) == visible(text)


@given(text=st.text(max_size=300), limit=st.integers(20, 60))
def test_any_text_is_split_without_losing_a_character(text: str, limit: int) -> None:
    plain = text.replace("`", "'").replace("~", "-")

    parts = split_text(plain, limit)

    assert "".join("".join(parts).split()) == "".join(plain.split())


clusters = st.sampled_from(
    ["👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "각", "🏴\U000e0067\U000e0062\U000e007f", "a", "語"]
)


@given(words=st.lists(clusters, min_size=1, max_size=120), limit=st.integers(20, 50))
def test_what_people_see_as_one_character_is_never_cut(words: list[str], limit: int) -> None:
    text = "".join(words)

    parts = split_text(text, limit)

    assert "".join(parts) == text
    position = 0
    for part in parts[:-1]:
        position += len(part)
        assert is_boundary(text, position)
        assert unicodedata.category(text[position])[0] != "M"


@given(text=markdown, limit=st.integers(40, 400))
def test_code_blocks_are_closed_in_the_part_that_opens_them(text: str, limit: int) -> None:
    for part in split_text(text, limit):
        left_open = Lines(part, limit).open_at_end
        # A quote's code block ends with the quote.
        assert left_open is None or ">" in left_open.prefix


def test_an_empty_line_of_a_code_block_leaves_room_for_a_long_one() -> None:
    parts = split_text("```\n\n\n" + "x" * 160, 40)

    assert all(len(part) <= 40 for part in parts)
    assert "".join(parts).count("x") == 160


def test_a_code_block_goes_on_with_its_language() -> None:
    code = "\n".join(f"print({number})" for number in range(40))

    parts = split_text(f"Look:\n\n```python\n{code}\n```\nDone.", 200)

    assert len(parts) > 2
    for part in parts[1:-1]:
        assert part.startswith("```python\n")
        assert part.endswith("\n```")
    assert parts[-1].endswith("```\nDone.")
    printed = [line for part in parts for line in part.split("\n") if line.startswith("print")]
    assert printed == code.split("\n")


def test_a_code_block_that_fits_into_one_message_is_not_taken_apart() -> None:
    code = "```sh\n" + "\n".join("x" * 20 for _ in range(6)) + "\n```"

    parts = split_text("Some words.\n" * 10 + code, 200)

    assert parts[-1] == code


def test_cuts_are_between_paragraphs_where_there_are_some() -> None:
    paragraph = "One sentence. Another one. A third one."

    parts = split_text("\n\n".join([paragraph] * 6), 100)

    assert parts == (f"{paragraph}\n\n{paragraph}",) * 3


def test_list_items_come_before_lines_and_sentences_before_words() -> None:
    items = "\n".join(f"- item {number}\n  goes on here" for number in range(20))
    prose = "This is a sentence of some words. " * 20

    assert all(part.startswith("- item") for part in split_text(items, 100))
    assert all(part.endswith("words.") for part in split_text(prose, 100))
    assert all(
        part.count("word") * 4 == len(part.replace(" ", ""))
        for part in split_text("word " * 80, 61)
    )


def test_a_heading_stays_with_what_follows() -> None:
    parts = split_text(
        "Words of an introduction.\n" * 3 + "\n## Heading\n\n" + "More words. " * 9, 120
    )

    assert not any(part.endswith("## Heading") for part in parts)


def test_links_and_code_within_a_line_stay_whole() -> None:
    link = "[some words of a link](https://example.invalid/path)"

    parts = split_text(f"{'a' * 30} {link} and `code of some words` " * 6, 90)

    joined = "\n".join(parts)
    assert joined.count(link) == 6
    assert joined.count("`code of some words`") == 6


def test_long_code_becomes_a_file_named_for_its_language() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(200))
    text = f"Before\n\n1. a step\n   ```python\n{code}\n   ```\nAfter\n```\nshort\n```"

    answer = split_answer(text, DISCORD)

    assert [file.name for file in answer.files] == ["answer-1.py"]
    assert answer.files[0].text == code + "\n"
    assert answer.parts == (
        "Before\n\n1. a step\n   (in the file `answer-1.py`)\nAfter\n```\nshort\n```",
    )


def test_an_answer_of_too_many_parts_becomes_a_file_with_a_lead() -> None:
    text = "# Report\n\n" + "A sentence that says something. " * 1_000

    answer = split_answer(text, DISCORD)

    assert [(file.name, file.text) for file in answer.files] == [("answer.md", text)]
    [lead] = answer.parts
    assert lead.startswith("# Report")
    assert lead.endswith("(The whole answer is in the file `answer.md`.)")
    assert units(lead) <= DISCORD.characters


@given(text=markdown, most=st.integers(1, 4), longest=st.integers(10, 80))
def test_an_answer_keeps_within_every_limit_after_conversion(
    text: str, most: int, longest: int
) -> None:
    limits = PlatformLimits(
        characters=120, longest_code=longest, most_parts=most, buttons=5, file_bytes=1_000
    )

    answer = split_answer(text, limits, lambda markdown: markdown.replace("a", "&amp;"))

    assert len(answer.parts) <= most
    assert all(units(part) <= limits.characters for part in answer.parts)


def test_names_of_files_are_plain() -> None:
    assert file_name(1, "python") == "answer-1.py"
    assert file_name(2, "") == "answer-2.txt"
    assert file_name(3, "c++") == "answer-3.cpp"
    assert file_name(4, "../x") == "answer-4.txt"
    assert file_name(5, "rust") == "answer-5.rs"
    assert file_name(6, "yaml") == "answer-6.yaml"


def test_an_empty_answer_has_no_parts() -> None:
    assert split_answer(" \n\n", DISCORD).parts == ()
