"""A repository that an agent could write to: nothing that it names runs when changes are brought home."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace as changed

from nightherd.errors import NightherdError, RefusedError
from workspaces.landing.landing_ground import (
    TEXT,
    Ground,
    commit,
    dump,
    first_line,
    git,
    last_line,
    write,
)

HOOKS = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "post-merge"),
    *("post-checkout", "post-index-change", "reference-transaction", "pre-push", "pre-rebase", "post-rewrite"),
    *("fsmonitor-watchman", "pre-receive", "update", "post-receive", "post-update", "proc-receive", "pre-auto-gc"),
)  # fmt: skip
COMMANDS = (
    *("core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.editor", "core.pager"),
    *("core.alternateRefsCommand", "credential.helper", "diff.external", "diff.evil.command", "diff.evil.textconv"),
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "merge.evil.driver", "gpg.program"),
    *("gpg.ssh.program", "sequence.editor", "uploadpack.packObjectsHook", "remote.origin.receivepack"),
    *("remote.origin.uploadpack", "trailer.evil.command", "interactive.diffFilter", "gc.recentObjectsHook"),
)  # fmt: skip
SETTINGS = {
    "commit.gpgSign": "true",
    "push.gpgSign": "true",
    "merge.default": "evil",
    "filter.evil.required": "true",
    "core.logAllRefUpdates": "always",
}


ATTRIBUTES = "* merge=evil diff=evil text=auto\n*.evil filter=evil\n"


@pytest.fixture
def canary(ground: Ground) -> Path:
    """A directory that stays empty as long as nothing of the repository runs."""
    place = ground.folder / "canary"
    place.mkdir()
    return place


def poison(git_dir: Path, canary: Path) -> None:
    """Make everything that git can run in a repository leave a file."""
    script = git_dir / "canary.sh"
    script.write_text(f'#!/bin/sh\ntouch "{canary}/$$-$(basename "$0")"\nexit 0\n')
    script.chmod(0o755)
    for folder in ("hooks", "more-hooks"):
        (git_dir / folder).mkdir(exist_ok=True)
        for name in HOOKS:
            hook = git_dir / folder / name
            hook.write_text(f'#!/bin/sh\ntouch "{canary}/{name}"\nexit 0\n')
            hook.chmod(0o755)
    file = git_dir / "config"
    for key in COMMANDS:
        git(git_dir.parent, "config", "--file", file, key, f"{script} {key} #")
    for key, value in {**SETTINGS, "core.hooksPath": str(git_dir / "more-hooks")}.items():
        git(git_dir.parent, "config", "--file", file, key, value)
    git(
        git_dir.parent, "config", "--file", file, "core.attributesFile", str(git_dir / "attributes")
    )
    git(git_dir.parent, "config", "--file", file, f"url.ext::{script}.insteadOf", "file://")
    git(git_dir.parent, "config", "--file", file, f"url.ext::{script}.pushInsteadOf", "file://")
    (git_dir / "attributes").write_text(ATTRIBUTES)
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text(ATTRIBUTES)


def ran(canary: Path) -> list[str]:
    return sorted(path.name for path in canary.iterdir())


@pytest.fixture
def hostile(ground: Ground, canary: Path) -> Ground:
    """A repository whose remote is poisoned as well, with attributes that name its drivers."""
    write(ground.project, {".gitattributes": ATTRIBUTES, "x.evil": TEXT, "y.evil": TEXT})
    commit(ground.project, "attributes")
    remote = ground.folder / "remote.git"
    git(ground.folder, "clone", "-q", "--bare", ground.project, remote)
    ground.git("remote", "add", "origin", f"file://{remote}")
    poison(remote, canary)
    poison(ground.project / ".git", canary)
    assert ran(canary) == []
    return ground


def test_canaries_sing_when_git_is_used_plainly(hostile: Ground, canary: Path) -> None:
    write(hostile.project, {"a.txt": first_line(TEXT), "x.evil": first_line(TEXT)})
    remote = hostile.folder / "remote.git"
    for arguments in (
        ("add", "a.txt", "x.evil"),
        ("update-ref", "refs/heads/other", "main"),
        ("-c", "push.gpgSign=false", "push", "-q", remote, "main:refs/heads/other"),
    ):
        subprocess.run(["git", *arguments], cwd=hostile.project, capture_output=True, check=False)

    names = {name.split("-", 1)[1] if name[0].isdigit() else name for name in ran(canary)}
    assert names >= {"canary.sh", "reference-transaction", "pre-push"}


def test_nothing_runs_when_changes_are_applied(hostile: Ground, canary: Path) -> None:
    workspace = hostile.worked(
        {"a.txt": last_line(TEXT), "b.txt": None, "n.txt": "n\n", "x.evil": last_line(TEXT)}
    )
    write(hostile.project, {"a.txt": first_line(TEXT), "x.evil": first_line(TEXT)})

    hostile.apply(workspace)

    assert hostile.read("a.txt") == hostile.read("x.evil") == first_line(last_line(TEXT))
    assert ran(canary) == []


def test_nothing_runs_when_changes_are_merged(hostile: Ground, canary: Path) -> None:
    workspace = hostile.worked({"a.txt": last_line(TEXT), "b.txt": None, "n.txt": "n\n"})
    hostile.merge(workspace)
    write(hostile.directory(workspace), {"dir/c.txt": last_line(TEXT)})
    hostile.merge(hostile.snapshot(workspace), is_fast_forward=False)

    assert hostile.read("a.txt") == hostile.read("dir/c.txt") == last_line(TEXT)
    assert ran(canary) == []


def test_file_that_a_filter_converts_is_refused_and_the_filter_does_not_run(
    hostile: Ground, canary: Path
) -> None:
    workspace = hostile.worked({"a.txt": last_line(TEXT), "x.evil": last_line(TEXT)})

    for land in (hostile.merge, hostile.push):
        with pytest.raises(RefusedError, match=r"that a filter of git converts: 'x\.evil'"):
            land(workspace)

    assert ran(canary) == []


def test_nothing_runs_when_changes_are_pushed_to_a_remote_on_this_machine(
    hostile: Ground, canary: Path
) -> None:
    workspace = hostile.worked({"a.txt": last_line(TEXT), "n.txt": "n\n"})

    result = hostile.push(workspace)

    remote = hostile.folder / "remote.git"
    heads = git(
        hostile.folder,
        "--git-dir",
        remote,
        "for-each-ref",
        "--format=%(objectname)",
        f"refs/heads/{workspace.branch}",
    )
    assert heads == result.commit
    assert ran(canary) == []


@pytest.mark.parametrize(
    "address",
    [
        "ext::{script} push",
        "-oProxyCommand={script}",
        "ssh://-oProxyCommand={script}/x",
        "--upload-pack={script}",
    ],
)
def test_address_that_would_run_something_is_refused(
    hostile: Ground, canary: Path, address: str
) -> None:
    script = hostile.project / ".git" / "canary.sh"
    config = hostile.project / ".git" / "config"
    git(
        hostile.folder,
        "config",
        "--file",
        config,
        "remote.origin.url",
        address.format(script=script),
    )
    workspace = hostile.worked({"a.txt": last_line(TEXT)})

    with pytest.raises(NightherdError):
        hostile.push(workspace)

    assert ran(canary) == []


def test_branch_and_remote_names_are_no_options(hostile: Ground, canary: Path) -> None:
    workspace = hostile.worked({"a.txt": last_line(TEXT)})
    script = hostile.project / ".git" / "canary.sh"

    for remote in (
        f"--receive-pack={script}",
        f"-c core.sshCommand={script}",
        "origin.url --get-all x",
    ):
        with pytest.raises(NightherdError):
            hostile.push(workspace, remote=remote)
    for into in ("--exec", "-d", "main^{/x}", "@{-1}", "../../x"):
        with pytest.raises(NightherdError):
            hostile.merge(workspace, into=into)
    assert ran(canary) == []


def test_work_tree_that_the_configuration_names_is_not_written_to(ground: Ground) -> None:
    workspace = ground.worked({"a.txt": last_line(TEXT), "n.txt": "n\n"})
    elsewhere = ground.folder / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere, {"a.txt": TEXT})
    ground.git("config", "core.worktree", str(elsewhere))
    before = dump(elsewhere)

    for land in (ground.apply, ground.merge):
        try:
            land(workspace)
        except NightherdError:
            continue

    assert dump(elsewhere) == before


def test_git_directory_of_a_submodule_like_name_is_never_written(ground: Ground) -> None:
    """A tree with `.git` in it cannot come from git, but a store can be written to."""
    workspace = ground.worked({"a.txt": last_line(TEXT)})
    store = ground.state / "snapshots" / f"{workspace.store}.git"
    blob = git(ground.folder, "--git-dir", store, "hash-object", "-w", "--stdin", data=b"evil\n")
    for name in (".git", ".GIT"):
        inner = git(
            ground.folder,
            "--git-dir",
            store,
            "mktree",
            data=f"100644 blob {blob}\tconfig\n".encode(),
        )
        tree = git(
            ground.folder,
            "--git-dir",
            store,
            "mktree",
            data=f"040000 tree {inner}\t{name}\n".encode(),
        )
        before = dump(ground.project)

        with pytest.raises(NightherdError):
            ground.apply(changed(workspace, tree=tree))
        assert dump(ground.project) == before
