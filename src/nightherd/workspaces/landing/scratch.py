"""Scratch: where a landing computes its result. A git directory and objects of its own, deleted when it is over.

It reads the objects of the store and of the user's repository, and adds none to either. Trees are compared and merged as
commits have them; line endings and encodings are converted as `.gitattributes` say, when files are read and written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nightherd.errors import WorkspaceError
from nightherd.workspaces.git import SHORT_S, Git, Output, Place, split
from nightherd.workspaces.stores import HEAD, RAW, Store

FILES = ("100644", "100755")
GITLINK = "160000"
NO_MODE = "000000"
CONVERTED_BY = ("text", "eol", "crlf", "ident", "working-tree-encoding")
FIRST_VERSION = (2, 38)
"""Of git: `merge-tree --write-tree`."""


class TreeChange(NamedTuple):
    """One path that differs between two trees; absent is mode 000000."""

    path: str
    old_mode: str
    old_id: str
    mode: str
    id: str


class Scratch:
    """Trees and commits of one landing, in the directory `stage`."""

    def __init__(
        self,
        git: Git,
        stage: Path,
        store: Store,
        *,
        is_raw: bool,
        settings: Mapping[str, str],
        shallow: str | None,
    ) -> None:
        """`is_raw` switches conversions off, `settings` are the user's for them, `shallow` lists a clone's last commits."""
        self._git, self.stage, self._store = git, stage, store
        self._is_raw, self._settings = is_raw, settings
        self._variables = {} if shallow is None else {"GIT_SHALLOW_FILE": shallow}
        self._indexes = self._folders = 0
        self.empty = stage / "empty"
        self._lay_out()

    def _lay_out(self) -> None:
        config = Path(self._store.path, "config").read_text()
        config += "[core]\n\tsplitIndex = false\n\tfsync = none\n"
        own = "".join(f"\t{name} = {value}\n" for name, value in self._settings.items())
        for name, text in (("raw", ""), ("git", own)):
            folder = self.stage / name
            (folder / "refs").mkdir(parents=True)
            (folder / "HEAD").write_text(HEAD)
            (folder / "config").write_text(config + text)
        (self.stage / "raw" / "info").mkdir()
        (self.stage / "raw" / "info" / "attributes").write_text(RAW)
        (self.stage / "objects" / "pack").mkdir(parents=True)
        self.empty.mkdir()

    @property
    def git_dir(self) -> Path:
        """The git directory of places whose files are converted."""
        return self.stage / "git"

    def place(
        self, *, index: Path | None = None, work_tree: Path | None = None, is_raw: bool = False
    ) -> Place:
        """Return where a command works: on the landing's own objects and index."""
        return Place(
            git_dir=str(self.stage / ("raw" if is_raw or self._is_raw else "git")),
            work_tree=str(work_tree or self.empty),
            index=None if index is None else str(index),
            objects=str(self.stage / "objects"),
            alternates=(str(Path(self._store.path, "objects")),),
        )

    def run(
        self,
        place: Place,
        *arguments: str | Path,
        data: bytes | None = None,
        variables: Mapping[str, str] | None = None,
        doing: str | None = None,
    ) -> bytes:
        """Run git there; `WorkspaceError` unless it ends with 0."""
        known = {**self._variables, **(variables or {})}
        return self._git.run(place, *arguments, data=data, variables=known, doing=doing)

    def attempt(
        self,
        place: Place,
        *arguments: str,
        needs_credentials: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> Output:
        """Run git there, and return how it ended."""
        known = {**self._variables, **(variables or {})}
        return self._git.attempt(
            place, *arguments, variables=known, needs_credentials=needs_credentials
        )

    def error(
        self, done: Output, arguments: Sequence[str], doing: str | None = None
    ) -> WorkspaceError:
        """Return the error for a command that failed there."""
        return self._git.error(done, self.place(), arguments, doing)

    def new_index(self, tree: str) -> Path:
        """Return an index file that holds the tree."""
        self._indexes += 1
        index = self.stage / f"index-{self._indexes}"
        self.run(self.place(index=index), "read-tree", tree)
        return index

    def new_folder(self) -> Path:
        """Return a name for a directory of files."""
        self._folders += 1
        return self.stage / f"files-{self._folders}"

    def write_tree(self, index: Path) -> str:
        """Return the tree of an index."""
        return self.run(self.place(index=index), "write-tree").decode().strip()

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        name = f"{commit}^{{tree}}"
        return self.run(self.place(), "rev-parse", "--verify", "-q", name).decode().strip()

    def diff(self, old: str, new: str) -> list[TreeChange]:
        """Return what differs between two trees, in the order of paths."""
        if old == new:
            return []
        arguments = ("diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", old, new)
        fields = split(self.run(self.place(), *arguments))
        changes = []
        for meta, path in zip(fields[::2], fields[1::2], strict=True):
            old_mode, mode, old_id, new_id, _ = meta.lstrip(":").split(" ")
            changes.append(TreeChange(path, old_mode, old_id, mode, new_id))
        return changes

    def normalised(self, tree: str, base: str | None) -> str:
        """Return the snapshot as a commit would have it: what differs from `base` in stored line endings and encoding."""
        if self._is_raw or base is None:
            return tree
        changes = [change for change in self.diff(base, tree) if change.mode in FILES]
        snapshot = self.new_index(tree)
        paths = self._converted(snapshot, [change.path for change in changes])
        if not paths:
            return tree
        raw = self.new_folder()
        self.check_out(snapshot, paths, raw, is_raw=True)
        # Git looks at what the index has of a file to decide whether it is converted: there, the base's.
        earlier = [c._replace(mode=c.old_mode, id=c.old_id) for c in changes if c.path in paths]
        self._set_entries(snapshot, earlier)
        return self.with_files(snapshot, paths, raw)

    def _converted(self, index: Path, paths: Sequence[str]) -> set[str]:
        """Return the paths whose content git stores in another form than it has on disk."""
        if self._settings.get("autocrlf", "false") != "false":
            return set(paths)
        arguments = ("check-attr", "--cached", "-z", "--stdin", *CONVERTED_BY)
        data = self.run(self.place(index=index), *arguments, data=joined(paths))
        fields = split(data)
        values = zip(fields[::3], fields[2::3], strict=True)
        return {path for path, value in values if value not in ("unspecified", "unset")}

    def replaced(self, tree: str, entries: Sequence[TreeChange]) -> str:
        """Return the tree with other entries."""
        if not entries:
            return tree
        index = self.new_index(tree)
        self._set_entries(index, entries)
        return self.write_tree(index)

    def _set_entries(self, index: Path, entries: Iterable[TreeChange]) -> None:
        lines = [
            (f"0 {entry.id}" if entry.mode == NO_MODE else f"{entry.mode} {entry.id}") + f"\t{entry.path}\0"
            for entry in entries
        ]  # fmt: skip
        data = b"".join(os.fsencode(line) for line in lines)
        self.run(self.place(index=index), "update-index", "-z", "--index-info", data=data)

    def with_files(
        self, index: Path, paths: Iterable[str], folder: Path, absent: Iterable[str] = ()
    ) -> str:
        """Return the tree of an index in which `paths` are what the files below `folder` are, without `absent`."""
        nothing = "0" * len(self.write_tree(index))
        self._set_entries(index, [TreeChange(path, "", "", NO_MODE, nothing) for path in absent])
        place = self.place(index=index, work_tree=folder)
        arguments = ("update-index", "--add", "--replace", "-z", "--stdin")
        self.run(place, *arguments, data=joined(sorted(paths)))
        return self.write_tree(index)

    def check_out(
        self, index: Path, paths: Iterable[str], folder: Path, *, is_raw: bool = False
    ) -> None:
        """Write the files of an index below `folder`, by their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        place = self.place(index=index, is_raw=is_raw)
        arguments = ("checkout-index", "-z", "--stdin", f"--prefix={folder}/")
        self.run(place, *arguments, data=joined(paths))


def check_version(git: Git, store: Store) -> None:
    """`WorkspaceError` when git is too old to merge without files."""
    said = git.run(store.reading(), "version", timeout=SHORT_S).decode(errors="replace")
    numbers = [part for part in said.split()[2].split(".")[:2] if part.isdecimal()]
    if tuple(map(int, numbers)) < FIRST_VERSION:
        raise WorkspaceError(
            f"{said.strip()} cannot merge here; git 2.38 or newer can", hint="update git"
        )


def joined(paths: Iterable[str]) -> bytes:
    """Return paths as git reads them with `-z`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
