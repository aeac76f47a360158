"""What a run does to its files and what of it is on the disk, frame by frame.

Every call that changes or syncs a file makes a frame: all files as they are then, and what that call has put on
the disk. The process is told to record before it runs a command; the frames go to a file at its end.

SQLite writes its files past Python. They are taken as what SQLite promises: after each COMMIT the database as
it is, and, of those commits, which ones SQLite was told to put on the disk (`synchronous = FULL`).
"""

from __future__ import annotations

import os
import pickle
import stat
import threading
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import msgspec

from crash.system_calls import CHANGING, SYNCING
from nightherd import ports
from nightherd.db import connection, group
from nightherd.files.atomic import SYSTEM_CALLS
from nightherd.journal.writer import JournalFile
from nightherd.model.change import Applied
from nightherd.state.store import SqliteStore

DATABASE = "nightherd.db"

Tree = dict[str, tuple[int, bytes | None]]
"""Path to inode and content; None for a directory."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A moment: what was done, the files after it, and everything that was acknowledged before it."""

    call: str
    tree: Tree
    synced_file: tuple[int, bytes] | None = None
    synced_names: tuple[str, dict[str, int]] | None = None
    commit: tuple[bool, dict[str, bytes]] | None = None
    appended: int = 0
    """Events that were acknowledged."""
    applied: tuple[str, ...] = ()
    """Kinds of the changes that were acknowledged."""


@dataclass
class Recording:
    """Records this process; nothing of it is ever undone."""

    folder: Path
    frames: list[Frame] = field(default_factory=list)
    appended: int = 0
    applied: tuple[str, ...] = ()
    is_durable: bool = True
    turn: Any = field(default_factory=threading.RLock)
    is_busy: bool = False

    def begin(self) -> None:
        """Record from here on."""
        self.add("begin")
        for name in (*CHANGING, *SYNCING):
            self._wrap_call(name)
        # Those who were given the calls before get the recorded ones too.
        msgspec.structs.force_setattr(SYSTEM_CALLS, "fsync", os.fsync)
        msgspec.structs.force_setattr(SYSTEM_CALLS, "rename", os.replace)
        self._wrap_commits()
        self._wrap_acknowledgements()

    def add(self, call: str, **found: Any) -> None:
        """A frame of now."""
        with self.turn:
            self.is_busy = True
            tree = self._look()
            found |= {"appended": self.appended, "applied": self.applied}
            self.frames.append(Frame(call=call, tree=tree, **found))
            self.is_busy = False

    def save(self, path: Path) -> None:
        """Everything, for the one who looks at it."""
        self.is_busy = True
        path.write_bytes(pickle.dumps(self.frames))

    def _look(self) -> Tree:
        tree: Tree = {}
        for path in sorted(self.folder.rglob("*")):
            if path.name.startswith(DATABASE):
                continue
            try:
                found = path.stat()
                content = None if stat.S_ISDIR(found.st_mode) else path.read_bytes()
            except FileNotFoundError:
                continue
            tree[str(path.relative_to(self.folder))] = (found.st_ino, content)
        return tree

    def _wrap_call(self, name: str) -> None:
        call = getattr(os, name)

        @wraps(call)
        def recorded(*given: Any, **named: Any) -> Any:
            if self.is_busy or (name == "open" and not (len(given) > 1 and given[1] & os.O_CREAT)):
                return call(*given, **named)
            with self.turn:
                done = call(*given, **named)
                self.add(name, **(self._synced(given[0]) if name in SYNCING else {}))
            return done

        setattr(os, name, recorded)

    def _synced(self, descriptor: int) -> dict[str, Any]:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            names = {entry.name: entry.inode() for entry in os.scandir(path)}
            where = str(path.relative_to(self.folder)) if path != self.folder else ""
            return {"synced_names": (where, names)}
        return {"synced_file": (found.st_ino, path.read_bytes())}

    def _wrap_commits(self) -> None:
        set_synchronous = connection.set_synchronous

        def noted(database: Any, *, is_durable: bool) -> None:
            self.is_durable = is_durable
            set_synchronous(database, is_durable=is_durable)

        def probe(point: str, /) -> None:
            is_made = point == "db.begin" and self.applied == ()
            if point == "db.after_commit" or is_made:
                # Making the tables is synced: it comes before the first group says otherwise.
                files = self.folder.rglob(f"{DATABASE}*")
                content = {
                    file.name: file.read_bytes() for file in files if "-shm" not in file.name
                }
                self.add("commit", commit=(self.is_durable or is_made, content))

        setattr(group, "set_synchronous", noted)  # noqa: B010 - another function to the type checker
        setattr(ports, "no_probe", probe)  # noqa: B010

    def _wrap_acknowledgements(self) -> None:
        append, apply = JournalFile.append, SqliteStore.apply

        def appended(journal: Any, event: Any) -> Any:
            written = append(journal, event)
            self.appended = written.seq
            self.add("acknowledged")
            return written

        async def applied(store: Any, changes: Any) -> Any:
            answers = await apply(store, changes)
            for change, answer in zip(changes, answers, strict=True):
                if isinstance(answer, Applied):
                    self.applied = (*self.applied, type(change).__name__)
            self.add("acknowledged")
            return answers

        setattr(JournalFile, "append", appended)  # noqa: B010
        setattr(SqliteStore, "apply", applied)  # noqa: B010
