"""Read, Write and Edit: real files, inside the working directory only, and no exception for any input."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightherd.runtimes.tools.file_actions import READ_LIMIT_BYTES
from nightherd.runtimes.tools.files import Edit, Read, Write
from nightherd.runtimes.tools.tool import Tool
from runtimes.stage import Stage

FILE_TOOLS: list[tuple[Tool, dict[str, str]]] = [
    (Read(), {}),
    (Write(), {"content": "x"}),
    (Edit(), {"old_string": "a", "new_string": "b"}),
]
every_tool = pytest.mark.parametrize(
    ("tool", "more"), FILE_TOOLS, ids=[tool.name for tool, _ in FILE_TOOLS]
)


@pytest.fixture
def stage(stage_anywhere: Stage) -> Stage:
    """Every test runs with the tools on this machine, and as programs that stand for tools in a container."""
    return stage_anywhere


def test_read_gives_a_text_as_it_stands(stage: Stage) -> None:
    (stage.directory / "note.txt").write_bytes("eins\r\nzw\u00f6lf\nno end".encode())

    outcome = stage.use(Read(), file_path="note.txt")

    assert (outcome.success, outcome.result) == (True, "eins\r\nzwölf\nno end")


def test_read_gives_an_empty_file_as_an_empty_text(stage: Stage) -> None:
    (stage.directory / "empty").touch()

    assert stage.use(Read(), file_path="empty").result == ""


@pytest.mark.parametrize(
    ("window", "lines"),
    [
        ({"offset": 2}, "b\nc\nd"),
        ({"limit": 2}, "a\nb\n"),
        ({"offset": 2, "limit": 1}, "b\n"),
        ({"offset": 4, "limit": 10}, "d"),
    ],
)
def test_read_gives_the_lines_asked_for(stage: Stage, window: dict[str, int], lines: str) -> None:
    (stage.directory / "abc").write_text("a\nb\nc\nd")

    assert stage.use(Read(), file_path="abc", **window).result == lines


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb", ""])
def test_read_past_the_end_is_a_failure(stage: Stage, text: str) -> None:
    (stage.directory / "short").write_text(text)

    outcome = stage.use(Read(), file_path="short", offset=3)

    assert (outcome.success, outcome.error) == (False, "short has fewer than 3 lines")


def test_read_cuts_a_long_file_at_a_line_and_says_where_to_go_on(stage: Stage) -> None:
    lines = [f"line {number}\n" for number in range(1, 60_001)]
    (stage.directory / "long").write_text("".join(lines))

    first = stage.use(Read(), file_path="long").result or ""

    body, _, note = first.rpartition("[... ")
    following = int(note.split("offset ")[1].split()[0])
    assert body == "".join(lines[: following - 1])
    assert len(body) <= READ_LIMIT_BYTES < len(body) + len(lines[following - 1])
    rest = stage.use(Read(), file_path="long", offset=following).result or ""
    assert rest.startswith(lines[following - 1])


def test_read_cuts_a_line_that_alone_is_too_long(stage: Stage) -> None:
    (stage.directory / "one-line").write_text("x" * 1_000_000)

    outcome = stage.use(Read(), file_path="one-line")

    assert outcome.success
    assert outcome.result is not None
    assert outcome.result.startswith(
        "x" * READ_LIMIT_BYTES + "\n[... line 1 of one-line is too long"
    )
    assert len(outcome.result) < READ_LIMIT_BYTES + 200


def test_read_refuses_what_is_not_text(stage: Stage) -> None:
    (stage.directory / "image").write_bytes(b"\x89PNG\0\0")
    (stage.directory / "folder").mkdir()
    os.mkfifo(stage.directory / "pipe")

    refusals = [stage.use(Read(), file_path=name).error for name in ("image", "folder", "pipe")]

    assert refusals == [
        "image is a binary file of 6 bytes",
        "folder is a directory",
        "pipe is not a regular file",
    ]


def test_read_makes_bytes_that_are_not_utf8_visible(stage: Stage) -> None:
    (stage.directory / "latin").write_bytes(b"caf\xe9\n")

    assert stage.use(Read(), file_path="latin").result == "caf\ufffd\n"


def test_write_makes_a_file_and_its_directories(stage: Stage) -> None:
    outcome = stage.use(Write(), file_path="src/deep/a.txt", content="grün\n")

    assert (outcome.success, outcome.result) == (True, "wrote 6 bytes to src/deep/a.txt")
    assert (stage.directory / "src/deep/a.txt").read_bytes() == "grün\n".encode()
    assert [path.name for path in (stage.directory / "src/deep").iterdir()] == ["a.txt"]


def test_write_makes_files_with_the_mode_that_other_programs_would(stage: Stage) -> None:
    stage.use(Write(), file_path="ours", content="")
    (stage.directory / "theirs").write_text("")

    modes = {(stage.directory / name).stat().st_mode for name in ("ours", "theirs")}

    assert len(modes) == 1


@every_tool
def test_a_file_keeps_its_mode(stage: Stage, tool: Tool, more: dict[str, str]) -> None:
    script = stage.directory / "run.sh"
    script.write_text("a")
    script.chmod(0o751)

    assert stage.use(tool, file_path="run.sh", **more).success
    assert stat.S_IMODE(script.stat().st_mode) == 0o751


def test_write_replaces_a_file_that_readers_hold_open_without_changing_what_they_read(
    stage: Stage,
) -> None:
    target = stage.directory / "data"
    target.write_text("old content")

    with target.open() as reader:
        stage.use(Write(), file_path="data", content="new")

        assert reader.read() == "old content"
    assert target.read_text() == "new"


def test_write_through_a_link_inside_changes_what_it_points_to(stage: Stage) -> None:
    (stage.directory / "real").write_text("old")
    (stage.directory / "link").symlink_to("real")

    stage.use(Write(), file_path="link", content="new")

    assert (stage.directory / "link").is_symlink()
    assert (stage.directory / "real").read_text() == "new"


def test_write_into_what_is_not_a_directory_is_a_failure(stage: Stage) -> None:
    (stage.directory / "file").write_text("x")
    (stage.directory / "folder").mkdir()

    assert stage.use(Write(), file_path="file/below", content="").success is False
    assert stage.use(Write(), file_path="folder", content="").error == "folder is a directory"
    assert stage.use(Write(), file_path="n" * 300, content="").success is False
    assert sorted(path.name for path in stage.directory.iterdir()) == ["file", "folder"]


def test_a_read_only_file_is_not_replaced(stage: Stage) -> None:
    target = stage.directory / "fixed"
    target.write_text("a")
    target.chmod(0o444)

    outcome = stage.use(Write(), file_path="fixed", content="b")

    if os.access(target, os.W_OK):  # nothing is read-only for root
        assert outcome.success
    else:
        assert (outcome.success, outcome.error) == (False, "fixed: the file is read-only")
        assert target.read_text() == "a"


def test_edit_changes_the_one_place(stage: Stage) -> None:
    (stage.directory / "code.py").write_text("x = 1\ny = 2\n")

    outcome = stage.use(Edit(), file_path="code.py", old_string="y = 2", new_string="y = 3")

    assert (outcome.success, outcome.result) == (True, "changed 1 place in code.py")
    assert (stage.directory / "code.py").read_text() == "x = 1\ny = 3\n"


def test_edit_changes_every_place_when_asked(stage: Stage) -> None:
    (stage.directory / "text").write_text("a b a b a")

    outcome = stage.use(Edit(), file_path="text", old_string="a", new_string="", replace_all=True)

    assert outcome.result == "changed 3 places in text"
    assert (stage.directory / "text").read_text() == " b  b "


def test_edit_leaves_bytes_that_are_not_text_as_they_are(stage: Stage) -> None:
    (stage.directory / "mixed").write_bytes(b"\xff\0one\xfe")

    assert stage.use(Edit(), file_path="mixed", old_string="one", new_string="zwö").success
    assert (stage.directory / "mixed").read_bytes() == b"\xff\0" + "zwö".encode() + b"\xfe"


@pytest.mark.parametrize(
    ("content", "old", "new", "error"),
    [
        ("abc", "x", "y", "file does not contain 'old_string'"),
        ("a\r\nb\r\n", "a\nb", "y", "file does not contain 'old_string'; its lines end with CRLF"),
        ("aba", "a", "y", "file contains 'old_string' more than once"),
        ("aaa", "aa", "y", "file contains 'old_string' more than once"),
        ("abc", "", "y", "Edit: 'old_string' is empty"),
        ("abc", "a", "a", "Edit: 'old_string' and 'new_string' are the same"),
        ("abc", "a", "\ud800", "Edit: the strings are not text"),
    ],
)
def test_edit_that_is_not_clear_changes_nothing(
    stage: Stage, content: str, old: str, new: str, error: str
) -> None:
    (stage.directory / "file").write_bytes(content.encode())

    outcome = stage.use(Edit(), file_path="file", old_string=old, new_string=new)

    assert outcome.success is False
    assert (outcome.error or "").startswith(error)
    assert (stage.directory / "file").read_bytes() == content.encode()


@pytest.mark.parametrize("tool", [Read(), Edit()], ids=["Read", "Edit"])
def test_a_file_that_is_not_there_is_a_failure(stage: Stage, tool: Tool) -> None:
    more = {"old_string": "a", "new_string": "b"} if tool.name == "Edit" else {}

    outcome = stage.use(tool, file_path="missing/file", **more)

    assert (outcome.success, outcome.error) == (False, "there is no file missing/file")


@every_tool
@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "sub/../../outside.txt",
        "{outside}",
        "/etc/passwd",
        "link-to-file",
        "link-to-directory/outside.txt",
        "chain",
        "../workspace-2/file",
    ],
)
def test_a_path_outside_the_working_directory_is_refused(
    stage: Stage, tool: Tool, more: dict[str, str], path: str
) -> None:
    outside = stage.directory.parent / "outside.txt"
    outside.write_text("a")
    (stage.directory / "sub").mkdir()
    (stage.directory / "link-to-file").symlink_to(outside)
    (stage.directory / "link-to-directory").symlink_to(stage.directory.parent)
    (stage.directory / "chain").symlink_to("link-to-file")
    before = sorted(stage.directory.parent.rglob("*"))

    outcome = stage.use(tool, file_path=path.format(outside=outside), **more)

    assert outcome.success is False
    assert (outcome.error or "").endswith("is outside the working directory")
    assert outside.read_text() == "a"
    assert sorted(stage.directory.parent.rglob("*")) == before


@every_tool
def test_an_absolute_path_inside_is_fine_also_where_the_directory_is_a_link(
    stage: Stage, tool: Tool, more: dict[str, str]
) -> None:
    (stage.directory / "file").write_text("a")
    link = stage.directory.parent / "linked"
    link.symlink_to(stage.directory)

    for root in (stage.directory, link):
        (stage.directory / "file").write_text("a")
        assert (
            replace(stage, directory=link).use(tool, file_path=str(root / "file"), **more).success
        )


@every_tool
@pytest.mark.parametrize(
    "path", ["", "a\0b", "loop", "\ud800", "loop/../out", "missing/../loop/../out"]
)
def test_an_impossible_path_is_a_failure(
    stage: Stage, tool: Tool, more: dict[str, str], path: str
) -> None:
    outside = stage.directory.parent / "outside.txt"
    outside.write_text("a")
    (stage.directory / "loop").symlink_to("loop")
    (stage.directory / "out").symlink_to(outside)

    assert stage.use(tool, file_path=path, **more).success is False
    assert outside.read_text() == "a"


inputs = st.dictionaries(
    st.sampled_from(
        ["file_path", "content", "old_string", "new_string", "replace_all", "offset", "limit", "x"]
    ),
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(["a.txt", ".", "..", "/", "a.txt/b"]),
        st.integers(-2, 3),
        st.booleans(),
        st.none(),
        st.lists(st.integers(), max_size=1),
    ),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(inputs=st.lists(inputs, min_size=1, max_size=5))
def test_no_input_makes_a_file_tool_raise_or_leave_its_directory(
    stage: Stage, inputs: list[dict[str, Any]]
) -> None:
    async def try_all() -> None:
        for input in inputs:
            for tool, more in FILE_TOOLS:
                outcome = await tool.run({**more, **input}, stage.context())
                assert outcome.success is (outcome.error is None)

    if stage.keepers.place.is_container:
        inputs = inputs[:1]  # each is three processes

    (stage.directory / "a.txt").write_text("a")
    anyio.run(try_all)

    parent: Path = stage.directory.parent
    assert [path.name for path in parent.iterdir()] == [stage.directory.name]
    assert not list(stage.directory.rglob("*.tmp"))
