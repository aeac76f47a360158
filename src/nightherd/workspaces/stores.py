"""Stores: bare git repositories of our own that hold snapshots, one for each repository of the user.

    <state directory>/snapshots/<name>.git/
        config            written by nightherd, the only configuration that file operations read
        info/attributes   switches every conversion off: snapshots hold files byte for byte
        kept/             the objects of snapshots
        objects/          reads from `kept` and, as alternates, from the user's repository
        checkout/         a second, tiny git directory without those attributes, for checking commits out

`kept` has no alternates. What a snapshot adds is therefore always written there, also when the user's repository
happens to have it now: git may collect it there at any time.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from nightherd.errors import AtomicWriteError, WorkspaceError
from nightherd.files.atomic import atomic_write_file
from nightherd.files.permission import make_private
from nightherd.workspaces.git import Place, failure

FOLDER = "snapshots"
NAME_LENGTH = 16
SHA1 = "sha1"
HEAD = "ref: refs/heads/none\n"
RAW = "* -text -eol -crlf -filter -ident -working-tree-encoding\n"
OWN = "../kept"
CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tbare = true
\tfilemode = true
\tsymlinks = true
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tautocrlf = false
\tsafecrlf = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tprotectNTFS = false
\tfsync = loose-object
\tfsyncMethod = batch
[gc]
\tauto = 0
[maintenance]
\tauto = false
[protocol]
\tallow = never
[protocol "https"]
\tallow = always
[protocol "http"]
\tallow = always
[protocol "ssh"]
\tallow = always
[protocol "git"]
\tallow = always
[protocol "file"]
\tallow = always
"""
FOLDERS = ("objects/info", "objects/pack", "kept/pack", "refs", "info", "checkout/refs")
PRIVATE = "[core]\n\tsharedRepository = 0600\n"
"""Objects and indexes are their owner's alone, whatever the umask says."""
FORMAT = "[extensions]\n\tobjectFormat = {name}\n"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The repository that a store reads objects from."""

    objects: str
    """Its directory of objects."""
    object_format: str = SHA1


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """One store. Its places say where a git command works."""

    name: str
    path: str

    def reading(self, *, work_tree: str | None = None, index: str | None = None) -> Place:
        """All objects: those of snapshots and of the user's repository. Files are taken byte for byte."""
        return Place(git_dir=self.path, work_tree=work_tree, index=index, is_ours=True)

    def writing(self, *, work_tree: str | None = None, index: str | None = None) -> Place:
        """Only the objects of snapshots, so that what is added is kept. Files are taken byte for byte."""
        return Place(
            git_dir=self.path,
            work_tree=work_tree,
            index=index,
            objects=self.kept,
            is_ours=True,
        )

    def checkout(self, *, work_tree: str | None = None, index: str | None = None) -> Place:
        """All objects; line endings and encodings of files as their `.gitattributes` say. Filters do not run."""
        path = Path(self.path)
        return Place(
            git_dir=str(path / "checkout"),
            work_tree=work_tree,
            index=index,
            objects=str(path / "objects"),
            is_ours=True,
        )

    @property
    def kept(self) -> str:
        """The directory of the objects that snapshots added."""
        return str(Path(self.path) / "kept")


class Stores:
    """The stores of a state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir.absolute() / FOLDER

    def path(self, name: str) -> Path:
        """Return where the store is, there or not."""
        return self._folder / f"{name}.git"

    def open(self, name: str) -> Store:
        """Return a store that is there; `WorkspaceError` otherwise."""
        path = self.path(name)
        if not (path / "HEAD").is_file():
            message = f"the store of these snapshots is missing: '{path}'"
            raise WorkspaceError(message, hint="restore it from a backup of the state directory")
        return Store(name=name, path=str(path))

    def ensure(self, name: str, source: Source | None = None) -> Store:
        """Return the store, made or completed if need be; it reads objects from `source` from now on.

        It goes on reading from earlier sources that are still there. Any number of processes may do this at once.
        """
        path = self.path(name)
        object_format = source.object_format if source is not None else SHA1
        is_sha1 = object_format == SHA1
        config = CONFIG.format(version=0 if is_sha1 else 1)
        config += PRIVATE + ("" if is_sha1 else FORMAT.format(name=object_format))
        try:
            for folder in FOLDERS:
                make_private(path / folder, self._folder.parent)
            _write(path / "config", config)
            _write(path / "info" / "attributes", RAW)
            _write(path / "objects" / "info" / "alternates", _alternates(path, source))
            _write(path / "checkout" / "config", config)
            _write(path / "checkout" / "HEAD", HEAD)
            # The last file: with it, the store is whole.
            _write(path / "HEAD", HEAD)
        except (OSError, AtomicWriteError) as error:
            raise failure(error, f"the store of snapshots '{path}' cannot be made") from error
        return Store(name=name, path=str(path))


def store_name(directory: str, object_format: str = SHA1) -> str:
    """Return the name of the store for a repository's common directory, or for a directory without repository."""
    text = os.path.realpath(directory)
    if object_format != SHA1:  # git cannot read both from one store
        text += f"\0{object_format}"
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:NAME_LENGTH]


def _alternates(path: Path, source: Source | None) -> str:
    objects = path / "objects"
    lines = [OWN]
    if source is not None:
        # By both names: the state directory may be moved alone, or together with the repository.
        lines += [
            alternate_line(source.objects),
            alternate_line(os.path.relpath(source.objects, objects)),
        ]
    try:
        known = os.fsdecode((objects / "info" / "alternates").read_bytes())
    except FileNotFoundError:
        known = ""
    for line in known.splitlines():
        if line not in lines and _is_there(line, objects):
            lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def alternate_line(directory: str) -> str:
    """A directory as a line of `alternates`, quoted where its name needs that."""
    if "\n" not in directory:
        return directory
    text = directory.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def _is_there(line: str, objects: Path) -> bool:
    return line.startswith('"') or (objects / line).is_dir()


def _write(path: Path, content: str) -> None:
    data = os.fsencode(content)
    try:
        if path.read_bytes() == data:
            return
    except FileNotFoundError:
        pass
    atomic_write_file(path, data)
