"""YAML as we write it and read it: pleasant to read, the same again when loaded, by any reader."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nightherd.files.yaml_dump import BlockText, dump_field, dump_yaml
from nightherd.files.yaml_load import MOST_VALUES, load_yaml

TEXT = st.text(
    st.one_of(
        st.sampled_from(
            list("ab:#-?|>&*!%@`'\",[]{}0159.~=<\\ \t\n\r\x00\x85\u2028\ufeff\U0001f600")
        ),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=40,
)
SCALARS = st.one_of(
    TEXT, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=True)
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        # A key is known by its spelling: 1 and "1" are the same key twice, as in a fleet file.
        st.lists(
            st.tuples(TEXT | st.integers(), inner),
            max_size=4,
            unique_by=lambda entry: str(entry[0]),
        ).map(dict),
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(DATA)
@example({"a": "line\n  \n", "b": "x"})
@example({"a": " leading\nline", "b": ["\n\nx\n\n\n", "x"]})
@example([[["a\nb"], {"k": {"l": "m\n"}}]])
@example({"k" * 2000: {"a": 1}, "j" * 1500: ["x\ny"]})
@example("\tx\ny")
@example({"-": "---\n...\n", "": ""})
def test_what_is_dumped_loads_as_it_was(data: Any) -> None:
    text = dump_yaml(data)

    assert load_yaml(text) == data
    assert yaml.load(text, Loader=yaml.SafeLoader) == data


@pytest.mark.parametrize("word", ["yes", "No", "on", "OFF", "y", "null", "True", "~", "1e3", "010"])
def test_words_that_mean_something_else_to_a_reader_are_quoted(word: str) -> None:
    assert dump_yaml({"a": word}) == f'a: "{word}"\n'


def test_prompts_are_blocks_and_instants_are_quoted() -> None:
    document = {
        "id": "job-2024-01-19-abc123",
        "started_at": "2024-01-19T09:00:00Z",
        "prompt": "Analyze site traffic.\nPost a report to #marketing.\n",
        "summary": "Traffic up 12%: good.",
        "jobs": ["a", {"b": 1, "c": []}],
        "next": None,
    }

    assert dump_yaml(document) == (
        "id: job-2024-01-19-abc123\n"
        'started_at: "2024-01-19T09:00:00Z"\n'
        "prompt: |\n"
        "  Analyze site traffic.\n"
        "  Post a report to #marketing.\n"
        'summary: "Traffic up 12%: good."\n'
        "jobs:\n"
        "  - a\n"
        "  - b: 1\n"
        "    c: []\n"
        "next: null\n"
    )


@pytest.mark.parametrize("text", ["one line", " indented", "a: b # c", "é😀"])
def test_text_can_be_a_block_though_it_is_one_line(text: str) -> None:
    dumped = dump_yaml({"prompt": BlockText(text), "next": 1})

    assert dumped.splitlines()[1] == f"  {text}"
    assert load_yaml(dumped) == {"prompt": text, "next": 1}


@pytest.mark.parametrize("text", ["", " ", "\n", "\x00", "a\r\nb"])
def test_text_no_block_can_hold_is_quoted(text: str) -> None:
    dumped = dump_yaml([BlockText(text)])

    assert len(dumped.splitlines()) == 1
    assert load_yaml(dumped) == [text]


def test_the_same_object_twice_is_written_twice_and_never_as_an_alias() -> None:
    shared = {"a": [1]}

    text = dump_yaml({"x": shared, "y": shared})

    assert "&" not in text
    assert load_yaml(text) == {"x": shared, "y": shared}


def test_a_lone_surrogate_is_replaced() -> None:
    assert load_yaml(dump_yaml({"a": "x\ud800", "b": "\udfff\ny"})) == {"a": "x�", "b": "�\ny"}


def test_parts_of_a_document_join_to_the_document() -> None:
    parts = dump_field("a", {"b": "c\nd"}) + dump_field("e", 1)

    assert load_yaml(parts) == {"a": {"b": "c\nd"}, "e": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-19T09:00:00Z", "2024-01-19T09:00:00Z"),
        ("2024-01-19", "2024-01-19"),
        ("10:30", "10:30"),
        ("on", "on"),
        ("010", "010"),
        ("007.5", "007.5"),
        ("9" * 5000, "9" * 5000),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("Null", None),
        ("", None),
        ("# only a comment", None),
    ],
)
def test_plain_words_mean_what_they_mean_in_a_fleet_file(text: str, value: Any) -> None:
    assert load_yaml(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "[" * 200_000,
        "[" * 101 + "]" * 101,
        "a: !!python/object/apply:os.getcwd []",
        "a: [",
        "--- a\n--- b",
        "a: *nothing",
        "\x00",
        "? [a]\n: b",
        "1: a\n'1': b",
    ],
    ids=["duplicate", "abyss", "deep", "object", "open", "two", "alias", "nul", "list", "spelling"],
)
def test_what_cannot_be_trusted_is_an_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)


def test_an_error_names_its_line_and_column() -> None:
    with pytest.raises(yaml.YAMLError, match="line 2, column 1: the key 'a' is here twice"):
        load_yaml("a: 1\na: 2\n")


def test_a_state_file_may_have_more_values_than_a_fleet_file() -> None:
    many = list(range(MOST_VALUES + 1))

    assert load_yaml(dump_yaml(many)) == many


def test_an_alias_bomb_is_stopped_in_a_state_file_too() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(yaml.YAMLError, match="more than 100,000 values"):
        load_yaml("\n".join(lines))


def test_merge_keys_and_aliases_are_read_as_in_a_fleet_file() -> None:
    text = "base: &b {x: 1}\nsub: {<<: *b, y: 007}\nlist: [*b]\n"

    assert load_yaml(text) == {"base": {"x": 1}, "sub": {"y": "007", "x": 1}, "list": [{"x": 1}]}
