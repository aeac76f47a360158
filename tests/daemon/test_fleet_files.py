"""The fleet's files as a running daemon sees them: whole or not at all, and every change noticed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nightherd.config.current import stamp_of
from nightherd.daemon.fleet_files import FleetFiles
from nightherd.errors import AgentNotFoundError, ConfigInvalidError, ConfigNotFoundError

FLEET = "agents:\n  - path: a.yaml\n  - {name: b, runtime: scripted, script: []}\n"

SCHEMA = ".nightherd/config/state_persistence.yaml"
"""A project's own, which may appear later."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    (tmp_path / "a.yaml").write_text("name: a\nruntime: scripted\nscript: []\n")
    return tmp_path


def files_of(folder: Path, *agents: str) -> FleetFiles:
    return FleetFiles(folder / "nightherd.yaml", {}, agents)


def test_every_file_of_the_fleet_is_looked_at(folder: Path) -> None:
    loading = files_of(folder).load_first()

    names = {os.path.relpath(file, folder) for file in loading.files}
    assert names == {
        "nightherd.yaml",
        "a.yaml",
        ".env",
        SCHEMA,
        ".nightherd/accepted.json",
        "workflows",
    }
    assert loading.stamp == stamp_of(loading.files)
    (folder / SCHEMA).parent.mkdir(parents=True)
    for name in ("a.yaml", ".env", "nightherd.yaml", SCHEMA):
        before = stamp_of(loading.files)
        with (folder / name).open("a") as file:
            file.write("# one more line\n")
        assert stamp_of(loading.files) != before


def test_a_mistake_anywhere_changes_nothing_and_is_located(folder: Path) -> None:
    files = files_of(folder)
    first = files.load_first()
    (folder / "a.yaml").write_text("name: a\nruntme: scripted\n")

    broken = files.load(first)
    (folder / "a.yaml").write_text("name: a\nruntime: scripted\nscript: []\n")
    mended = files.load(broken)

    assert broken.fleet is None
    assert (broken.problems[0]["file"], broken.problems[0]["line"]) == ("a.yaml", 2)
    assert set(broken.files) >= set(first.files)
    assert mended.fleet is not None
    assert mended.problems == []


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"[" * 5_000, b"", b"a: &x [*x, *x]", b"!!python/name:os.system"]
)
def test_garbage_is_a_problem_and_never_an_accident(folder: Path, content: bytes) -> None:
    files = files_of(folder)
    first = files.load_first()
    (folder / "nightherd.yaml").write_bytes(content)

    broken = files.load(first)

    assert broken.fleet is None
    assert broken.problems
    assert all({"file", "line", "column", "message"} <= set(one) for one in broken.problems)


def test_a_fleet_file_that_is_gone_for_a_moment_is_waited_for(folder: Path) -> None:
    files = files_of(folder)
    first = files.load_first()
    (folder / "nightherd.yaml").rename(folder / "kept")

    gone = files.load(first)
    (folder / "kept").rename(folder / "nightherd.yaml")
    back = files.load(gone)

    assert gone.fleet is None
    assert back.fleet is not None
    assert str(folder / "nightherd.yaml") in gone.files


def test_at_the_start_what_is_wrong_is_raised(folder: Path) -> None:
    with pytest.raises(AgentNotFoundError):
        files_of(folder, "nobody").load_first()
    (folder / "nightherd.yaml").write_text("agents: 5\n")
    with pytest.raises(ConfigInvalidError):
        files_of(folder).load_first()
    (folder / "nightherd.yaml").unlink()
    with pytest.raises((ConfigInvalidError, ConfigNotFoundError)):
        files_of(folder).load_first()


def test_only_chosen_agents_are_in_the_fleet(folder: Path) -> None:
    fleet = files_of(folder, "b").load_first().fleet

    assert fleet is not None
    assert list(fleet.agents) == ["b"]


def test_own_schema_of_a_state_directory_elsewhere_is_the_one_that_counts(tmp_path: Path) -> None:
    """Start, reload and the watch over files look where the workers will read, and nowhere else."""
    (tmp_path / "nightherd.yaml").write_text("agents: []\n")
    elsewhere = tmp_path / "elsewhere"
    beside, own = tmp_path / SCHEMA, elsewhere / "config/state_persistence.yaml"
    for path in (beside, own):
        path.parent.mkdir(parents=True)
    beside.write_text("extends: nightherd/state_schema.yaml\nretention: 7\n")
    files = FleetFiles(tmp_path / "nightherd.yaml", {}, state_dir=elsewhere)

    first = files.load_first()
    assert str(own) in first.files
    assert str(beside) not in first.files
    own.write_text("extends: nightherd/state_schema.yaml\nretention: 7\n")
    assert stamp_of(first.files) != first.stamp

    again = files.load(first)
    assert (again.fleet, len(again.problems)) == (None, 1)
    with pytest.raises(ConfigInvalidError):
        files.load_first()


def test_workflows_that_are_new_edited_or_deleted_are_noticed(folder: Path) -> None:
    (folder / "nightherd.yaml").write_text(f"reload: auto\n{FLEET}")
    files = files_of(folder)
    loading = files.load_first()
    path = folder / "workflows" / "build.yaml"

    def load_after(change: Callable[[], object]) -> list[str]:
        nonlocal loading
        change()
        assert stamp_of(loading.files) != loading.stamp
        loading = files.load(loading)
        assert loading.fleet is not None
        return [phase.name for one in loading.fleet.workflows.values() for phase in one.phases]

    path.parent.mkdir()
    names = [
        load_after(lambda: path.write_text("phases: [{name: a, bash: ls}]\n")),
        load_after(lambda: path.write_text("phases: [{name: longer, bash: ls}]\n")),
        load_after(path.unlink),
    ]

    assert names == [["a"], ["longer"], []]


def test_a_workflow_that_no_person_accepted_stays_as_it_was(folder: Path) -> None:
    (folder / "workflows").mkdir()
    (folder / "workflows" / "known.yaml").write_text("phases: [{name: a, bash: ls}]\n")
    files = files_of(folder)
    first = files.load_first()
    (folder / "workflows" / "known.yaml").write_text("phases: [{name: b, bash: evil}]\n")
    (folder / "workflows" / "new.yaml").write_text("phases: [{name: b, bash: evil}]\n")

    loading = files.load(first)

    assert first.fleet is not None
    assert loading.fleet is not None
    assert loading.fleet.workflows == first.fleet.workflows
    assert loading.fleet.withheld_workflows == {"new"}
    assert loading.pending == ("workflow known changed", "workflow new is new")
