"""Reading YAML: the places are right, the traps of YAML 1.1 are gone, everything is bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.config.documents import LARGEST_FILE_BYTES, decode
from nightherd.config.merge import to_plain
from nightherd.files.yaml_load import compose
from nightherd.files.yaml_nodes import MappingNode, Node, ScalarNode, SequenceNode, resolve_plain
from nightherd.model.problem import Problem


def read(text: str) -> Node:
    decoded = decode("/fleet.yaml", text.encode())
    assert not isinstance(decoded, Problem)
    node, problems = compose(*decoded)
    assert problems == []
    assert node is not None
    return node


def complaints(text: str) -> list[tuple[int, int, str]]:
    decoded = decode("/fleet.yaml", text.encode())
    assert not isinstance(decoded, Problem)
    _, problems = compose(*decoded)
    return [(one.place.line, one.place.column, one.message) for one in problems]


def test_each_node_knows_its_line_column_and_width() -> None:
    document = read("a: hello\nlist:\n  - 'two words'\n  - {deep: 5}\n")
    assert isinstance(document, MappingNode)

    value, items = document.get("a"), document.get("list")
    assert isinstance(value, ScalarNode)
    assert (value.spot.line, value.spot.column, value.spot.width) == (1, 4, 5)
    assert isinstance(items, SequenceNode)
    assert (items.items[0].spot.line, items.items[0].spot.column) == (3, 5)
    assert items.items[0].spot.width == len("'two words'")
    key = document.entries["list"].key
    assert (key.spot.line, key.spot.column, key.spot.width) == (2, 1, 4)


def test_columns_count_characters_also_behind_wide_ones() -> None:
    document = read('{"\N{PILE OF POO}é": x, b: y}\n')
    assert isinstance(document, MappingNode)

    value = document.get("b")

    assert value is not None
    assert value.spot.column == len('{"xé": x, b: ') + 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("OFF", "OFF"),
        ("", None),
        ("~", None),
        ("null", None),
        ("0", 0),
        ("-17", -17),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", "017"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("190:20:30", "190:20:30"),
        ("2024-01-15", "2024-01-15"),
        ("2024-01-15T09:00:00Z", "2024-01-15T09:00:00Z"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_an_unquoted_text_means_what_it_looks_like(text: str, value: object) -> None:
    resolved = resolve_plain(text)

    assert resolved == value
    assert type(resolved) is type(value)


def test_a_quoted_number_stays_text_and_on_stays_a_key() -> None:
    assert to_plain(read("on: '5'\nyes: 5\n")) == {"on": "5", "yes": 5}


def test_anchors_aliases_and_merge_keys_are_understood() -> None:
    document = read(
        "base: &b {x: 1, y: 2}\nsub: {<<: *b, y: 3}\nlist: [*b]\nboth: {<<: [{x: 9}, *b]}\n"
    )

    assert to_plain(document) == {
        "base": {"x": 1, "y": 2},
        "sub": {"y": 3, "x": 1},
        "list": ({"x": 1, "y": 2},),
        "both": {"x": 9, "y": 2},
    }


def test_a_quoted_merge_key_is_a_key_like_any_other() -> None:
    assert to_plain(read('{"<<": 1}')) == {"<<": 1}


def test_a_duplicate_key_is_found_with_the_line_of_the_first() -> None:
    decoded = decode("/fleet.yaml", b"a: 1\nb: 2\na: 3\n")
    assert not isinstance(decoded, Problem)

    _, problems = compose(*decoded)

    assert [(one.place.line, one.message, one.hint) for one in problems] == [
        (3, "the key 'a' is here twice", "the first is in line 1")
    ]


@pytest.mark.parametrize(
    "text", ["a: !!python/object:os.system x", "a: !thing [1]", "a: !!binary aGk=", "!!map {a: 1}"]
)
def test_tags_are_refused(text: str) -> None:
    found = complaints(text)

    assert len(found) == 1
    assert "tag" in found[0][2]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: [1, 2\nb: 3\n", 2, 2, "not valid YAML"),
        ("a: 'x\n", 2, 1, "not valid YAML"),
        ("a:\n\t- b\n", 2, 1, "not valid YAML"),
        ("a: b: c\n", 1, 5, "not valid YAML"),
        ("a: 1\n---\nb: 2\n", 2, 1, "a second document"),
        ("? [a, b]\n: c\n", 1, 3, "a key must be a text"),
        ("a: *nothing\n", 1, 4, "no anchor &nothing"),
        ("a: &a [*a]\n", 1, 8, "stands inside its own anchor"),
        ("a: {<<: 5}\n", 1, 9, "'<<' takes a mapping"),
    ],
)
def test_what_is_not_our_yaml_is_located(text: str, line: int, column: int, message: str) -> None:
    found = complaints(text)

    assert [(one[0], one[1]) for one in found] == [(line, column)]
    assert message in found[0][2]


def test_a_tab_used_to_indent_is_named_as_the_reason() -> None:
    decoded = decode("/fleet.yaml", b"a:\n\tb: 1\n")
    assert not isinstance(decoded, Problem)

    _, problems = compose(*decoded)

    assert problems[0].hint == "indent with spaces, not with tabs"


def test_an_alias_bomb_is_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    found = complaints("\n".join(lines))

    assert len(found) == 1
    assert "more than 100,000 values" in found[0][2]


def test_depth_is_bounded_also_through_aliases() -> None:
    chain = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 300))]

    assert complaints("[" * 5000)[0][2] == "nested more than 100 levels deep"
    assert complaints("- " * 5000)[0][2] == "nested more than 100 levels deep"
    assert complaints("\n".join(chain))[0][2] == "nested more than 100 levels deep"
    assert complaints("[" * 99 + "]" * 99) == []


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (b"", "1:1", "the file is empty"),
        (b"# only a comment\n", "1:1", "the file is empty"),
        (b"a: 1\nb: \xff\xfe\n", "2:4", "not UTF-8 text: byte 0xff"),
        ("a: \N{LATIN SMALL LETTER E WITH ACUTE}\n".encode("latin-1"), "1:4", "byte 0xe9"),
        (b"a: 1\x00\n", "1:5", "U+0000"),
        (b"\x7fELF\x02\x01\x01\x00", "1:1", "U+007F"),
        (b"- a\n- b\n", "1:1", "expected a mapping of keys to values, got a list"),
        (b"hello\n", "1:1", "expected a mapping of keys to values, got the text 'hello'"),
        (b"a: " + b"x" * LARGEST_FILE_BYTES, "1:1", "larger than 10 MB"),
    ],
    ids=["empty", "comment", "bytes", "latin-1", "nul", "binary", "list", "text", "huge"],
)
def test_a_file_that_is_no_fleet_file_is_refused(
    folder: Folder, content: bytes, place: str, message: str
) -> None:
    (folder.root / "nightherd.yaml").write_bytes(content)

    errors = folder.errors()

    assert len(errors) == 1
    assert errors[0].startswith(f"nightherd.yaml:{place} ")
    assert message in errors[0]


def test_a_byte_order_mark_does_not_matter(folder: Folder) -> None:
    (folder.root / "nightherd.yaml").write_bytes(b"\xef\xbb\xbfagents: [{name: a}]\r\n")

    assert list(folder.load().fleet.agents) == ["a"]


def test_a_directory_a_missing_file_and_a_dangling_link_are_told_apart(folder: Folder) -> None:
    (folder.root / "agents.yaml").mkdir()
    (folder.root / "link.yaml").symlink_to("nowhere.yaml")
    os.mkfifo(folder.root / "pipe.yaml")
    folder.fleet("""\
        agents:
          - path: agents.yaml
          - path: missing.yaml
          - path: link.yaml
          - path: pipe.yaml
          - path: "nul\\0.yaml"
        """)

    errors = folder.errors()

    assert [one.split(" ", 1)[0] for one in errors] == [
        f"nightherd.yaml:{line}:11" for line in range(2, 7)
    ]
    assert "it is a directory, not a file" in errors[0]
    assert "there is no such file" in errors[1]
    assert "a symbolic link to a missing file" in errors[2]
    assert "it is not a regular file" in errors[3]
    assert "NUL" in errors[4]


def test_a_named_fleet_file_that_is_missing_is_a_problem_with_a_place(folder: Folder) -> None:
    errors = folder.errors()

    assert errors == ["nightherd.yaml:1:1 the file cannot be read: there is no such file"]


def test_a_file_that_may_not_be_read_says_so(folder: Folder) -> None:
    folder.fleet("agents: [{path: agent.yaml}]\n")
    agent = folder.write("agent.yaml", "name: a\n")
    agent.chmod(0)
    readable = os.access(agent, os.R_OK)

    errors = folder.errors()

    # Permissions do not bind the superuser.
    expected = [] if readable else ["permission denied"]
    assert len(errors) == len(expected)
    assert all(reason in error for reason, error in zip(expected, errors, strict=True))


def test_nothing_is_written_while_loading(folder: Folder, tmp_path: Path) -> None:
    folder.fleet("agents: [{name: a, runtime: scriptd}, {path: no.yaml}]\n")
    before = sorted(tmp_path.rglob("*"))

    assert len(folder.errors()) == 2

    assert sorted(tmp_path.rglob("*")) == before
