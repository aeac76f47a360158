"""A folder of configuration files, and the two questions tests ask of it: does it load, what is wrong."""

from __future__ import annotations

import textwrap
from pathlib import Path

from nightherd.config.load import CheckedFleet, LoadedFleet
from nightherd.model.agents.agent import Agent
from nightherd.model.problem import Problem, Severity
from nightherd.wiring.fleets import check_fleet, load_fleet


class Folder:
    """Writes files below one directory and loads the fleet in it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def fleet(self, text: str) -> Folder:
        self.write("nightherd.yaml", text)
        return self

    def check(self, path: str = "nightherd.yaml", **environ: str) -> CheckedFleet:
        return check_fleet(self.root / path, environ=environ, cwd=self.root)

    def load(self, **environ: str) -> LoadedFleet:
        return load_fleet(self.root / "nightherd.yaml", environ=environ, cwd=self.root)

    def agent(self, name: str, **environ: str) -> Agent:
        return self.load(**environ).fleet.agents[name]

    def errors(self, **environ: str) -> list[str]:
        """Each error as `file:line:column message`."""
        return [self.line(one) for one in self.found(Severity.ERROR, **environ)]

    def notices(self, **environ: str) -> list[str]:
        return [self.line(one) for one in self.found(Severity.NOTICE, **environ)]

    def found(self, severity: Severity = Severity.ERROR, **environ: str) -> list[Problem]:
        return [one for one in self.check(**environ).problems if one.severity is severity]

    def line(self, problem: Problem) -> str:
        file = Path(problem.place.file).relative_to(self.root)
        return f"{file}:{problem.place.line}:{problem.place.column} {problem.message}"
