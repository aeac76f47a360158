"""Documents as tests see them: their fenced blocks, the commands in those, and what each should print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)\s*$")
FILE_NAME = re.compile(r"`(?P<name>[\w./-]+)`:$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block; `file` when the line before it names the file that holds this text."""

    language: str
    line: int
    text: str
    file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a `console` block and the output shown below it; empty means that none is shown.

    A whole `sh` block is one command, and `is_script`.
    """

    line: int
    text: str
    expected: str
    is_script: bool = False


def blocks(document: Path) -> Iterator[Block]:
    """The fenced blocks of a document, from top to bottom."""
    lines = iter(enumerate(document.read_text().splitlines(), start=1))
    before = ""
    for number, line in lines:
        opening = FENCE.match(line)
        if opening is None:
            before = line.strip() or before
            continue
        indent = len(opening["indent"])
        body: list[str] = []
        for _, inner in lines:
            if inner.strip() == "```":
                break
            body.append(inner[indent:])
        else:
            raise ValueError(f"{document.name}:{number}: the block is never closed")
        named = FILE_NAME.search(before)
        yield Block(
            language=opening["language"],
            line=number,
            text="".join(f"{text}\n" for text in body),
            file=named["name"] if named else None,
        )
        before = ""


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block: lines after `$ ` with their output, or in `sh` the whole block as one."""
    if block.language == "sh":
        yield Command(line=block.line, text=block.text, expected="", is_script=True)
        return
    lines = block.text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or starts[0] != 0:
        raise ValueError(f"the console block of line {block.line} does not begin with '$ '")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = lines[start + 1 : end]
        while body and body[-1] == "":
            body.pop()
        text = lines[start][2:]
        while text.endswith("\\"):
            text += "\n" + body.pop(0).removeprefix("> ")
        expected = "".join(f"{line}\n" for line in body)
        yield Command(line=block.line + start + 1, text=text, expected=expected)


def matches(expected: str, actual: str) -> bool:
    """Whether `actual` is what is shown: `...` stands for anything in its line, alone for any lines."""
    pattern = ""
    for line in expected.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"\n"
    cleaned = "".join(f"{line.rstrip()}\n" for line in actual.rstrip("\n").splitlines())
    return re.fullmatch(pattern, cleaned) is not None
