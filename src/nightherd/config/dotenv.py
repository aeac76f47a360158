"""`.env`: variables that stand beside a fleet file. `NAME=value` lines, quotes, comments, `export`."""

from __future__ import annotations

import re

from nightherd.config.node import Source, Spot, problem_at
from nightherd.config.source import UnreadableError, decode, read_bytes
from nightherd.model.problem import Problem

ASSIGNMENT = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*")
IGNORED = re.compile(r"[ \t]*(?:#.*)?")
QUOTED = {"'": re.compile(r"'([^']*)'"), '"': re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)}
COMMENT = re.compile(r"(?:^|[ \t])#")
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_dotenv(path: str) -> tuple[dict[str, str], list[Problem]]:
    """The variables of the file at `path`, and what is wrong with it; a missing file has none."""
    try:
        content = read_bytes(path)
    except UnreadableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}, []
        spot = Spot(Source(path, ()), 1, 1)
        return {}, [problem_at(spot, f"the file cannot be read: {error}")]
    decoded = decode(path, content)
    if isinstance(decoded, Problem):
        return {}, [decoded]
    return parse_dotenv(path, decoded[1])


def parse_dotenv(path: str, text: str) -> tuple[dict[str, str], list[Problem]]:
    """The variables in `text`; of a name given twice the last counts.

    Lines with a mistake are located but not quoted: they may hold a secret.
    """
    values: dict[str, str] = {}
    problems: list[Problem] = []
    lines = text.replace("\r\n", "\n").split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        used = 1
        if IGNORED.fullmatch(line) is None:
            assignment = ASSIGNMENT.match(line)
            spot = Spot(Source(path, ()), number + 1, len(line) - len(line.lstrip()) + 1)
            if assignment is None:
                problems.append(problem_at(spot, "expected NAME=value"))
            elif line[assignment.end() :][:1] in QUOTED:
                found = quoted_value(lines, number, assignment.end())
                if found is None:
                    problems.append(problem_at(spot, "the quotes of this value do not end"))
                else:
                    values[assignment[1]], used = found
            else:
                values[assignment[1]] = COMMENT.split(line[assignment.end() :], maxsplit=1)[
                    0
                ].rstrip()
        number += used
    return values, problems


def quoted_value(lines: list[str], number: int, start: int) -> tuple[str, int] | None:
    """A value in quotes and how many lines it takes; None when nothing closes it or more follows it."""
    quote = lines[number][start]
    last = number
    while last < len(lines) and quote not in lines[last][start + 1 if last == number else 0 :]:
        last += 1
    # An escaped quote does not close: go on to the next line that has one, a few times at most.
    for end in range(last, min(last + 100, len(lines))):
        text = "\n".join(lines[number : end + 1])
        match = QUOTED[quote].match(text, start)
        if match is None:
            continue
        if IGNORED.fullmatch(text, match.end()) is None:
            return None
        value = match[1]
        if quote == '"':
            value = ESCAPED.sub(lambda one: ESCAPES.get(one[1], one[1]), value)
        return value, end - number + 1
    return None
