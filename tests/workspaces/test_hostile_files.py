"""Hostile workspaces: nothing that an agent can write runs on the host, and nothing outside is read or written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from workspaces.scene import (
    Scene,
    beginning,
    commit,
    files_in,
    git,
    new_repository,
    noted,
    user_state,
    write,
)

Attack = Callable[[Path, Path, str], None]
"""Takes the repository's `.git`, the worktree, and a command that touches the canary."""


def script(path: Path, command: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{command}\ncat\n")
    path.chmod(0o755)
    return path


def configure(common: Path, text: str) -> None:
    with (common / "config").open("a") as file:
        file.write(text)


def fsmonitor(common: Path, top: Path, command: str) -> None:
    configure(common, f'[core]\n\tfsmonitor = "{command}; false"\n')


def filters(common: Path, top: Path, command: str) -> None:
    keys = f'\tclean = "{command}; cat"\n\tsmudge = "{command}; cat"\n\trequired = true\n'
    configure(common, f'[filter "x"]\n{keys}[filter "y"]\n\tprocess = "{command}"\n')
    write(top, {".gitattributes": "*.py filter=x\n*.md filter=y\n"})
    write(common, {"info/attributes": "* filter=x\n"})


def external_diff(common: Path, top: Path, command: str) -> None:
    configure(
        common,
        f'[diff]\n\texternal = "{command}; true"\n[diff "x"]\n\ttextconv = "{command}; cat"\n\tcommand = "{command}"\n'
        f'[merge "x"]\n\tdriver = "{command}"\n',
    )
    write(top, {".gitattributes": "* diff=x merge=x\n"})


def hooks(common: Path, top: Path, command: str) -> None:
    names = (
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-commit",
        "post-commit",
    )
    for name in (*names, "pre-auto-gc", "fsmonitor-watchman", "post-rewrite"):
        script(common / "hooks" / name, command)
        script(top / "hooks" / name, command)
    configure(common, f"[core]\n\thooksPath = {top / 'hooks'}\n")


def configured_hooks(common: Path, top: Path, command: str) -> None:
    events = "".join(f"\tevent = {event}\n" for event in ("post-checkout", "reference-transaction"))
    configure(common, f'[hook "own"]\n{events}\tcommand = "{command}"\n')


def programs(common: Path, top: Path, command: str) -> None:
    configure(
        common,
        f'[core]\n\tsshCommand = "{command}"\n\taskPass = "{command}"\n\tpager = "{command}"\n'
        f'\teditor = "{command}"\n\talternateRefsCommand = "{command}"\n\tgitProxy = "{command}"\n'
        f'[credential]\n\thelper = "!{command}"\n[gpg]\n\tprogram = "{command}"\n'
        f'[remote "origin"]\n\turl = "ext::{command}"\n\tuploadpack = "{command}"\n\tpromisor = true\n'
        f'[pager]\n\tls-files = "{command}"\n\tdiff = "{command}"\n[uploadpack]\n\tpackObjectsHook = "{command}"\n',
    )


def aliases(common: Path, top: Path, command: str) -> None:
    names = (
        "rev-parse",
        "update-ref",
        "worktree",
        "ls-files",
        "update-index",
        "write-tree",
        "diff-files",
    )
    keys = "".join(f'\t{name} = "!{command}"\n' for name in names)
    configure(common, f"[alias]\n{keys}")


def included(common: Path, top: Path, command: str) -> None:
    write(
        top,
        {
            "evil.config": f'[core]\n\tfsmonitor = "{command}; false"\n\thooksPath = {top / "hooks"}\n'
        },
    )
    script(top / "hooks" / "post-checkout", command)
    script(top / "hooks" / "reference-transaction", command)
    configure(common, f"[include]\n\tpath = {top / 'evil.config'}\n")


def worktree_configuration(common: Path, top: Path, command: str) -> None:
    configure(common, "[extensions]\n\tworktreeConfig = true\n")
    admin = next(iter((common / "worktrees").glob("*")), None)
    if admin is not None:
        text = f'[core]\n\tfsmonitor = "{command}; false"\n\thooksPath = {top / "hooks"}\n'
        write(admin, {"config.worktree": text})
    script(top / "hooks" / "reference-transaction", command)


def other_repository(common: Path, top: Path, command: str) -> None:
    """The `.git` file is replaced by a repository of the agent's own."""
    (top / ".git").unlink()
    git(top, "init", "--quiet")
    fsmonitor(top / ".git", top, command)
    filters(top / ".git", top, command)
    hooks(top / ".git", top, command)


def nested_repositories(common: Path, top: Path, command: str) -> None:
    """A repository below, a submodule, and a `.git` in a tracked directory: each with configuration of its own."""
    for name in ("nested", "module", "src"):
        (top / name).mkdir(exist_ok=True)
        git(top / name, "init", "--quiet")
        commit(top / name, {"inner.txt": "inner\n"})
        fsmonitor(top / name / ".git", top, command)
        filters(top / name / ".git", top / name, command)
    text = f'[submodule "module"]\n\tpath = module\n\turl = ext::{command}\n\tupdate = !{command}\n\tignore = none\n'
    write(top, {".gitmodules": text})


def pointed_elsewhere(common: Path, top: Path, command: str) -> None:
    """Git's directory of the worktree names another repository, with configuration of its own."""
    admin = common / "worktrees" / top.name
    new_repository(top / "other")
    fsmonitor(top / "other" / ".git", top, command)
    hooks(top / "other" / ".git", top, command)
    write(admin, {"commondir": f"{top / 'other' / '.git'}\n"})


ATTACKS: list[Attack] = [
    fsmonitor, filters, external_diff, hooks, configured_hooks, programs, aliases, included,
    worktree_configuration, other_repository, nested_repositories, pointed_elsewhere,
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_nothing_that_an_agent_wrote_runs_on_the_host(scene: Scene, attack: Attack) -> None:
    made = scene.make()
    row = noted(scene.row(), made)
    canary = scene.root.parent / "canary"
    attack(scene.root / ".git", scene.top(), f"touch {canary}")
    write(scene.top(), {"src/app.py": "changed\n", "src/lib/new.py": "new\n", "README.md": "too\n"})
    snapshot = scene.snapshot(row)
    held = scene.stored(made.store, snapshot.tree)
    expected = files_in(
        scene.top(), without=(".git", *(left.strip("/") for left in snapshot.left_out))
    )
    assert held == expected
    scene.reader.patch(made.store, str(made.base_tree), snapshot.tree)
    scene.reader.stat_text(made.store, str(made.base_tree), snapshot.tree)
    scene.make(row)
    forked = scene.make(scene.row("job-2"), beginning(made, snapshot))
    scene.snapshot(noted(scene.row("job-2"), forked))
    for name in ("job-1", "job-2"):
        scene.remove(noted(scene.row(name), made))
        assert not scene.top(name).exists()
    assert not canary.exists()


def test_attacks_work_where_nobody_is_careful(scene: Scene, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for attack in (fsmonitor, filters, hooks):
        scene.make(scene.row(attack.__name__))
        top = scene.top(attack.__name__)
        attack(scene.root / ".git", top, f"touch {canary}")
        write(top, {"src/app.py": "changed\n", "README.md": "too\n"})
        git(top, "status")
        git(top, "add", "src/app.py")
        git(top, "checkout", "--quiet", "--detach")
        assert canary.exists(), attack.__name__
        canary.unlink()
        (scene.root / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
        (scene.root / ".git" / "info" / "attributes").unlink(missing_ok=True)


def test_attributes_of_a_hostile_tree_do_not_change_what_is_held(scene: Scene) -> None:
    made = scene.make()
    text = "* text eol=crlf ident filter=lfs working-tree-encoding=UTF-16 export-subst\n[attr]x -text\n* x\n"
    write(
        scene.top(),
        {".gitattributes": text, "src/app.py": b"$Id$\r\nbytes\n\xff\xfe", "n.bin": b"\0\r\n"},
    )
    write(scene.top(), {"encoded.txt": "text\n"})
    snapshot = scene.snapshot(noted(scene.row(), made))
    assert scene.stored(made.store, snapshot.tree) == files_in(scene.top())
    scene.make(scene.row("job-2"), beginning(made, snapshot))
    assert files_in(scene.top("job-2")) == files_in(scene.top())


# Links


def test_tracked_directory_that_became_a_link_outwards_is_held_as_a_link(
    scene: Scene, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    write(outside, {"cow.py": "a secret of the host\n", "other": "another\n"})
    made = scene.make()
    shutil.rmtree(scene.top() / "src" / "lib")
    (scene.top() / "src" / "lib").symlink_to(outside)
    snapshot = scene.snapshot(noted(scene.row(), made))
    held = scene.stored(made.store, snapshot.tree)
    assert held["src/lib"] == ("link", os.fsencode(outside))
    assert held == files_in(scene.top())
    blobs = git(
        scene.state / "snapshots" / f"{made.store}.git",
        "cat-file",
        "--batch-all-objects",
        "--batch",
    )
    assert "secret of the host" not in blobs


def test_link_to_a_directory_with_the_very_same_files_is_still_a_link(
    scene: Scene, tmp_path: Path
) -> None:
    made = scene.make()
    shutil.copytree(scene.top() / "src", tmp_path / "outside")
    shutil.rmtree(scene.top() / "src")
    (scene.top() / "src").symlink_to(tmp_path / "outside")
    snapshot = scene.snapshot(noted(scene.row(), made))
    assert scene.stored(made.store, snapshot.tree) == files_in(scene.top())


def test_workspace_that_was_replaced_by_a_link_is_neither_read_nor_written(
    scene: Scene, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    write(outside, {"precious": "not yours\n"})
    made = scene.make()
    row = noted(scene.row(), made)
    shutil.rmtree(scene.top())
    scene.top().symlink_to(outside)
    assert not scene.files.is_whole(row)
    scene.make(row)
    assert not scene.top().is_symlink()
    assert files_in(outside) == {"precious": ("file", b"not yours\n")}
    shutil.rmtree(scene.top())
    scene.top().symlink_to(outside)
    scene.remove(row)
    assert not os.path.lexists(scene.top())
    assert files_in(outside) == {"precious": ("file", b"not yours\n")}


def test_base_with_names_that_git_forbids_writes_nothing_into_git_directories(scene: Scene) -> None:
    blob = git(scene.root, "hash-object", "-w", "--stdin", input=b"#!/bin/sh\ntouch canary\n")
    hooks_tree = git(scene.root, "mktree", input=f"100755 blob {blob}\tpost-checkout\n".encode())
    top_tree = git(scene.root, "mktree", input=f"040000 tree {hooks_tree}\t.git\n".encode())
    evil = git(scene.root, "commit-tree", top_tree, "-m", "evil")
    git(scene.root, "branch", "evil", evil)
    scene.policy = type(scene.policy)(mode=scene.policy.mode, base="evil")
    before = user_state(scene.root)
    with pytest.raises(Exception, match=r"invalid path|Invalid path"):
        scene.make()
    assert user_state(scene.root) == before
    assert not scene.top().exists()


def test_submodules_of_the_base_stay_as_they_are(scene: Scene, tmp_path: Path) -> None:
    library = new_repository(tmp_path / "library")
    git(
        scene.root,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(library),
        "lib",
    )
    git(scene.root, "commit", "--quiet", "-m", "submodule")
    made = scene.make()
    row = noted(scene.row(), made)
    assert list((scene.top() / "lib").iterdir()) == []
    assert scene.snapshot(row).tree == made.base_tree
    git(scene.top(), "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
    write(scene.top(), {"lib/README.md": "changed in the submodule\n"})
    snapshot = scene.snapshot(row)
    assert snapshot.tree == made.base_tree
    later = commit(scene.top() / "lib", {"README.md": "committed in the submodule\n"})
    snapshot = scene.snapshot(row)
    listed = git(scene.state / "snapshots" / f"{made.store}.git", "ls-tree", snapshot.tree, "lib")
    assert listed == f"160000 commit {later}\tlib"


def test_submodule_with_hostile_configuration_is_not_looked_into(
    scene: Scene, tmp_path: Path
) -> None:
    library = new_repository(tmp_path / "library")
    allowed = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    git(scene.root, *allowed, "add", str(library), "lib")
    git(scene.root, "commit", "--quiet", "-m", "submodule")
    made = scene.make()
    git(scene.top(), *allowed, "update", "--init")
    canary = tmp_path / "canary"
    inner = Path(git(scene.top() / "lib", "rev-parse", "--absolute-git-dir"))
    for attack in (fsmonitor, filters):
        attack(inner, scene.top() / "lib", f"touch {canary}")
    write(scene.top(), {"lib/src/app.py": "changed\n", "README.md": "changed\n"})
    snapshot = scene.snapshot(noted(scene.row(), made))
    assert snapshot.changed == 1
    assert not canary.exists()
    git(scene.top(), "status")
    assert canary.exists()


def test_missing_commit_of_a_partial_clone_is_not_fetched(scene: Scene, tmp_path: Path) -> None:
    made = scene.make()
    canary = tmp_path / "canary"
    git(scene.root, "remote", "add", "origin", f"file://{tmp_path / 'nowhere'}")
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": f"touch {canary}; false",
    }.items():
        git(scene.root, "config", key, value)
    begins_with = replace(beginning(made, made.snapshot), head="1" * 40)
    forked = scene.make(scene.row("job-2"), begins_with)
    assert forked.snapshot.head == made.base_commit
    assert not canary.exists()


def test_user_things_survive_a_whole_life_of_workspaces(scene: Scene) -> None:
    write(scene.root, {"README.md": "the user is editing\n", "untracked.txt": "own\n"})
    git(scene.root, "stash", "--quiet")
    write(scene.root, {"src/app.py": "staged\n", "untracked.txt": "own\n"})
    git(scene.root, "add", "src/app.py")
    write(scene.root, {"src/app.py": "staged and changed\n"})
    before = user_state(scene.root)
    made = scene.make()
    row = noted(scene.row(), made)
    commit(scene.top(), {"done.txt": "done\n"})
    write(scene.top(), {"src/app.py": "by the agent\n"})
    snapshot = scene.snapshot(row)
    scene.make(row)
    scene.make(scene.row("job-2"), beginning(made, snapshot))
    for name in ("job-1", "job-2"):
        scene.remove(noted(scene.row(name), made))
    assert user_state(scene.root) == before
