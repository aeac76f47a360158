"""The index of a directory that has a moved branch checked out: locked as git locks it, and replaced by a staged one."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from nightherd.errors import WorkspaceError
from nightherd.files.atomic import sync_directory
from nightherd.ports.world import Probe
from nightherd.workspaces.git import Git, Place
from nightherd.workspaces.landing.record import MovedRef

TRIES, PAUSE_S = 20, 0.1
"""How long git of somebody else may hold the lock: an editor looks at a repository all the time."""


def index_digest(index: str | Path) -> str:
    """Return what stands for the content of an index; nothing when there is none."""
    try:
        return sha256(Path(index).read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


class HeldIndex:
    """The index that belongs to a moved ref, for the landing whose files are in `stage`."""

    def __init__(self, moved: MovedRef, stage: Path, git: Git, probe: Probe) -> None:
        assert moved.index is not None  # noqa: S101 (asked by the caller)
        self._moved, self._stage, self._git, self._probe = moved, stage, git, probe
        self._index, self._lock = Path(moved.index), Path(moved.lock)
        self._own = Path(f"{moved.index}.{stage.name}")
        self._token = f"nightherd {stage.name}\n".encode()

    @property
    def is_as_before(self) -> bool:
        """Whether nobody has changed it since the landing looked at it."""
        return index_digest(self._index) == self._moved.index_before

    def lock(self) -> None:
        """Keep others from changing the index; `WorkspaceError` when somebody else keeps us. Ours is taken again."""
        self._own.unlink(missing_ok=True)
        self._own.write_bytes(self._token)
        for attempt in range(TRIES):
            if attempt:
                time.sleep(PAUSE_S)
            try:
                os.link(self._own, self._lock)
                break
            except FileExistsError:
                if self._is_ours():
                    break
        else:
            self._own.unlink()
            raise WorkspaceError(
                f"'{self._lock}' is there: another git command is at work in '{self._index.parent}'",
                hint="wait for it; if none runs, delete the file",
                can_pass=True,
            )
        self._own.unlink()
        self._probe("landing.index_locked")

    def replace(self, work_tree: str | None) -> None:
        """Put the staged index in its place, if nobody has changed the one that is there."""
        staged = self._stage / self._moved.staged_index
        if not self.is_as_before:
            return
        if work_tree is not None:
            staged.with_name(f"{staged.name}.lock").unlink(missing_ok=True)
            place = Place(
                git_dir=str(self._stage / "git"),
                work_tree=work_tree,
                index=str(staged),
                objects=str(self._stage / "objects"),
            )
            # So that the next `git status` need not read the files again; it is no matter when that fails.
            self._git.attempt(place, "update-index", "-q", "--refresh")
        self._probe("landing.before_index")
        shutil.copy2(
            staged, self._own
        )  # with its time: git judges by that which entries it has to look at again
        with suppress(FileNotFoundError):
            shutil.copymode(self._index, self._own)
        with self._own.open("rb") as copied:
            os.fsync(copied.fileno())
        self._own.replace(self._index)
        sync_directory(self._index.parent)
        self._probe("landing.after_index")

    def unlock(self) -> None:
        """Let others change it again. A lock of somebody else stays."""
        self._own.unlink(missing_ok=True)
        if self._is_ours():
            self._lock.unlink()
        self._probe("landing.index_unlocked")

    def _is_ours(self) -> bool:
        try:
            return self._lock.read_bytes() == self._token
        except OSError:
            return False
