"""Every command is described in the guide, and every document a command prints in its format page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from nightherd.cli.main import nightherd


def commands(group: click.Group, path: str) -> Iterator[str]:
    """The full name of every command below `group`."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, f"{path} {name} is listed and cannot be loaded"
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


def printed_nouns(package: Path) -> set[str]:
    """The nouns of the schemas that a surface's source names."""
    nouns: set[str] = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case (
                    ast.Call(
                        func=ast.Attribute(attr="document") | ast.Name(id="document"),
                        args=[ast.Constant(value=str(noun)), *_],
                    )
                    | ast.Call(
                        func=ast.Name(id="document"), args=[_, ast.Constant(value=str(noun)), *_]
                    )
                ):
                    nouns.add(noun)
                case _:
                    pass
    return nouns


def test_every_command_is_in_the_guide(repository: Path) -> None:
    page = (repository / "docs/guide/commands.md").read_text()
    known = list(commands(nightherd, "nightherd"))

    assert "nightherd jobs list" in known
    assert [command for command in known if f"`{command}" not in page] == []


def test_every_command_in_the_guide_exists(repository: Path) -> None:
    page = (repository / "docs/guide/commands.md").read_text()
    first_words = set(re.findall(r"^\| `nightherd (\w+)", page, re.MULTILINE))

    assert first_words == {command.split()[1] for command in commands(nightherd, "nightherd")}


def test_every_schema_that_is_printed_is_described(repository: Path) -> None:
    printed = printed_nouns(repository / "src/nightherd/cli")
    answered = printed_nouns(repository / "src/nightherd/web")
    page = (repository / "docs/formats/cli-json.md").read_text()
    described = set(re.findall(r"^\| `nightherd/v1/(\w+)` ", page, re.MULTILINE))

    assert printed >= {"error", "job", "jobs", "run"}
    assert answered >= {"job", "run_events"}
    assert printed | answered == described
