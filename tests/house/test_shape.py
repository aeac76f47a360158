"""The shape of the source: small modules, short functions, words at the top, nothing hidden or unfinished."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MODULE_LINES = 400
TEST_MODULE_LINES = 600
CLASS_LINES = 300
FUNCTION_LINES = 60

LOADERS = (
    "src/nightherd/__init__.py",
    "src/nightherd/cli/lazy.py",
    "src/nightherd/testing/fork_process.py",
)
"""Where modules may be imported by name on first use."""

LAZY = ("src/nightherd/wiring/", "src/nightherd/cli/", "src/nightherd/daemon/worker_service.py")
"""Where functions may import what they use: adapters are chosen there, and commands start in milliseconds."""

VAGUE_NAMES = {"utils", "helpers", "common", "base", "core", "manager", "service", "handler"}

# Spelled so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:root|work)/\w")
PERSONAL_PATH = re.compile(r"/(?:home|Users)/\w")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|Not" r"ImplementedError)\b")
MOCKS = re.compile(
    r"\bunittest\." r"mock|\bfrom unittest import|pytest\.mark\.(?:sk" r"ip|xf" r"ail)"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(repository: Path, *rooms: str) -> Iterator[tuple[str, Path]]:
    for room in rooms:
        for path in sorted((repository / room).rglob("*.py")):
            yield str(path.relative_to(repository)), path


def trees(repository: Path, *rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for name, path in python_files(repository, *rooms):
        yield name, parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    """Return the tree of a file, parsed once for all tests."""
    return ast.parse(path.read_text())


def length(node: Function | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_modules_stay_short_enough_to_read(repository: Path) -> None:
    limits = {"src": MODULE_LINES, "benchmarks": MODULE_LINES, "tests": TEST_MODULE_LINES}

    too_long = [
        f"{name}: {count} lines"
        for room, limit in limits.items()
        for name, path in python_files(repository, room)
        if (count := len(path.read_text().splitlines())) > limit
    ]

    assert too_long == []


def test_functions_and_classes_stay_short_enough_to_read(repository: Path) -> None:
    limits = {ast.FunctionDef: FUNCTION_LINES, ast.AsyncFunctionDef: FUNCTION_LINES}

    too_long = [
        f"{name}:{node.lineno}: {node.name} has {length(node)} lines"
        for name, tree in trees(repository, "src", "benchmarks", "scripts")
        for node in ast.walk(tree)
        if isinstance(node, Function | ast.ClassDef)
        and length(node) > limits.get(type(node), CLASS_LINES)
    ]

    assert too_long == []


def test_imports_stand_at_the_top_of_their_module(repository: Path) -> None:
    hidden = [
        f"{name}:{node.lineno}"
        for name, tree in trees(repository, "src")
        if not name.startswith(LAZY)
        for function in ast.walk(tree)
        if isinstance(function, Function)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert hidden == []


def test_modules_are_loaded_by_name_only_where_laziness_lives(repository: Path) -> None:
    loaders = [
        name
        for name, tree in trees(repository, "src")
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "import_module")
        or (isinstance(node, ast.Name) and node.id in {"import_module", "__import__"})
    ]

    assert [name for name in loaders if not name.startswith(LOADERS)] == []


def test_every_module_says_what_it_is_for(repository: Path) -> None:
    silent = [
        name
        for name, path in python_files(repository, "src", "tests", "benchmarks", "scripts")
        if not re.match(r'(?:#.*\n)*r?"""[^"\s]', path.read_text())
    ]

    assert silent == []


def test_modules_are_named_for_what_they_hold(repository: Path) -> None:
    vague = [
        name for name, path in python_files(repository, "src") if path.stem.lower() in VAGUE_NAMES
    ]

    assert vague == []


def test_test_modules_have_names_of_their_own(repository: Path) -> None:
    names = [
        path.name
        for _, path in python_files(repository, "tests")
        if path.stem not in {"__init__", "conftest"}
    ]

    assert sorted(names) == sorted(set(names))


def test_nothing_unfinished_is_left_in_the_package(repository: Path) -> None:
    found = [
        name
        for name, path in python_files(repository, "src", "benchmarks", "scripts")
        if UNFINISHED.search(path.read_text())
    ]

    assert found == []


def test_no_test_replaces_our_own_code_or_looks_away(repository: Path) -> None:
    found = [
        name
        for name, path in python_files(repository, "src", "tests")
        if MOCKS.search(path.read_text())
    ]

    assert found == []


def test_no_file_names_the_machine_it_was_written_on(repository: Path) -> None:
    files = [path for _, path in python_files(repository, "src", "tests", "benchmarks", "scripts")]
    documents = [*repository.glob("*.md"), *repository.glob("docs/**/*.md")]

    named = [
        str(path.relative_to(repository))
        for path in (*files, *documents)
        if MACHINE_PATH.search(text := path.read_text())
        or (path.is_relative_to(repository / "src") and PERSONAL_PATH.search(text))
    ]

    assert named == []
