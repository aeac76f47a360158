"""Intruders: what stands where a file belongs and is none. Nothing works round it, so it is put aside."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from nightherd.errors import RefusedError
from nightherd.files.corrupt import keep_aside
from nightherd.model.finding import Finding, Level
from nightherd.ports import Clock
from nightherd.state import layout

SIDE_FILES = tuple(f"{layout.DATABASE}{suffix}" for suffix in ("-wal", "-shm"))
"""SQLite's own, which it opens only where they are: a link in their place stops it."""

ENDINGS = {
    "": (".lock", ".json", ".yaml", layout.DATABASE, *SIDE_FILES, layout.GITIGNORE),
    layout.JOBS: (".jsonl", ".yaml"),
    layout.LEDGER: (".jsonl",),
    layout.SESSIONS: (".json", ".context"),
    layout.LOGS: (".log",),
}
"""How the names of files end, by the directory they are in; no directory is called so."""

SOCKET = ".sock"
ASIDE = ".corrupt-"
"""In the names of what was put aside before."""


def intruders(root: Path) -> Iterator[Finding]:
    """Directories, pipes and devices in the place of a file, and links in the place of SQLite's own."""
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue  # the checks of directories and permissions say why
        for entry in entries:
            kind = _kind(root, entry)
            if kind is not None:
                yield _found(Path(entry.path), kind)
            elif entry.is_symlink():
                yield from _away(Path(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                pending.append(Path(entry.path))


async def put_aside(root: Path, clock: Clock, finding: Finding) -> None:
    """Keep what was found under another name; what belongs there is made again by whoever needs it."""
    path = Path(finding.path or "")
    if not path.is_relative_to(root):
        raise RefusedError(f"{path} is not in the state directory")
    keep_aside(path, clock.now())


def _kind(root: Path, entry: os.DirEntry[str]) -> str | None:
    """What the entry is, if that is wrong where it is."""
    folder = os.path.relpath(os.path.dirname(entry.path), root)  # noqa: PTH120 - a path object per entry costs more than the scan
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return None  # gone since it was listed
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISLNK(mode):
        return "a link" if folder == "." and entry.name in SIDE_FILES else None
    if stat.S_ISDIR(mode):
        endings = ENDINGS.get("" if folder == "." else folder, ())
        return "a directory" if entry.name.endswith(endings) else None
    is_known = entry.name.endswith(SOCKET) or ASIDE in entry.name
    return None if is_known else "a pipe or a device"


def _away(path: Path) -> Iterator[Finding]:
    """A link of somebody's own to a file that cannot be made again: what it names may only be away."""
    if path.name.endswith((".jsonl", layout.DATABASE)) and not path.exists():
        yield Finding(
            check="files",
            level=Level.PROBLEM,
            message=f"{path} is a link to {path.readlink()}, which is not there",
            path=str(path),
            remedy="bring back what it names (a disk that is not mounted?), or remove the link",
        )


def _found(path: Path, kind: str) -> Finding:
    return Finding(
        check="files",
        level=Level.PROBLEM,
        message=f"{path} is {kind}, where a file belongs",
        path=str(path),
        remedy="it is kept aside",
        is_fixable=True,
    )
