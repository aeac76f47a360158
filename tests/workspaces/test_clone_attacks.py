"""A clone whose agent wrote its configuration, hooks and objects: nothing of that runs when it is fetched."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nightherd.model.workspaces.policy import CloneTerms
from workspaces.git_server import serving
from workspaces.scene import git, new_repository
from workspaces.upstream import Upstream, new_upstream

HOOKS = (
    *("reference-transaction", "post-checkout", "post-index-change", "post-merge", "pre-auto-gc"),
    *("post-rewrite", "update", "post-update", "pre-receive", "proc-receive", "fsmonitor-watchman"),
)


@pytest.fixture(params=["file", "http"])
def upstream(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Upstream]:
    """A clone of a repository in a directory, or behind a server that wants a password."""
    monkeypatch.setenv("HOME", str(tmp_path))
    upstream = new_upstream(tmp_path)
    git(tmp_path, "clone", "--quiet", "--bare", "upstream", "served/x.git")
    with serving(tmp_path / "served") as server:
        if request.param == "http":
            server.login = ("me", "password7")
            url = server.url("x.git")
            upstream.terms = CloneTerms(url=url, username="me", password="password7")
        upstream.clone()
        upstream.commit()
        git(upstream.path, "push", "--quiet", str(tmp_path / "served/x.git"), "main")
        yield upstream


def program(folder: Path) -> Path:
    """A program that leaves a canary with what it was given."""
    path = folder / "evil.sh"
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {folder}/canary\nexit 1\n')
    path.chmod(0o755)
    return path


def set_commands(upstream: Upstream) -> None:
    """Every setting that names a program, and some that lead elsewhere."""
    evil, root = str(program(upstream.folder)), upstream.root
    url = upstream.terms.url
    for key, value in (
        ("core.sshCommand", evil),
        ("core.fsmonitor", evil),
        ("core.askPass", evil),
        ("core.gitProxy", evil),
        ("core.pager", evil),
        ("core.editor", evil),
        ("core.alternateRefsCommand", evil),
        ("core.hooksPath", str(root / ".git/hooks")),
        ("credential.helper", f"!{evil}"),
        (f"credential.{url}.helper", f"!{evil}"),
        ("remote.origin.uploadpack", evil),
        ("remote.origin.vcs", "ext"),
        ("remote.origin.proxy", "http://127.0.0.1:1"),
        ("protocol.ext.allow", "always"),
        (f"url.ext::{evil} .insteadOf", url),
        ("uploadpack.packObjectsHook", evil),
        ("gpg.program", evil),
        ("http.proxy", "http://127.0.0.1:1"),
        ("filter.evil.smudge", evil),
        ("filter.evil.clean", evil),
        ("diff.external", evil),
        ("alias.fetch", f"!{evil}"),
        ("gc.auto", "1"),
        ("fetch.fsckObjects", "true"),
        ("trace2.eventTarget", str(upstream.folder / "canary")),
    ):
        git(root, "config", key, value)
    (root / ".gitattributes").write_text("* filter=evil diff=evil\n")


def add_hooks(upstream: Upstream) -> None:
    evil = program(upstream.folder)
    hooks = upstream.root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        (hooks / name).write_text(evil.read_text())
        (hooks / name).chmod(0o755)


def want_missing_objects(upstream: Upstream) -> None:
    """A partial clone whose other half is a program, and a ref to what it lacks."""
    evil, root = str(program(upstream.folder)), upstream.root
    git(root, "config", "core.repositoryFormatVersion", "1")
    git(root, "config", "extensions.partialClone", "evil")
    git(root, "config", "remote.evil.url", str(upstream.path))
    git(root, "config", "remote.evil.uploadpack", evil)
    git(root, "config", "remote.evil.promisor", "true")
    (root / ".git/refs/remotes/origin/lost").write_text(f"{'1' * 40}\n")


def borrow_elsewhere(upstream: Upstream) -> None:
    """Objects from a repository that is itself such a partial clone."""
    evil = str(program(upstream.folder))
    other = new_repository(upstream.folder / "other")
    for key, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "evil"),
        ("remote.evil.url", str(upstream.path)),
        ("remote.evil.uploadpack", evil),
        ("remote.evil.promisor", "true"),
        ("core.fsmonitor", evil),
        ("core.alternateRefsCommand", evil),
    ):
        git(other, "config", key, value)
    (other / ".git/refs/heads/lost").write_text(f"{'1' * 40}\n")
    alternates = upstream.root / ".git/objects/info/alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(f"{other}/.git/objects\n")


ATTACKS: dict[str, Callable[[Upstream], None]] = {
    "commands": set_commands,
    "hooks": add_hooks,
    "missing objects": want_missing_objects,
    "objects elsewhere": borrow_elsewhere,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_fetch_runs_nothing_that_the_clone_names(upstream: Upstream, name: str) -> None:
    ATTACKS[name](upstream)

    notes = upstream.clone()

    assert not (upstream.folder / "canary").exists()
    assert notes == []
    assert upstream.origin() == upstream.branches()


@pytest.mark.parametrize("name", ["commands", "hooks", "missing objects"])
def test_the_attacks_work_on_a_plain_fetch(upstream: Upstream, name: str) -> None:
    ATTACKS[name](upstream)

    login = "credential.helper=!f() { echo username=me; echo password=password7; }; f"
    fetch = ["git", "-c", login, "fetch", "origin"]
    subprocess.run(fetch, cwd=upstream.root, check=False, capture_output=True)
    subprocess.run(["git", "cat-file", "-t", "1" * 40], cwd=upstream.root, check=False)

    assert (upstream.folder / "canary").exists()


@pytest.mark.parametrize("damage", ["config", "refs", "objects", "shallow"])
def test_a_clone_that_is_damaged_is_a_note_or_left_alone(upstream: Upstream, damage: str) -> None:
    dot_git = upstream.root / ".git"
    if damage == "config":
        (dot_git / "config").write_bytes(b"[remote \xff\0\n")
    elif damage == "refs":
        (dot_git / "packed-refs").write_bytes(b"\xff nonsense\n")
    elif damage == "objects":
        (dot_git / "objects").rename(dot_git / "moved")
        (dot_git / "objects").symlink_to("moved")
    else:
        (dot_git / "shallow").write_text("nonsense\n")

    notes = upstream.clone()

    assert len(notes) <= 1
    assert (upstream.root / "README.md").exists()


def test_files_of_the_repository_choose_no_filter_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = new_upstream(tmp_path)
    upstream.commit(".gitattributes", "*.md filter=evil\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    evil = program(tmp_path)
    (tmp_path / ".gitconfig").write_text(
        f'[filter "evil"]\n\tsmudge = {evil}\n\trequired = true\n[core]\n\tfsmonitor = {evil}\n'
    )

    assert upstream.clone() == []

    assert not (tmp_path / "canary").exists()
    assert (upstream.root / "README.md").read_bytes() == (upstream.path / "README.md").read_bytes()
