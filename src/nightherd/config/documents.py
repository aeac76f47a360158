"""Reading a configuration file: a bounded amount of UTF-8 from a regular file, or a plain reason why not.

Variables are filled in before anything is checked: numbers and choices can come from the environment.
`${NAME}` and `${NAME:-default}` are filled in, `$${` writes `${` itself, anything else stays as it is.
The run-time places of prompts and scripts (model/text.py) are left for the job to fill in.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from nightherd.config.merge import real_path
from nightherd.config.report import Findings
from nightherd.config.wording import SHOWN_PATH_LIMIT
from nightherd.files.yaml_load import compose, forbidden_character
from nightherd.files.yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Source,
    Spot,
    place_of,
    problem_at,
    text_of,
)
from nightherd.model.problem import Problem
from nightherd.model.text import RUN_TIME_NAMES, quote

LARGEST_FILE_BYTES = 10_000_000
REASONS = {
    FileNotFoundError: "there is no such file",
    IsADirectoryError: "it is a directory, not a file",
    NotADirectoryError: "a part of its path is not a directory",
    PermissionError: "it may not be read (permission denied)",
}


class UnreadableError(Exception):
    """The file cannot be read; the message says why. The caller adds the place that names the file."""


def read_bytes(path: str) -> bytes:
    """The bytes of the regular file at `path`, or `UnreadableError` with a reason in plain words."""
    if "\0" in path:
        raise UnreadableError("its name has a NUL character")
    try:
        info = os.stat(path)  # noqa: PTH116 (the path stays text: names may be any length or shape)
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(info.st_mode):
            raise UnreadableError("it is not a regular file")
        with open(path, "rb") as file:  # noqa: PTH123
            content = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        reason = REASONS.get(type(error)) or (error.strerror or "it cannot be read").lower()
        if isinstance(error, FileNotFoundError) and os.path.islink(path):  # noqa: PTH114
            reason = "it is a symbolic link to a missing file"
        raise UnreadableError(reason) from error
    if len(content) > LARGEST_FILE_BYTES:
        raise UnreadableError("it is larger than 10 MB, the maximum for a configuration file")
    return content


def decode(path: str, content: bytes) -> tuple[Source, str] | Problem:
    """The text of a file that was read, or the place of what is not text in it."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", errors="replace")
        spot = end_of(path, before)
        return problem_at(spot, f"not UTF-8 text: byte 0x{content[error.start]:02x}")
    place = forbidden_character(text)
    if place is not None:
        spot = end_of(path, text[:place])
        return problem_at(
            spot, f"the character U+{ord(text[place]):04X} is not allowed in a text file"
        )
    return Source.of_text(path, text), text


def end_of(path: str, text: str) -> Spot:
    """The spot right behind `text`, in a source that quotes no lines: what follows may be anything."""
    lines = Source.of_text(path, text).lines
    return Spot(Source(path, ()), len(lines), len(lines[-1]) + 1)


class Documents:
    """Opens files for one load. A file that cannot be used is found where it was named."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._composed: dict[str, Node | None] = {}

    def open(self, path: str, *, named_by: Node | None = None, where: str = "") -> Node | None:
        """The document in the file at `path`; None when there is none, which is then reported."""
        real = real_path(path)
        if real not in self._composed:
            self._composed[real] = self._read(path, named_by, where)
        return self._composed[real]

    def _read(self, path: str, named_by: Node | None, where: str) -> Node | None:
        self.findings.opened(path)
        beginning = Spot(Source(path, ()), 1, 1)
        try:
            content = read_bytes(path)
        except UnreadableError as error:
            if named_by is None:
                self.findings.add(problem_at(beginning, f"the file cannot be read: {error}"))
            else:
                message = f"the file {quote(shown_name(path, named_by), limit=SHOWN_PATH_LIMIT)} cannot be read: {error}"
                self.findings.add(problem_at(named_by, message, path=where))
            return None
        decoded = decode(path, content)
        if isinstance(decoded, Problem):
            self.findings.add(decoded)
            return None
        source, text = decoded
        document, problems = compose(source, text)
        self.findings.extend(problems)
        if document is None and not problems:
            self.findings.add(problem_at(beginning, "the file is empty"))
        return document


def shown_name(path: str, named_by: Node) -> str:
    """The file's name for people: as it was written, so that what came from the environment stays hidden."""
    return getattr(named_by, "shown", path)


MOST_MERGED_VALUES = 2_000_000


def count_values(node: Node) -> int:
    """How many values a node stands for, itself included."""
    if isinstance(node, ScalarNode):
        return 1
    if isinstance(node, MappingNode):
        return 1 + sum([count_values(entry.value) for entry in node.entries.values()])
    return 1 + sum([count_values(item) for item in node.items])


class Budget:
    """How many values one load may still check."""

    def __init__(self, values: int = MOST_MERGED_VALUES) -> None:
        self.left = values

    def spend(self, node: Node) -> bool:
        """Count the node in; False when it is too much."""
        if self.left >= 0:
            self.left -= count_values(node)
        return self.left >= 0


VARIABLE = re.compile(
    r"(?P<escape>\$\$\{)"
    r"|\$\{(?:(?P<input>inputs\.[A-Za-z0-9_-]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^{}]*)?)\}"
)
TEMPLATE_KEYS = frozenset({"prompt", "default_prompt", "system_prompt", "script", "channel"})
"""Below these keys a text may have places that the job fills in."""

Path = tuple[str, ...]


class Interpolation:
    """Fills one document in from one environment; what it cannot fill in is found and left."""

    def __init__(self, environ: Mapping[str, str], findings: Findings) -> None:
        self.environ = environ
        self.findings = findings

    def fill(self, node: Node, path: Path = (), *, template: bool = False) -> Node:
        """`node` with its variables filled in; the node itself when it has none."""
        if isinstance(node, ScalarNode):
            return self.scalar(node, path, template=template) if "${" in node.text else node
        if isinstance(node, MappingNode):
            return self.mapping(node, path, template=template)
        items = [
            self.fill(item, (*path, item_name(item, index)), template=template)
            for index, item in enumerate(node.items)
        ]
        unchanged = all(new is old for new, old in zip(items, node.items, strict=True))
        return node if unchanged else SequenceNode(node.spot, tuple(items))

    def mapping(self, node: MappingNode, path: Path, *, template: bool) -> MappingNode:
        """A mapping with its values filled in; keys stay as they are."""
        changed: dict[str, Entry] = {}
        for key, entry in node.entries.items():
            if holds_workflows((*path, key)):
                continue
            value = self.fill(entry.value, (*path, key), template=template or key in TEMPLATE_KEYS)
            if value is not entry.value:
                changed[key] = Entry(entry.key, value)
        return MappingNode(node.spot, {**node.entries, **changed}) if changed else node

    def scalar(self, node: ScalarNode, path: Path, *, template: bool) -> ScalarNode:
        """A text with its variables filled in."""
        filled = secret = unknown = False
        reported: set[str] = set()

        def replace(match: re.Match[str]) -> str:
            nonlocal filled, secret, unknown
            if match["escape"]:
                return "${"
            if match["input"] or match["name"] in RUN_TIME_NAMES:
                if match[0] not in reported and not self.findings.full:
                    reported.add(match[0])
                    self.check_place(node, match, path, template=template)
                return match[0]
            value = self.environ.get(match["name"])
            trouble = trouble_with(match["name"], value, has_default=match["default"] is not None)
            if trouble is not None:
                # Once for each text: a variable that is used a thousand times is still one mistake.
                if match[0] not in reported and not self.findings.full:
                    reported.add(match[0])
                    where = spot_of(node, match[0])
                    message, hint = trouble
                    self.findings.add(problem_at(where, message, path=".".join(path), hint=hint))
                    unknown = True
                return match[0]
            filled = True
            secret = secret or value is not None
            return match["default"][2:] if value is None else value

        text = VARIABLE.sub(replace, node.text)
        if unknown:
            self.findings.value_unknown(place_of(node.spot))
        if not filled:
            return node if text == node.text else ScalarNode(node.spot, text, node.plain)
        return ScalarNode(node.spot, text, node.plain, node.text, secret)

    def check_place(
        self, node: ScalarNode, match: re.Match[str], path: Path, *, template: bool
    ) -> None:
        """A run-time place may only stand in a template, and takes no default."""
        place = match["input"] or match["name"]
        if not template:
            message = f"${{{place}}} is a value of the job; only prompts and scripts can use it"
        elif match["default"]:
            message = f"${{{place}}} is a value of the job and takes no default"
        else:
            return
        spot = spot_of(node, match[0])
        self.findings.add(problem_at(spot, message, path=".".join(path)))


def holds_workflows(path: Path) -> bool:
    """Whether workflows stand at a path of a fleet file: their expressions look like variables."""
    if path[-1] != "workflows":
        return False
    return len(path) == 1 or (path[0] == "fleets" and path[2:-1] == ("overrides",))


def trouble_with(
    name: str, value: str | None, *, has_default: bool
) -> tuple[str, str | None] | None:
    """Why a variable cannot be filled in, and what to do about it; None when it can."""
    if value is None:
        hint = f"set {name}, write it into .env, or give a default: ${{{name}:-default}}"
        return None if has_default else (f"the variable {name} is not set", hint)
    # The environment may hold any bytes; what is not text there arrives as lone surrogates.
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        return f"the variable {name} does not hold UTF-8 text", None
    return None


def item_name(item: Node, index: int) -> str:
    """What an item of a list is called in a path: by its name when it has one."""
    name = text_of(item.get("name")) if isinstance(item, MappingNode) else None
    return str(index) if name is None else name


def spot_of(node: ScalarNode, text: str) -> Spot:
    """Where `text` stands inside a scalar: the variable itself, when its line has it as it is."""
    spot = node.spot
    lines = spot.source.lines
    for number in range(spot.line, min(spot.line + node.text.count("\n") + 2, len(lines) + 1)):
        start = spot.column - 1 if number == spot.line else 0
        found = lines[number - 1].find(text, start)
        if found >= 0:
            return Spot(spot.source, number, found + 1, len(text))
    return spot


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
    # An escaped quote does not close: continue to the next line that has one, a few times at most.
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
