"""What a disk may hold after a power cut at any moment of a recording.

What was synced is there. Of the rest, anything may be: names without their contents, contents in part, all of
it, or nothing. The database is as its last commit that SQLite was told to sync, or as any later one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from crash.power_recording import Frame, Tree


class Luck(StrEnum):
    """What became of names and bytes that were not synced."""

    LOST = "lost"
    NAMED = "named"
    """The names are there, the bytes are not: files of length zero."""
    HALF = "half"
    KEPT = "kept"


@dataclass(frozen=True, kw_only=True)
class Image:
    """A disk after a power cut, and what had been acknowledged by then."""

    frame: Frame
    place: int
    luck: Luck
    is_database_behind: bool
    files: dict[str, bytes | None]

    @property
    def fingerprint(self) -> str:
        """The same for images that hold the same and have to hold the same."""
        said = hashlib.sha256(repr((self.frame.appended, self.frame.applied)).encode())
        for name, content in sorted(self.files.items()):
            said.update(f"{name} {content is None} ".encode() + (content or b""))
        return said.hexdigest()

    def write(self, folder: Path) -> None:
        """Make `folder` this disk."""
        folder.mkdir(parents=True)
        for name, content in sorted(self.files.items()):
            path = folder / name
            if content is None:
                path.mkdir(mode=0o700, exist_ok=True)
            else:
                path.write_bytes(content)
                path.chmod(0o600)


@dataclass
class Disk:
    """What is surely there, moved on frame by frame."""

    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[str, dict[str, int]] = field(default_factory=dict)
    database: dict[str, bytes] = field(default_factory=dict)
    later_database: dict[str, bytes] = field(default_factory=dict)

    def take(self, frame: Frame) -> None:
        """One more frame."""
        if frame.synced_file is not None:
            inode, content = frame.synced_file
            self.contents[inode] = content
        if frame.synced_names is not None:
            folder, names = frame.synced_names
            self.names[folder] = names
        if frame.commit is not None:
            is_durable, files = frame.commit
            self.later_database = files
            if is_durable:
                self.database = files

    def files(self, tree: Tree, luck: Luck) -> dict[str, bytes | None]:
        """The files of `tree`, as far as they are there."""
        found: dict[str, bytes | None] = {}
        for name, (inode, content) in tree.items():
            if luck is Luck.LOST and not self._is_named(name, inode, tree):
                continue
            found[name] = None if content is None else self._content(inode, content, luck)
        return found

    def _is_named(self, name: str, inode: int, tree: Tree) -> bool:
        folder, _, own = name.rpartition("/")
        if self.names.get(folder, {}).get(own) != inode:
            return False
        return not folder or self._is_named(folder, tree[folder][0], tree)

    def _content(self, inode: int, content: bytes, luck: Luck) -> bytes:
        synced = self.contents.get(inode, b"")
        if luck is Luck.KEPT or content == synced:
            return content
        if luck is Luck.HALF and content.startswith(synced):
            return content[: (len(synced) + len(content) + 1) // 2]
        return synced


def images(frames: list[Frame], state: str) -> Iterator[Image]:
    """Every disk that a power cut during the recording may leave, each once."""
    disk = Disk()
    first = frames[0].tree
    # What was there before the run has been there for long.
    disk.names[""] = {name: inode for name, (inode, _) in first.items() if "/" not in name}
    disk.contents = {inode: content for inode, content in first.values() if content is not None}
    seen: set[str] = set()
    for place, frame in enumerate(frames):
        disk.take(frame)
        for luck in Luck:
            for is_behind in (True, False):
                files = disk.files(frame.tree, luck)
                if state in files:
                    database = disk.database if is_behind else disk.later_database
                    files |= {f"{state}/{name}": content for name, content in database.items()}
                image = Image(
                    frame=frame, place=place, luck=luck, is_database_behind=is_behind, files=files
                )
                if image.fingerprint not in seen:
                    seen.add(image.fingerprint)
                    yield image
