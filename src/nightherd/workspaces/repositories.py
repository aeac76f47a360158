"""Repositories of the user: where one is, what its names mean, and the refs that are ours in it.

Git reads the repository's own configuration here. So only names are resolved and refs moved; files are never read.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.workspace import BRANCH_PREFIX
from nightherd.workspaces.git import SHORT_S, Git, Place, failure
from nightherd.workspaces.stores import Source

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
KEPT = ("base", "start", "head")
"""Commits of a workspace that snapshots may need: where it began, what was checked out first, and where it is."""
PATIENCE_S, PAUSE_S = 20.0, 0.01
"""How long other registrations of worktrees are waited for; each takes milliseconds."""
SHOWN_BRANCHES = 10
QUESTIONS = ("--git-common-dir", "--git-dir", "--show-toplevel", "--show-prefix")
"""What `git rev-parse` is asked about a directory."""
NO_REPOSITORY = "use mode: copy, or run `git init` there and commit"


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """The repository that a directory is in. Paths are absolute."""

    common_dir: str
    git_dir: str
    """That of the worktree the directory is in; of the main one, the same as `common_dir`."""
    top: str
    prefix: str
    """The directory, relative to `top`; empty for the top itself."""
    object_format: str

    @property
    def source(self) -> Source:
        """What a store reads from it."""
        return Source(
            objects=str(Path(self.common_dir) / "objects"), object_format=self.object_format
        )

    @property
    def is_partial(self) -> bool:
        """Whether it is a partial clone, which lacks objects."""
        packs = Path(self.common_dir) / "objects" / "pack"
        return any(packs.glob("*.promisor"))


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """Where a worktree begins: a name and the commit it means now."""

    name: str
    commit: str


def locate(git: Git, root: str) -> Repository:
    """Return the repository that `root` is in, and where in it; `WorkspaceError` when there is none with files."""
    place = Place(directory=root)
    answer = git.attempt(
        place, "rev-parse", "--path-format=absolute", *QUESTIONS, "--show-object-format",
        timeout=SHORT_S,
    )  # fmt: skip
    if answer.status != 0:
        raise _not_usable(git, root, answer.err)
    fields = os.fsdecode(answer.out).split("\n")[:-1]
    if len(fields) != len(QUESTIONS) + 1:  # a path with line ends: ask for each alone
        fields = [_ask(git, root, question) for question in (*QUESTIONS, "--show-object-format")]
    common_dir, git_dir, top, prefix, object_format = fields
    return Repository(
        common_dir=common_dir,
        git_dir=git_dir,
        top=top,
        prefix=prefix.rstrip("/"),
        object_format=object_format,
    )


def _ask(git: Git, root: str, question: str) -> str:
    out = git.run(
        Place(directory=root), "rev-parse", "--path-format=absolute", question, timeout=SHORT_S
    )
    return os.fsdecode(out.removesuffix(b"\n"))


def _not_usable(git: Git, root: str, reason: bytes) -> WorkspaceError:
    if b"not a git repository" in reason:
        return WorkspaceError(f"'{root}' is not in a git repository", hint=NO_REPOSITORY)
    if b"must be run in a work tree" in reason:
        return WorkspaceError(
            f"'{root}' is a bare repository, or inside of one: it has no files to work on",
            hint="clone it, and use the clone as working_directory",
        )
    text = reason.decode(errors="replace").strip()
    return WorkspaceError(f"the repository of '{root}' cannot be used: {text}")


def resolve_base(git: Git, repository: Repository, base: str | None) -> Base:
    """Return where a worktree begins: at `base`, else at what is checked out in the directory."""
    if base is not None:
        for name in (base, f"refs/remotes/origin/{base}"):
            commit = find_commit(git, repository, name)
            if commit is not None:
                return Base(name=base, commit=commit)
        raise _no_base(git, repository, base)
    commit = find_commit(git, repository, "HEAD")
    if commit is None:
        message = f"the repository '{repository.top}' has no commit yet"
        raise WorkspaceError(message, hint="commit something, or use mode: copy")
    branch = git.attempt(
        Place(git_dir=repository.git_dir), "symbolic-ref", "--quiet", "--short", "HEAD",
        timeout=SHORT_S,
    )  # fmt: skip
    name = os.fsdecode(branch.out).strip() if branch.status == 0 else commit
    return Base(name=name, commit=commit)


def _no_base(git: Git, repository: Repository, base: str) -> WorkspaceError:
    out = git.in_repository(
        repository.common_dir, "for-each-ref", "--format=%(refname:short)", "--sort=-committerdate",
        "refs/heads", "refs/remotes",
    )  # fmt: skip
    names = [name for name in os.fsdecode(out).split() if not name.startswith(f"{BRANCH_PREFIX}/")]
    known = ", ".join(names[:SHOWN_BRANCHES]) + (", ..." if len(names) > SHOWN_BRANCHES else "")
    message = f"base {base!r} is no branch, tag or commit of '{repository.top}'"
    return WorkspaceError(
        message, hint=f"set base to one of its branches: {known}" if known else "commit something"
    )


def find_commit(git: Git, repository: Repository, name: str) -> str | None:
    """Return the commit that a name means; None when it means none, or one that is gone."""
    done = git.attempt(
        Place(git_dir=repository.git_dir), "rev-parse", "--verify", "--quiet", "--end-of-options",
        f"{name}^{{commit}}", timeout=SHORT_S,
    )  # fmt: skip
    commit = done.out.decode(errors="replace").strip()
    return commit if done.status == 0 and COMMIT.fullmatch(commit) else None


def tree_of(git: Git, repository: Repository, commit: str) -> str:
    """Return the tree of a commit."""
    out = git.in_repository(repository.common_dir, "rev-parse", "--verify", f"{commit}^{{tree}}")
    return out.decode().strip()


def find_branch(git: Git, repository: Repository, branch: str) -> str | None:
    """Return the commit of a branch; None when it is not there.

    `WorkspaceError` when another branch takes the place of a directory in its name.
    """
    parts = branch.split("/")
    refs = [f"refs/heads/{'/'.join(parts[:length])}" for length in range(1, len(parts) + 1)]
    out = git.in_repository(
        repository.common_dir, "for-each-ref", "--format=%(refname) %(objectname)", *refs
    )
    commits = dict(line.rsplit(" ", 1) for line in os.fsdecode(out).splitlines())
    for ref in refs[:-1]:
        if ref in commits:
            name = ref.removeprefix("refs/heads/")
            raise WorkspaceError(
                f"the branch {branch!r} cannot be made in '{repository.top}': there is a branch {name!r}",
                hint=f"rename it: git branch -m {name} {name}-old",
            )
    return commits.get(refs[-1])


def clear_stale_locks(common_dir: str, workspace_id: str, branch: str | None = None) -> None:
    """Remove locks of refs that a killed git left. Only the owner of the workspace moves these refs.

    The branch belongs to the agent while it works: its lock is stale only before and after that.
    """
    refs = [ref_of(workspace_id, name) for name in KEPT]
    if branch is not None:
        refs.append(f"refs/heads/{branch}")
    for ref in refs:
        with suppress(OSError):
            Path(common_dir, f"{ref}.lock").unlink()


def keep_commits(git: Git, common_dir: str, workspace_id: str, commits: Mapping[str, str]) -> None:
    """Keep commits from being collected: each by a ref `refs/nightherd/<id>/<name>`."""
    clear_stale_locks(common_dir, workspace_id)
    lines = [f"update {ref_of(workspace_id, name)} {commit}\n" for name, commit in commits.items()]
    git.in_repository(
        common_dir, "update-ref", "--no-deref", "--stdin", data="".join(lines).encode(),
        doing="the commits of a workspace cannot be kept",
    )  # fmt: skip


def forget_commits(git: Git, common_dir: str, workspace_id: str) -> None:
    """Let the commits of a workspace go: for one that was never made."""
    lines = [f"delete {ref_of(workspace_id, name)}\n" for name in KEPT]
    git.in_repository(
        common_dir, "update-ref", "--no-deref", "--stdin", data="".join(lines).encode()
    )


def ref_of(workspace_id: str, name: str) -> str:
    """Return the ref that keeps a commit: `base`, `start` or `head` of a workspace."""
    return f"refs/{BRANCH_PREFIX}/{workspace_id}/{name}"


@contextmanager
def registering(common_dir: str) -> Iterator[None]:
    """Register or remove worktrees of a repository one after the other: git fails when it sees half of another."""
    try:
        handle = os.open(common_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise failure(error, f"the repository '{common_dir}' cannot be used") from error
    try:
        _wait_for_lock(handle)
        yield
    finally:
        os.close(handle)


def _wait_for_lock(handle: int) -> None:
    """Take the lock. Where there are no locks, or an agent holds it for ever, the loser of a race tries again."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE_S)
        except OSError:
            return
        else:
            return


def delete_branch_unless_lost(git: Git, common_dir: str, branch: str, base: str | None) -> bool:
    """Delete a branch whose commits are all on another one; whether it is gone.

    A branch that is checked out somewhere stays, and so does one that moves meanwhile.
    """
    ref = f"refs/heads/{branch}"
    with registering(common_dir):
        out = git.in_repository(
            common_dir, "for-each-ref", "--format=%(objectname) %(worktreepath)", ref
        )
    line = os.fsdecode(out).removesuffix("\n")
    if not line:
        return True
    commit, _, checked_out = line.partition(" ")
    if checked_out:
        return False
    if commit != base and not _is_elsewhere(git, common_dir, commit, ref):
        return False
    done = git.attempt(
        Place(git_dir=common_dir), "update-ref", "--no-deref", "-d", ref, commit, timeout=SHORT_S
    )
    return done.status == 0


def _is_elsewhere(git: Git, common_dir: str, commit: str, ref: str) -> bool:
    out = git.in_repository(
        common_dir, "for-each-ref", "--format=%(refname)", "--contains", commit,
        "refs/heads", "refs/remotes", "refs/tags", timeout=10 * SHORT_S,
    )  # fmt: skip
    return any(name != ref for name in os.fsdecode(out).split("\n") if name)
