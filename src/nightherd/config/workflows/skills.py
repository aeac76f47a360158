"""Skills of phases: their texts are read when the workflow is loaded, so that a run keeps what it began with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from nightherd.config.documents import UnreadableError, decode, read_bytes
from nightherd.config.report import Findings
from nightherd.config.wording import SHOWN_PATH_LIMIT
from nightherd.config.workflows.sources import WorkflowHome
from nightherd.files.yaml_nodes import ScalarNode, problem_at
from nightherd.model.problem import Problem
from nightherd.model.text import quote

FILE = "SKILL.md"
FENCE = "---"
"""The line before and after front matter."""


class Skills(msgspec.Struct, frozen=True, kw_only=True):
    """Finds the skills that the workflows of one fleet file use."""

    findings: Findings
    home: WorkflowHome
    agents: Mapping[str, str | None]
    """The working directories of agents by qualified name; None for an agent that is broken."""

    def text(self, named_by: ScalarNode, agent: str, where: str) -> str:
        """Return what a skill says, without its front matter; what is wrong is shown where it is named.

        Every file that is looked for counts as a file of the fleet: one that appears there is a change.
        """
        name = named_by.text
        paths = list(dict.fromkeys(self.paths(name, agent)))
        for path in paths:
            self.findings.opened(path)
            try:
                content = read_bytes(path)
            except UnreadableError as error:
                if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                    continue
                shown = quote(path, limit=SHOWN_PATH_LIMIT)
                message = f"the skill file {shown} cannot be read: {error}"
                self.findings.add(problem_at(named_by, message, path=where))
                return ""
            return self.decoded(path, content, named_by, where)
        # Of an agent that is not known, something else is reported; its directory may have the skill.
        if self.agents.get(agent) is not None:
            message = f"there is no skill {quote(name)}"
            hint = f"looked for {', '.join(paths)}"
            self.findings.add(problem_at(named_by, message, path=where, hint=hint))
        return ""

    def paths(self, name: str, agent: str) -> Iterator[str]:
        """Yield the files that may hold the skill; the first that is there counts."""
        home, directory = self.home.directory, self.agents.get(agent)
        yield f"{home}/skills/{name}/{FILE}"
        yield f"{home}/.claude/skills/{name}/{FILE}"
        if directory is not None:
            yield f"{directory}/.claude/skills/{name}/{FILE}"

    def decoded(self, path: str, content: bytes, named_by: ScalarNode, where: str) -> str:
        """Return the text of a skill file that was read."""
        decoded = decode(path, content)
        if isinstance(decoded, Problem):
            self.findings.add(replace(decoded, path=where))
            return ""
        text = without_front_matter(decoded[1])
        if not text:
            shown = quote(path, limit=SHOWN_PATH_LIMIT)
            why = (
                "has no text" if text is not None else f"has front matter without a last '{FENCE}'"
            )
            message = f"the skill file {shown} {why}"
            self.findings.add(problem_at(named_by, message, path=where))
        return text or ""


def without_front_matter(text: str) -> str | None:
    """Return the text after the front matter, without white space around; None where that does not end."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return text.strip()
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[number + 1 :]).strip()
    return None
