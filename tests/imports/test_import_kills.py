"""Killed anywhere, an import leaves nothing half there, and the next one completes it with nothing doubled."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from imports.conftest import Importer
from imports.foreign_trees import ClaudeTree, HerdctlTree, fingerprint, uuid
from imports.lastlight_trees import LastLight, asked, said
from nightherd.model.journal.recollection import rebuilt_rows, recollect
from nightherd.testing.fork_server import ForkServer
from nightherd.wiring.stores import open_journals

STATE_POINTS = [
    "state.before",
    "state.after",
    "db.before_commit",
    "db.after_commit",
    "ledger.half_written",
    "ledger.appended",
]
COPY_POINTS = [
    "shelf.half_written",
    "shelf.kept",
    "shelf.before_sync",
    "shelf.after_sync",
    "shelf.before_mark",
]
JOURNAL_POINTS = ["finished.before_rename", "finished.after_rename"]
COUNT = 5


WORK = "imports.import_victims:work"


class Victims:
    """Imports in processes that are killed on the way."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server

    def kill(self, kind: str, source: Path, state: Path, *, point: str, nth: int) -> int:
        """How an import ended that was to be killed at a point."""
        order = {"kind": kind, "source": str(source), "state": str(state)}
        ended = self._server.run(WORK, {**order, "point": point, "nth": nth})
        assert ended.error == ""
        return ended.status


@pytest.fixture
def victims(fork_server: ForkServer) -> Victims:
    """Imports to kill."""
    return Victims(fork_server)


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", [*COPY_POINTS, *STATE_POINTS])
def test_killed_import_of_transcripts_is_completed_by_the_next(
    point: str, nth: int, victims: Victims, importer: Importer, claude: ClaudeTree
) -> None:
    sources = [claude.talk(number) for number in range(1, COUNT + 1)]
    before = fingerprint(claude.root)

    ended = victims.kill("claude", claude.root, importer.state, point=point, nth=nth)

    assert ended == -signal.SIGKILL
    check_copies_are_whole(importer, sources)
    importer.data("claude", str(claude.root))
    again = importer.data("claude", str(claude.root))
    assert again["unchanged"] == COUNT
    assert sorted(str(one.runtime_session_id) for one in importer.sessions()) == [
        uuid(number) for number in range(1, COUNT + 1)
    ]
    assert [importer.copy(path.name).read_bytes() for path in sources] == [
        path.read_bytes() for path in sources
    ]
    assert fingerprint(claude.root) == before


def check_copies_are_whole(importer: Importer, sources: list[Path]) -> None:
    """What stands under a transcript's name is all of it; what a killed writer left has another name."""
    for path in sources:
        copy = importer.copy(path.name)
        assert not copy.exists() or copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("point", [*COPY_POINTS, *STATE_POINTS])
def test_killed_refresh_of_grown_transcripts_is_completed_by_the_next(
    point: str, nth: int, victims: Victims, importer: Importer, claude: ClaudeTree
) -> None:
    for number in range(1, COUNT + 1):
        claude.talk(number)
    importer.data("claude", str(claude.root))
    ids = {one.runtime_session_id: one.id for one in importer.sessions()}
    sources = [claude.talk(number, more=4) for number in range(1, COUNT + 1)]

    ended = victims.kill("claude", claude.root, importer.state, point=point, nth=nth)

    assert ended == -signal.SIGKILL
    importer.data("claude", str(claude.root))
    assert {one.runtime_session_id: one.id for one in importer.sessions()} == ids
    assert {one.message_count for one in importer.sessions()} == {7}
    check_copies_are_whole(importer, sources)


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", [*JOURNAL_POINTS, *STATE_POINTS])
def test_killed_import_of_a_fleet_is_completed_by_the_next(
    point: str, nth: int, victims: Victims, importer: Importer, herdctl: HerdctlTree
) -> None:
    ids = [herdctl.job(number) for number in range(1, COUNT + 1)]
    herdctl.session()
    before = fingerprint(herdctl.project)

    ended = victims.kill("herdctl", herdctl.project, importer.state, point=point, nth=nth)

    assert ended == -signal.SIGKILL
    check_rows_have_journals(importer)
    importer.data("herdctl", str(herdctl.project))
    again = importer.data("herdctl", str(herdctl.project))
    assert (again["unchanged"], again["skipped"]) == (COUNT + 1, [])
    assert [job.id for job in importer.jobs()] == ids[::-1]
    assert {job.session_id for job in importer.jobs()} == {importer.session().id}
    check_rows_have_journals(importer)
    reader = importer.reader
    assert [state.last_job for state in reader.list_agents()] == [ids[-1]]
    reader.close()
    assert fingerprint(herdctl.project) == before


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", [*JOURNAL_POINTS, *COPY_POINTS, *STATE_POINTS])
def test_killed_import_of_runs_is_completed_by_the_next(
    point: str, nth: int, victims: Victims, importer: Importer, older: LastLight
) -> None:
    for number in range(1, COUNT + 1):
        session = f"s{number}"
        older.run(f"r{number}", scratch={"large": "x" * 70_000})
        older.execution(f"e{number}", number, session_id=session, workflow_run_id=f"r{number}")
        older.approval(f"a{number}", workflow_run_id=f"r{number}")
        older.log(asked("Plan it", number), said("A plan", number), session=session)
    before = fingerprint(older.root)

    ended = victims.kill("lastlight", older.root, importer.state, point=point, nth=nth)

    assert ended == -signal.SIGKILL
    importer.data("lastlight", str(older.root))
    again = importer.data("lastlight", str(older.root))
    assert (sum(again["imported"].values()), again["unchanged"]) == (0, 3 * COUNT)
    jobs, runs = importer.jobs(), importer.runs()
    assert len(jobs) == len(runs) == len(importer.sessions()) == COUNT
    assert {job.workflow_run_id for job in jobs} == {run.id for run in runs}
    assert len(list(importer.copy("lastlight/aside").glob("w*.json"))) == COUNT
    reader, journals = importer.reader, open_journals(importer.state)
    for run in runs:
        assert [node.path for node in reader.nodes_of_run(run.id)] == ["architect"]
        assert len(reader.items_of_run(run.id)) == 1
    reader.close()
    for job in jobs:
        assert journals.examine(job.id).last_seq == job.last_seq
    assert fingerprint(older.root) == before


def check_rows_have_journals(importer: Importer) -> None:
    """Every job on record has its whole journal, and is what that comes to."""
    journals = open_journals(importer.state)
    for job in importer.jobs():
        findings = journals.examine(job.id)
        assert (findings.last_seq, findings.bad_lines, findings.missing) == (job.last_seq, (), 0)
        rebuilt = rebuilt_rows(recollect(journals.read(job.id)))
        assert rebuilt is not None
        assert rebuilt.job == replace(job, number=0)


def test_two_imports_at_once_make_one_session_of_each_transcript(
    importer: Importer, claude: ClaudeTree
) -> None:
    for number in range(1, 41):
        claude.talk(number)
    line = [sys.executable, "-m", "nightherd", "--state-dir", str(importer.state)]
    both = [
        subprocess.Popen([*line, "import", "claude", str(claude.root)], stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]

    assert [process.wait() for process in both] == [0, 0]
    assert len(importer.sessions()) == 40
    assert len({one.runtime_session_id for one in importer.sessions()}) == 40
