"""Documents: the files of one load, each read and composed once, problems found on the way."""

from __future__ import annotations

from nightherd.config.compose import compose
from nightherd.config.findings import Findings
from nightherd.config.node import Node, Source, Spot, problem_at
from nightherd.config.paths import real_path
from nightherd.config.source import UnreadableError, decode, read_bytes
from nightherd.config.wording import SHOWN_PATH_LIMIT, quote
from nightherd.model.problem import Problem


class Documents:
    """Opens files for one load. A file that cannot be used is found where it was named."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._composed: dict[str, Node | None] = {}

    def open(self, path: str, *, named_by: Node | None = None, where: str = "") -> Node | None:
        """The document in the file at `path`; None when there is none, which is then found and told."""
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
