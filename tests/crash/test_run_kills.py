"""Writers killed at every named point while runs advance: the run is where it was, or one whole step further."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import anyio
import pytest

from crash.told_runs import TELL, step
from nightherd.db.ledger import read_ledger
from nightherd.model.workflows.run import RunStatus
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.tables import TABLES
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.run_values import nodes, run_id
from nightherd.wiring.repair import rebuild_database
from soak import often
from state.stores import Contents, contents, replayed

POINTS = (
    "db.begin",
    "db.before_commit",
    "db.after_commit",
    "ledger.half_written",
    "ledger.appended",
)
STEPS = 38
"""At least: the steps of the story."""
EVERY = often(2, soak=1)
"""Each point is tried at every so many steps; several points together are at all of them."""
KILLS = len(POINTS) * STEPS // EVERY


@dataclass(frozen=True)
class Told:
    """The story told once without a kill."""

    folder: Path
    names: list[str]
    """What each step was."""
    states: list[Contents]
    """The rows before each step, and after the last."""

    def copy(self, place: int, target: Path) -> StateDirectory:
        """The state directory before step `place`, once more."""
        shutil.copytree(self.folder / str(place), target)
        return init_state_directory(target)


def rows_of(directory: StateDirectory) -> Contents:
    if not directory.database.exists():
        return {name: [] for name in TABLES.values()}
    return contents(directory.database)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("story")
    names: list[str] = []
    directory = init_state_directory(folder / "0")
    states = [rows_of(directory)]
    while True:
        following = folder / str(len(names) + 1)
        shutil.copytree(directory.root, following)
        directory = init_state_directory(following)
        name = anyio.run(step, directory.root)
        if name is None:
            return Told(folder, names, states)
        names.append(name)
        states.append(rows_of(directory))


def test_story_has_every_kind_of_step(told: Told) -> None:
    reader = SqliteReader(told.folder / str(len(told.names)))
    runs = [reader.find_run(run_id(number)) for number in (1, 2)]
    ended = nodes(reader, 1)
    reader.close()

    assert [run.status for run in runs if run is not None] == [
        RunStatus.SUCCEEDED,
        RunStatus.CANCELLED,
    ]
    kinds = {"StartRun", "StartExecution", "SettleExecution", "LoseExecution", "AnswerItem"}
    assert kinds | {"AdvanceRun", "SendEvent", "MergeScratch", "CancelRun"} == set(told.names)
    assert {"dig#2", "each[1]", "polish:until[2]", "polish[2]/veto", "mend"} <= set(ended)
    assert ended["never"] == "skipped"
    assert len(told.names) >= STEPS
    assert all(before != after for before, after in pairwise(told.states))


@pytest.mark.parametrize("point", POINTS)
def test_killed_writer_leaves_a_run_where_it_was_or_one_whole_step_further(
    point: str, told: Told, fork_server: ForkServer, quick_path: Path
) -> None:
    kills = 0
    for place in range(POINTS.index(point) % EVERY, len(told.names), EVERY):
        directory = told.copy(place, quick_path / str(place))

        ended = fork_server.run(TELL, {"root": str(directory.root), "point": point})

        assert ended.status == -signal.SIGKILL, ended
        kills += 1
        before, after = told.states[place : place + 2]
        is_done = rows_of(directory) == after
        assert is_done or rows_of(directory) == before
        assert is_done is (point not in ("db.begin", "db.before_commit"))
        # The next process goes on from there, and the ledger has every step once.
        if anyio.run(step, directory.root) is None:
            continue  # the story is told, and nobody writes any more
        if is_done:
            after = told.states[place + 2]
        assert rows_of(directory) == after
        changes = [line.change for line in read_ledger(directory.ledger)]
        assert changes == list(range(1, len(changes) + 1))
        assert replayed(directory, quick_path / f"{place}.db") == after
        shutil.rmtree(directory.root)
    assert kills >= KILLS // len(POINTS)


def test_rebuilt_database_is_the_same_after_every_step(told: Told, quick_path: Path) -> None:
    for place in range(1, len(told.states), often(3, soak=1)):
        if has_running(told.states[place]):
            continue  # nobody works any more after a rebuild: what ran is lost then
        directory = told.copy(place, quick_path / str(place))
        for file in directory.root.glob("nightherd.db*"):
            file.unlink()

        rebuild_database(directory.root, lambda change: None)

        assert contents(directory.database) == told.states[place]


def has_running(state: Contents) -> bool:
    return any("running" in row for row in state["jobs"])
