"""A folder of workflow files, and the two questions tests ask of it: does it load, what is wrong."""

from __future__ import annotations

import textwrap
from pathlib import Path

from nightherd.config.documents import Budget, Documents
from nightherd.config.report import Findings
from nightherd.config.workflows.load import KnownNames, load_workflows
from nightherd.config.workflows.report import LoadedWorkflow
from nightherd.config.workflows.sources import WorkflowHome
from nightherd.files.yaml_nodes import MappingNode
from nightherd.model.problem import Problem
from nightherd.model.workflows.definition import WorkflowDefinition

KNOWN = KnownNames(agents=dict.fromkeys(("coder", "reviewer")), webhooks=("github",))


class WorkflowFolder:
    """Writes files below one directory and loads the workflows in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.findings = Findings()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(textwrap.dedent(text).encode())

    def workflow(self, text: str, name: str = "w") -> WorkflowFolder:
        self.write(f"workflows/{name}.yaml", text)
        return self

    def load(self) -> dict[str, LoadedWorkflow]:
        self.findings = Findings()
        documents = Documents(self.findings)
        fleet = self.root / "nightherd.yaml"
        document = documents.open(str(fleet)) if fleet.exists() else None
        inline = document.get("workflows") if isinstance(document, MappingNode) else None
        return load_workflows(
            [WorkflowHome(directory=str(self.root), inline=inline)],
            documents=documents,
            findings=self.findings,
            known=KNOWN,
            budget=Budget(),
            declared={},
        )

    def definition(self, name: str = "w") -> WorkflowDefinition:
        loaded = self.load()
        assert [self.line(problem) for problem in self.findings.errors] == []
        return loaded[name].definition

    def problems(self) -> list[Problem]:
        self.load()
        return list(self.findings.errors)

    def errors(self) -> list[str]:
        """Each error as `file:line:column message`."""
        return [self.line(problem) for problem in self.problems()]

    def notices(self) -> list[str]:
        self.load()
        return [self.line(problem) for problem in self.findings.notices]

    def line(self, problem: Problem) -> str:
        file = Path(problem.place.file).relative_to(self.root)
        return f"{file}:{problem.place.line}:{problem.place.column} {problem.message}"
