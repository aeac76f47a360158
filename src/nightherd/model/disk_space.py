"""Disk space: how full a disk is, and from when on that is trouble."""

from __future__ import annotations

import msgspec

from nightherd.model.doctor import Level

SPARE_BYTES = 1 << 30
LEAST_BYTES = 100 << 20


class DiskSpace(msgspec.Struct, frozen=True, kw_only=True):
    """How full a disk is, in bytes."""

    free: int
    total: int

    @property
    def level(self) -> Level:
        """How bad that is: a disk is nearly full with less than 1 GiB and a twentieth, full with less than 100 MiB."""
        if self.free >= SPARE_BYTES or self.free >= self.total // 20:
            return Level.OK
        return Level.PROBLEM if self.free < LEAST_BYTES else Level.WARNING
