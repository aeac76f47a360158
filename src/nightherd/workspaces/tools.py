"""What making, snapshotting and removing a workspace need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from nightherd.ports import Probe
from nightherd.ports.world import no_probe
from nightherd.workspaces.git import Git
from nightherd.workspaces.record import Record
from nightherd.workspaces.stores import Stores


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """Git, the stores, and where the state directory is."""

    state_dir: Path
    git: Git
    stores: Stores
    probe: Probe = no_probe

    def record(self, workspace_id: str) -> Record:
        """Return our files about a workspace."""
        return Record(self.state_dir, workspace_id)

    @contextmanager
    def owning(self, record: Record) -> Iterator[Tools]:
        """Own a workspace. Its git commands hold the lock too, so they never run beside those of a later owner."""
        with record.locked() as handle:
            yield replace(self, git=self.git.holding(handle))
