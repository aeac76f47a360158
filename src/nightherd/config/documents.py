"""Reading a configuration file: a bounded amount of UTF-8 from a regular file, or a plain reason why not."""

from __future__ import annotations

import os
import stat

from nightherd.config.merge import real_path
from nightherd.config.report import Findings
from nightherd.config.wording import SHOWN_PATH_LIMIT
from nightherd.files.yaml_load import compose, forbidden_character
from nightherd.files.yaml_nodes import MappingNode, Node, ScalarNode, Source, Spot, problem_at
from nightherd.model.problem import Problem
from nightherd.model.text import quote

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
