"""What setup commands made: remembered for each workspace, and kept for others with the same files."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import msgspec
from anyio import to_thread

from nightherd.decoding import decode_json
from nightherd.errors import WorkspaceError
from nightherd.files.atomic import atomic_write_json
from nightherd.files.paths import follow
from nightherd.files.regular import open_regular
from nightherd.model.workspaces.policy import SetupCommand
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports import WorkspaceFiles
from nightherd.workspaces.copies import copy_tree
from nightherd.workspaces.record import FOLDER, SETUP

MOST_KEPT = 10
"""Results of commands that are kept; the oldest go first."""
BLOCK = 1024 * 1024
ABSENT = b"absent"


class _Done(msgspec.Struct):
    """Which commands a workspace has had, by key."""

    keys: list[str] = []


class LocalSetupCache:
    """Results of setup commands below a state directory."""

    def __init__(self, state_dir: Path, files: WorkspaceFiles) -> None:
        self._state_dir = state_dir
        self._results = state_dir / "setup"
        self._files = files

    def key(self, workspace: Workspace, command: SetupCommand, terms: str = "") -> str:
        """Return the hash of the command, of its files, of what the workspace is made from, and of `terms`.

        A file that is missing counts as such.
        """
        top = Path(self._files.directory(workspace))
        digest = hashlib.sha256(os.fsencode(f"{workspace.root}\0{command.run}"))
        if terms:
            digest.update(os.fsencode(f"\0\0{terms}\0\0"))
        for name in (*command.files, "", *command.paths):
            digest.update(b"\0" + name.encode(errors="surrogatepass") + b"\0")
            if name in command.files:
                digest.update(_content_hash(top / name, top))
        return digest.hexdigest()[:32]

    def is_done(self, workspace: Workspace, key: str) -> bool:
        """Whether the workspace has had the command of that key."""
        return key in self._done(workspace).keys

    async def restore(self, workspace: Workspace, command: SetupCommand, key: str) -> bool:
        """Copy the kept result into the workspace; False when there is none."""
        return await to_thread.run_sync(self._restore, workspace, command, key)

    async def save(self, workspace: Workspace, command: SetupCommand, key: str) -> None:
        """Remember the command as done, and keep its result."""
        await to_thread.run_sync(self._save, workspace, command, key)

    def _restore(self, workspace: Workspace, command: SetupCommand, key: str) -> bool:
        kept = self._results / key
        if not kept.is_dir():
            return False
        top = Path(self._files.directory(workspace))
        try:
            for number, name in enumerate(command.paths):
                source = kept / str(number)
                if not os.path.lexists(source):
                    continue
                target = _inside(top / name, top)
                _remove(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                copy_tree(source, target)
                _give(target, top)
            os.utime(kept)
        except (OSError, WorkspaceError):
            return False  # the command makes it anew
        self._mark(workspace, key)
        return True

    def _save(self, workspace: Workspace, command: SetupCommand, key: str) -> None:
        self._mark(workspace, key)
        kept = self._results / key
        if not command.paths or kept.is_dir():
            return
        top = Path(self._files.directory(workspace))
        making = self._results / f"{key}.{os.getpid()}"
        try:
            self._results.mkdir(mode=0o700, exist_ok=True)
            _remove(making)
            making.mkdir()
            for number, name in enumerate(command.paths):
                source = _inside(top / name, top)
                if os.path.lexists(source):
                    copy_tree(source, making / str(number))
            making.rename(kept)
            self._forget_oldest()
        except OSError as error:
            _remove(making)
            if not kept.is_dir():  # else another worker kept the same meanwhile
                raise WorkspaceError(
                    f"{error.strerror}: {error.filename}", can_pass=True
                ) from error

    def _forget_oldest(self) -> None:
        kept = sorted(self._results.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in kept[: max(0, len(kept) - MOST_KEPT)]:
            _remove(path)

    def _done(self, workspace: Workspace) -> _Done:
        try:
            return decode_json(self._record(workspace).read_bytes(), _Done)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return _Done()  # the commands run again

    def _mark(self, workspace: Workspace, key: str) -> None:
        done = self._done(workspace)
        if key not in done.keys:
            record = self._record(workspace)
            record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            atomic_write_json(record, {"keys": [*done.keys[-100:], key]})

    def _record(self, workspace: Workspace) -> Path:
        return self._state_dir / FOLDER / workspace.id / SETUP


def _content_hash(path: Path, top: Path) -> bytes:
    """The hash of a file of the workspace; the same for all that is none, or that leads out of it."""
    try:
        home, place = follow(top), follow(_inside(path, top))
        if not place.is_relative_to(home):
            return ABSENT
        digest = hashlib.sha256()
        with open_regular(place, follows_links=False) as file:
            while block := file.read(BLOCK):
                digest.update(block)
        return digest.digest()
    except (OSError, WorkspaceError):
        return ABSENT


def _inside(path: Path, top: Path) -> Path:
    """Return the path, whose parent lies in the workspace also when links are followed."""
    real_top = Path(os.path.realpath(top))
    real_parent = Path(os.path.realpath(path.parent))
    if real_parent != real_top and not real_parent.is_relative_to(real_top):
        raise WorkspaceError(f"{path} leads out of the workspace")
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(real_top):
        raise WorkspaceError(f"{path} leads out of the workspace")
    return path


def _give(path: Path, top: Path) -> None:
    """Where root copies, what it copied is of whom the workspace is of: the agent may run as another user."""
    owner = top.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    for _, folders, files, directory in os.fwalk(path):
        for name in (*folders, *files):
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=directory, follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
