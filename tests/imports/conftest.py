"""An importing command in a directory of its own, and the trees it reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from imports.foreign_trees import ClaudeTree, HerdctlTree
from imports.lastlight_trees import LastLight
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import Job, JobQuery
from nightherd.model.sessions.session import Session, SessionQuery
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.state.reader import SqliteReader
from surfaces.drivers import Cli, Result


class Importer:
    """Imports into one state directory, and what is in it then."""

    def __init__(self, cli: Cli, state: Path) -> None:
        self._cli = cli
        self.state = state

    def __call__(self, kind: str, *arguments: str) -> Result:
        return self._cli("--state-dir", str(self.state), "import", kind, *arguments)

    def data(self, kind: str, *arguments: str) -> Any:
        """What the command says with --json; it has to end with 0."""
        result = self(kind, *arguments, "--json")
        assert result.code == 0, result
        return result.data

    def run(self, *arguments: str) -> Result:
        """Another command on the same state."""
        return self._cli("--state-dir", str(self.state), *arguments)

    @property
    def reader(self) -> SqliteReader:
        """Questions about the state."""
        return SqliteReader(self.state)

    def sessions(self) -> Sequence[Session]:
        """Every session, newest first."""
        reader = self.reader
        found = reader.list_sessions(SessionQuery(limit=1000))
        reader.close()
        return found

    def session(self) -> Session:
        """The only session."""
        (session,) = self.sessions()
        return session

    def jobs(self) -> Sequence[Job]:
        """Every job, newest first."""
        reader = self.reader
        found = reader.list_jobs(JobQuery(limit=1000))
        reader.close()
        return found

    def runs(self) -> Sequence[WorkflowRun]:
        """Every workflow run, newest first."""
        reader = self.reader
        found = reader.list_runs(RunQuery(limit=1000))
        reader.close()
        return found

    def run_row(self) -> WorkflowRun:
        """The only workflow run."""
        (run,) = self.runs()
        return run

    def query(self, statement: str) -> list[Any]:
        """The rows of a query on the database."""
        with closing(sqlite3.connect(self.state / "nightherd.db")) as database:
            return database.execute(statement).fetchall()

    def job(self, job_id: str) -> Job:
        """One job."""
        reader = self.reader
        found = reader.find_job(JobId(job_id))
        reader.close()
        assert found is not None
        return found

    def copy(self, name: str) -> Path:
        """Where a raw copy is."""
        return self.state / "transcripts" / name


@pytest.fixture
def importer(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Importer:
    """The importing command, in a directory without a fleet."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Importer(cli, here / ".nightherd")


@pytest.fixture
def claude(tmp_path: Path) -> ClaudeTree:
    """Claude Code's directory, empty."""
    (tmp_path / "claude" / "projects").mkdir(parents=True)
    return ClaudeTree(tmp_path / "claude")


@pytest.fixture
def herdctl(tmp_path: Path) -> HerdctlTree:
    """A project with herdctl's directory, empty."""
    return HerdctlTree(tmp_path / "old")


@pytest.fixture(params=["older", "newer"])
def lastlight(tmp_path: Path, request: pytest.FixtureRequest) -> LastLight:
    """A state directory of Last Light, empty, in each of its schemas."""
    return LastLight(tmp_path / "data", is_newer=request.param == "newer")


@pytest.fixture
def older(tmp_path: Path) -> LastLight:
    """The same in the older schema only."""
    return LastLight(tmp_path / "data")
