"""Glob and Grep: what they find, what they leave alone, and that no pattern holds up the worker."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from nightherd.model.children import TOOL as SPAWN
from nightherd.model.inbox.review import ASK_PERSON
from nightherd.runtimes.tools import search
from nightherd.runtimes.tools.search import NOTHING, Glob, Grep
from nightherd.runtimes.tools.search_program import glob_pattern
from nightherd.runtimes.tools.toolbox import STANDARD, standard_tools
from runtimes.stage import Stage


@pytest.fixture
def stage(stage_anywhere: Stage) -> Stage:
    """Every test runs with the tools on this machine, and as programs that stand for tools in a container."""
    return stage_anywhere


@pytest.fixture
def tree(stage: Stage) -> Stage:
    """A few files to search in."""
    for name, text in {
        "readme.md": "Hello\nLATER: write\n",
        "src/a.py": "import os\n# later on\n",
        "src/deep/b.py": "x = 1\n",
        "src/deep/c.txt": "x = 2\n",
        ".git/config": "LATER\n",
    }.items():
        path = stage.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return stage


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.py", ["src/a.py", "src/deep/b.py"]),
        ("*.md", ["readme.md"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**", ["src/a.py", "src/deep/b.py", "src/deep/c.txt"]),
        ("src/deep/?.{py,txt}", ["src/deep/b.py", "src/deep/c.txt"]),
        ("src/deep/[!b].*", ["src/deep/c.txt"]),
        ("*.rs", [NOTHING]),
    ],
)
def test_glob_finds_files_by_their_paths(tree: Stage, pattern: str, found: list[str]) -> None:
    outcome = tree.use(Glob(), pattern=pattern)

    assert outcome.success, outcome.error
    assert (outcome.result or "").splitlines() == found


def test_glob_looks_in_a_directory(tree: Stage) -> None:
    assert tree.use(Glob(), pattern="*.py", path="src").result == "src/a.py\n"


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, ["readme.md:2:LATER: write"]),
        ({"ignore_case": True}, ["readme.md:2:LATER: write", "src/a.py:2:# later on"]),
        ({"ignore_case": True, "mode": "files"}, ["readme.md", "src/a.py"]),
        ({"ignore_case": True, "mode": "count"}, ["readme.md:1", "src/a.py:1"]),
        ({"ignore_case": True, "glob": "*.py"}, ["src/a.py:2:# later on"]),
        ({"ignore_case": True, "path": "readme.md"}, ["readme.md:2:LATER: write"]),
        ({"path": "src/deep"}, [NOTHING]),
    ],
)
def test_grep_finds_lines(tree: Stage, more: dict[str, object], found: list[str]) -> None:
    outcome = tree.use(Grep(), pattern="LATER", **more)

    assert outcome.success, outcome.error
    assert (outcome.result or "").splitlines() == found


def test_binary_files_pipes_and_links_out_are_left_alone(stage: Stage, tmp_path: Path) -> None:
    (stage.directory / "binary").write_bytes(b"needle\0")
    os.mkfifo(stage.directory / "pipe")
    (tmp_path / "secret.txt").write_text("needle\n")
    (stage.directory / "link.txt").symlink_to(tmp_path / "secret.txt")
    (stage.directory / "odd.txt").write_bytes(b"needle \xff\n")

    outcome = stage.use(Grep(), pattern="needle")

    assert outcome.result == "odd.txt:1:needle �\n"


def test_what_is_found_is_bounded(stage: Stage) -> None:
    (stage.directory / "many.txt").write_text("needle\n" * 5_000)
    (stage.directory / "wide.txt").write_text("needle" * 10_000)

    many = stage.use(Grep(), pattern="needle", path="many.txt").result or ""
    wide = stage.use(Grep(), pattern="needle", path="wide.txt").result or ""

    assert many.splitlines()[-1] == "[... more than 1,000; search for less ...]"
    assert len(wide) < 1_000


@pytest.mark.parametrize(
    ("input", "told"),
    [
        ({}, "needs the input 'pattern'"),
        ({"pattern": "["}, "is not a pattern"),
        ({"pattern": "x", "mode": "lines"}, "'mode' must be one of"),
        ({"pattern": "x", "path": "absent"}, "there is nothing at absent"),
        ({"pattern": "x", "path": "../.."}, "outside the working directory"),
        ({"pattern": "x", "fuzzy": True}, "has no input 'fuzzy'"),
    ],
)
def test_a_search_that_cannot_be_made_says_why(
    tree: Stage, input: dict[str, object], told: str
) -> None:
    outcome = tree.use(Grep(), **input)

    assert not outcome.success
    assert told in (outcome.error or "")


def test_a_pattern_that_never_ends_is_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SEARCH_LIMIT", timedelta(seconds=1))
    (stage.directory / "trap.txt").write_text("a" * 200 + "!\n")

    outcome = stage.use(Grep(), pattern="(a+)+$")

    assert outcome.error == "stopped: the search took too long"


def test_a_glob_means_whole_paths() -> None:
    assert glob_pattern("a.py").match("a.py")
    assert not glob_pattern("a.py").match("a.pyc")
    assert not glob_pattern("*.py").match("src/a.py")


def test_models_are_told_about_every_tool() -> None:
    assert set(STANDARD) == {tool.name for tool in standard_tools()} | {SPAWN, ASK_PERSON}
    for described in STANDARD.values():
        properties = described.input_schema["properties"]
        assert set(described.input_schema["required"]) <= set(properties)


@pytest.mark.parametrize("tool", standard_tools(), ids=lambda tool: str(tool.name))
def test_a_tool_takes_what_models_are_told_it_takes(stage: Stage, tool: object) -> None:
    """An input with every name that is described is never refused for one of its names."""
    name = tool.name  # type: ignore[attr-defined]
    given = dict.fromkeys(STANDARD[name].input_schema["properties"], object())

    outcome = stage.use(tool, **given)  # type: ignore[arg-type]

    assert "has no input" not in (outcome.error or "")
