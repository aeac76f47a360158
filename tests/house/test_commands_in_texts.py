"""Only the command line names shell commands: other rooms give a `NextStep`, and each surface spells it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from nightherd.cli.main import COMMANDS
from nightherd.next_step import PLAIN, Action

OUTER = {"cli", "__main__.py"}
"""What may name commands: their own room, and the program's entry."""
ALLOWED = {
    "config/json_schema.py": "a title, `nightherd agent file`, and no command",
    "daemon/systemd.py": "the unit file names the command that wrote it, and a person at a shell reads it",
}
"""Files that may name a command, each with the reason."""
COMMAND = re.compile(rf"\bnightherd (?:-\S+ )*(?:{'|'.join(sorted(COMMANDS))}|--\w+)\b")


def docstrings(tree: ast.Module) -> set[int]:
    """Return the strings that stand alone: they are for readers of the code."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def commands_in(source: str) -> Iterator[str]:
    """Yield every string of a module that names a command, except its docstrings."""
    tree = ast.parse(source)
    skipped = docstrings(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in skipped:
            continue
        if isinstance(node.value, str) and COMMAND.search(node.value):
            yield f"{node.lineno}: {node.value}"


def test_only_the_command_line_names_commands(repository: Path) -> None:
    package = repository / "src/nightherd"
    named: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        texts = list(commands_in(path.read_text()))
        if texts and name.parts[0] not in OUTER:
            named[str(name)] = texts

    assert {name: texts for name, texts in named.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(named), "a file that names no command needs no exception"


def test_command_in_a_text_is_found_and_one_in_a_docstring_is_not() -> None:
    source = '''
"""Rooms may say `nightherd doctor` here."""
HINT = "check it: nightherd doctor"
def hint(job):
    """Return what `nightherd jobs show` prints."""
    return f"run nightherd jobs show {job}, or pip install nightherd"
'''

    assert [text.partition(":")[0] for text in commands_in(source)] == ["3", "6"]


def test_every_action_has_plain_words_without_a_command() -> None:
    assert set(PLAIN) == set(Action)
    assert [words for words in PLAIN.values() if "nightherd" in words] == []
