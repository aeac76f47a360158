"""Which processes belong together, as /proc shows. Loaded by the keeper too, so it imports nothing but `os`.

A process belongs when it is one of the roots or in the process group of one, carries every mark in its
environment, or descends from one that belongs. Where there is no /proc, the groups of the roots are all
that is found, and stand in the answers as negative numbers.
"""

from __future__ import annotations

import os

PROC = "/proc"
KEEPER = b"NIGHTHERD_KEEPER=self"
"""In the environment of keepers, and of nothing that they start."""


class Entry:
    """One process that runs."""

    __slots__ = ("group", "parent", "pid", "started")

    def __init__(self, *, pid: int, parent: int, group: int, started: int) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.started = started


class Census:
    """The processes that belong, as they are found; one once found stays ours when its parent goes."""

    def __init__(
        self,
        *,
        marks: frozenset[bytes] = frozenset(),
        roots: frozenset[int] = frozenset(),
        spared: frozenset[int] = frozenset(),
    ) -> None:
        self._marks = marks
        self._roots = roots
        self._spared = spared
        self._known: frozenset[tuple[int, int]] = frozenset()

    def find(self) -> dict[int, int]:
        """Those alive now: pid to start time. Keepers are listed last, when nothing else is left.

        A keeper is what others are left to when their parent dies: while it lives none gets away.
        """
        if not _read(f"{PROC}/self/stat"):
            return self._find_groups()
        entries = processes()
        found = {entry.pid: entry for entry in entries if self._belongs(entry)}
        while more := [one for one in entries if one.parent in found and one.pid not in found]:
            found.update((one.pid, one) for one in more)
        for pid in self._spared:
            found.pop(pid, None)
        self._known = frozenset((one.pid, one.started) for one in found.values())
        alive = {pid: one.started for pid, one in found.items()}
        others = {pid: alive[pid] for pid in alive if KEEPER not in environment(pid)}
        return others or alive

    def _belongs(self, entry: Entry) -> bool:
        return (
            entry.pid in self._roots
            or entry.group in self._roots
            or (entry.pid, entry.started) in self._known
            or (bool(self._marks) and self._marks <= environment(entry.pid))
        )

    def _find_groups(self) -> dict[int, int]:
        return {-root: 0 for root in self._roots - self._spared if send(-root, 0)}


def send(pid: int, number: int) -> bool:
    """Signal a process, or a group when negative; False when it is gone or not ours to signal."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def environment(pid: int) -> set[bytes]:
    """The `NAME=value` entries the process was started with; none when it is gone or another person's."""
    return set(_read(f"{PROC}/{pid}/environ").split(b"\0"))


def processes() -> list[Entry]:
    """Every process that runs; not those that only wait for their parent to take note of their end."""
    entries = []
    try:
        names = os.listdir(PROC)  # noqa: PTH208 the keeper does without pathlib
    except OSError:
        return []
    for name in names:
        if not name.isdigit():
            continue
        # The command's name stands in parentheses and may contain anything, also parentheses.
        fields = _read(f"{PROC}/{name}/stat").rpartition(b")")[2].split()
        if fields and fields[0] not in (b"Z", b"X"):
            entries.append(
                Entry(
                    pid=int(name),
                    parent=int(fields[1]),
                    group=int(fields[2]),
                    started=int(fields[19]),
                )
            )
    return entries


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:  # gone while we read
        return b""
    finally:
        os.close(descriptor)
