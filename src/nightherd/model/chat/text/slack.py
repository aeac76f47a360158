"""Markdown, as agents write it, converted to Slack's mrkdwn.

Slack has no headings, nested lists or tables: they become bold lines, indented bullets and code. What looks like
a mention is shown and pings nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nightherd.model.chat.text.slack_inline import (
    LOOKS_LIKE_A_BACKTICK,
    convert_inline,
    escape,
    plain_text,
)

RULE = "\u2500" * 12
BULLETS = ("\u2022", "\u25e6", "\u25aa")
WIDEST_CELL = 60

_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<text>.*?)(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-+)[ \t]*$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}(?:>[ \t]?)+(?P<text>.*)$")
_ITEM = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])[ \t]+(?P<text>.*)$")
_TASK = re.compile(r"^\[(?P<mark>[ xX])\][ \t]+")
_DELIMITER = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CELL_BORDER = re.compile(r"(?<!\\)\|")


def to_mrkdwn(markdown: str) -> str:
    """Return markdown as mrkdwn. A code block that is not closed yet is closed."""
    lines = markdown.replace("\r\n", "\n").expandtabs(4).split("\n")
    return "\n".join(_blocks(lines)).strip("\n")


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """Give the converted blocks of a text, one after the other."""
    paragraph: list[str] = []
    at = 0
    while at < len(lines):
        size, block = _block_at(lines, at, is_after_text=len(paragraph) == 1)
        if size == 0:
            paragraph.append(lines[at])
            at += 1
            continue
        if block is None and paragraph:  # an underline: what was above it is a heading
            yield _heading(paragraph.pop())
        elif paragraph:
            yield _paragraph(paragraph)
            paragraph = []
        if block is not None:
            yield block
        at += size
    if paragraph:
        yield _paragraph(paragraph)


def _block_at(lines: Sequence[str], at: int, *, is_after_text: bool) -> tuple[int, str | None]:
    """Return how many lines the block that begins here has, and what it becomes; 0 for a line of a paragraph."""
    line = lines[at]
    if fence := _FENCE.match(line):
        return _code(lines, at, fence["fence"])
    if heading := _HEADING.match(line):
        return 1, _heading(heading["text"])
    if is_after_text and _UNDERLINE.match(line):
        return 1, None
    if _RULE.match(line):
        return 1, RULE
    if _is_table(lines, at):
        return _table(lines, at)
    if quote := _QUOTE.match(line):
        return 1, f"> {_line(quote['text'])}".rstrip()
    if item := _ITEM.match(line):
        return _item(lines, at, item)
    if not line.strip():
        return 1, ""
    return 0, ""


def _paragraph(lines: Sequence[str]) -> str:
    return convert_inline("\n".join(line.strip() for line in lines))


def _line(text: str) -> str:
    """Convert one line, in which another block may begin."""
    if heading := _HEADING.match(text):
        return _heading(heading["text"])
    if item := _ITEM.match(text):
        return _item([text], 0, item)[1]
    return convert_inline(text)


def _heading(text: str) -> str:
    shown = escape(plain_text(text).strip().replace("*", "\u2217"))
    return f"*{shown}*" if shown else ""


def _code(lines: Sequence[str], at: int, fence: str) -> tuple[int, str]:
    closing = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    end = next((n for n in range(at + 1, len(lines)) if closing.match(lines[n])), len(lines))
    return end - at + 1, _code_block(lines[at + 1 : end])


def _code_block(lines: Sequence[str]) -> str:
    code = "\n".join(lines).replace("```", f"``{LOOKS_LIKE_A_BACKTICK}")
    return f"```\n{escape(code)}\n```"


def _item(lines: Sequence[str], at: int, item: re.Match[str]) -> tuple[int, str]:
    """One item of a list, with the lines of its paragraph."""
    text = [item["text"]]
    end = at + 1
    while end < len(lines) and lines[end].strip() and _is_plain(lines, end):
        text.append(lines[end].strip())
        end += 1
    level = len(item["indent"]) // 2 if len(item["indent"]) < 4 else len(item["indent"]) // 4 + 1
    level = min(level, 4)
    mark = item["mark"]
    if mark in "-*+":
        mark = BULLETS[min(level, len(BULLETS) - 1)]
    if task := _TASK.match(text[0]):
        mark = "\u2610" if task["mark"] == " " else "\u2611"
        text[0] = text[0][task.end() :]
    indent = "    " * level
    body = convert_inline("\n".join(text)).replace("\n", f"\n{indent}    ")
    return end - at, f"{indent}{mark} {body}"


def _is_plain(lines: Sequence[str], at: int) -> bool:
    patterns = (_FENCE, _HEADING, _RULE, _QUOTE, _ITEM)
    return not any(pattern.match(lines[at]) for pattern in patterns) and not _is_table(lines, at)


def _is_table(lines: Sequence[str], at: int) -> bool:
    if "|" not in lines[at] or at + 1 >= len(lines) or "|" not in lines[at + 1]:
        return False
    below = lines[at + 1]
    return bool(_DELIMITER.match(below)) and len(_cells(below)) == len(_cells(lines[at]))


def _table(lines: Sequence[str], at: int) -> tuple[int, str]:
    """A table becomes code with aligned columns: Slack has no tables."""
    end = at + 2
    while end < len(lines) and "|" in lines[end] and lines[end].strip():
        end += 1
    header = _cells(lines[at])
    rows = [header, *(_cells(line) for line in lines[at + 2 : end])]
    shown = [[_cell(row, column) for column in range(len(header))] for row in rows]
    widths = [min(WIDEST_CELL, max(len(row[n]) for row in shown)) for n in range(len(header))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
    text.insert(1, "  ".join("-" * max(1, width) for width in widths))
    return end - at, _code_block(text)


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip() for cell in _CELL_BORDER.split(inner)]


def _cell(row: Sequence[str], column: int) -> str:
    return plain_text(row[column]) if column < len(row) else ""
