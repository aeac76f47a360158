"""A job in a worktree, killed wherever its workspace is made, snapshotted or removed: it goes on in it."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from crash.ground import (
    Ground,
    Place,
    check_doctor_leaves_nothing,
    check_rows_are_as_journals_say,
    is_killed,
    places,
)
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.workspaces.snapshot import snapshots_in
from nightherd.model.workspaces.workspace import Workspace, WorkspaceStatus
from nightherd.testing.fork_server import Ended, ForkServer
from nightherd.wiring.stores import open_reader
from soak import often

FLEET = """\
fleet:
  name: crash
lease: 5m
agents:
  - name: keeper
    runtime: scripted
    allowed_tools: [Bash, Write]
    working_directory: {root: shop, mode: worktree, keep: always}
    script: &script
      - tool: Bash
        input: {command: "echo ${inputs.tag}-one >> counter"}
      - tool: Read
        input: {file_path: counter}
      - tool: Write
        input: {file_path: "notes\\nof ${inputs.tag}", content: "of ${inputs.tag}"}
      - tool: Bash
        input: {command: "echo ${inputs.tag}-two >> counter; git add -A; git commit -qm ${inputs.tag}"}
      - tool: Bash
        input: {command: "rm kept; echo ${inputs.tag}-three >> counter"}
      - say: done
  - name: remover
    runtime: scripted
    allowed_tools: [Bash, Write]
    working_directory: {root: shop, mode: worktree, keep: never}
    script: *script
  - name: copier
    runtime: scripted
    allowed_tools: [Bash, Write]
    working_directory: {root: shop, mode: copy, keep: always}
    script: *script
"""
FAMILIES = ("workspace.", "snapshot.", "remove.")
WORDS = ("one", "two", "three")


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Yard(Ground):
    """A fleet whose jobs work beside a repository, and that repository."""

    @property
    def shop(self) -> Path:
        return self.folder / "shop"

    def ask(self, agent: str, tag: str, place: Place | None = None) -> Ended:
        return self.run(agent, tag, place)

    def workspace(self, job: Job) -> Workspace:
        reader = open_reader(self.state)
        try:
            workspace = reader.find_workspace(job.workspace_id or "")
        finally:
            reader.close()
        assert workspace is not None
        return workspace

    def directory(self, job: Job) -> Path:
        return self.folder / ".nightherd-workspaces" / str(job.workspace_id)

    def user_files(self) -> dict[str, bytes | str]:
        """Everything of the repository that is the user's own: files, index, branches, stash, configuration."""
        files: dict[str, bytes | str] = {
            str(path.relative_to(self.shop)): path.read_bytes()
            for path in sorted(self.shop.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.shop).parts
        }
        refs = git(self.shop, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        files["refs"] = "\n".join(ref for ref in refs if "/nightherd/" not in ref)
        for name in ("index", "config", "HEAD"):
            files[name] = (self.shop / ".git" / name).read_bytes()
        return files


@pytest.fixture
def yard(command_server: ForkServer, quick_path: Path) -> Yard:
    yard = Yard(quick_path, command_server)
    yard.shop.mkdir()
    git(yard.shop, "init", "-q", "-b", "main")
    (yard.shop / "kept").write_text("kept\n")
    git(yard.shop, "add", "-A")
    git(yard.shop, "commit", "-qm", "first")
    (yard.shop / "kept").write_text("changed by the user\n")
    (quick_path / "nightherd.yaml").write_text(FLEET)
    return yard


def check_files(yard: Yard, tag: str, job: Job) -> None:
    """Each call was made at most once, the last snapshot is what is in the directory, and nothing is half made."""
    workspace, last = yard.workspace(job), snapshots_in(job.id, yard.journal(job))[-1]
    store = yard.state / "snapshots" / f"{workspace.store}.git"
    shown = git(store, "show", f"{last.tree}:counter") if workspace.store else ""
    counted = Counter(shown.split())
    assert set(counted) <= {f"{tag}-{word}" for word in WORDS}
    assert all(count == 1 for count in counted.values()), counted
    assert counted[f"{tag}-three"] == 1 or "interrupted" in str(yard.journal(job))
    if job.agent == "remover":
        assert workspace.status is WorkspaceStatus.REMOVED
        assert not yard.directory(job).exists()
        return
    assert workspace.status is WorkspaceStatus.READY
    assert (workspace.tree, workspace.head) == (last.tree, last.head)
    assert (yard.directory(job) / "counter").read_text() == shown
    names = git(store, "ls-tree", "-r", "-z", "--name-only", last.tree).split("\0")[:-1]
    there = [
        str(path.relative_to(yard.directory(job)))
        for path in yard.directory(job).rglob("*")
        if path.is_file() and ".git" not in path.relative_to(yard.directory(job)).parts
    ]
    assert sorted(names) == sorted(there)
    if job.agent == "keeper":
        git(yard.directory(job), "fsck", "--no-dangling")
        assert f"nightherd/keeper/{job.workspace_id}" in git(yard.directory(job), "status", "-b")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("agent", ["keeper", "remover", "copier"])
def test_killed_anywhere_a_job_goes_on_in_its_workspace(yard: Yard, agent: str) -> None:
    before = yard.user_files()
    ended = yard.ask(agent, "first")
    assert (ended.status, ended.error) == (0, ""), yard.shown()
    passed = [place for place in places(ended.said) if place.point.startswith(FAMILIES)]
    assert len({place.point for place in passed}) >= 8
    limit = often(1, soak=9)
    chosen = [place for place in passed if place.nth <= limit]
    kills = 0
    for number, place in enumerate(chosen):
        tag = f"t{number}"
        print(f"{agent}: killed at {place}")
        killed = yard.ask(agent, tag, place)
        assert is_killed(killed), (place, yard.shown())
        kills += 1
        if number % 2:  # what puts it right is killed at the same place
            kills += is_killed(yard.go_on(Place(place.point, 1)))
        going_on = yard.go_on()
        assert going_on.status == 0, (place, going_on.error)
        yard.command("retention", "apply")
        job = yard.jobs()[tag]
        assert job.status is JobStatus.COMPLETED, (place, job.error)
        check_files(yard, tag, job)
        assert yard.user_files() == before, place
    git(yard.shop, "worktree", "prune")
    git(yard.shop, "fsck", "--no-dangling")
    check_doctor_leaves_nothing(yard)
    check_rows_are_as_journals_say(yard)
    assert kills >= len(chosen)
