"""Health as Home shows it: what is known at once about the process, the disk, connectors and logins, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import msgspec

from nightherd.model.disk_space import DiskSpace
from nightherd.model.doctor import Level
from nightherd.model.notifications.notification import TargetState
from nightherd.model.text import counted
from nightherd.model.units import format_size
from nightherd.views.costs.limits import LoginLimitRow, login_limit_row
from nightherd.views.fleet.status import ConfigErrorRow, DaemonRow
from nightherd.views.people.notifications import FailingTargetRow, failing_row

if TYPE_CHECKING:
    from nightherd.model.limits.login import LoginLimit

LEVELS = (Level.OK, Level.WARNING, Level.PROBLEM)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What is known at once."""

    daemon: DaemonRow | None = None
    disk: DiskSpace | None = None
    failing: Sequence[TargetState] = ()
    """The targets of notifications that do not take what they are sent."""
    rate_limits: Sequence[LoginLimit] = ()
    stopped: Mapping[str, LoginLimit] = {}
    """The agents whose jobs do not start because of a rate limit."""
    waiting: int = 0
    workers: int = 0
    """Those that are really there."""
    lost: int = 0

    @property
    def troubles(self) -> list[tuple[Level, str]]:
        """What a person should know, the worst first."""
        return sorted(self._troubles(), key=lambda one: -LEVELS.index(one[0]))

    def _troubles(self) -> Iterator[tuple[Level, str]]:
        if self.daemon is not None and self.daemon["config_error"] is not None:
            problems = counted(len(self.daemon["config_error"]["problems"]), "error")
            yield Level.PROBLEM, f"the newest configuration is not used: it has {problems}"
        if self.disk is not None and self.disk.level is not Level.OK:
            free, total = format_size(self.disk.free), format_size(self.disk.total)
            word = "full" if self.disk.level is Level.PROBLEM else "nearly full"
            yield self.disk.level, f"the disk is {word}: {free} of {total} are free"
        if self.waiting and not self.workers:
            yield Level.PROBLEM, f"no worker runs; {counted(self.waiting, 'waiting job')}"
        if self.daemon is not None and self.daemon["is_draining"]:
            yield Level.WARNING, "the daemon is about to stop: it starts no more jobs"
        if self.lost:
            yield Level.WARNING, f"{counted(self.lost, 'running job')} without a live worker"
        for target in self.failing:
            yield Level.WARNING, f"notify target {target.id} takes nothing: {target.last_error}"
        for limit in self.rate_limits:
            agents = [name for name, one in self.stopped.items() if one.id == limit.id]
            whose = ", ".join(sorted(agents)) or "no agent now"
            yield Level.WARNING, f"login {limit.id} is rate limited, which stops {whose}"


class DiskRow(TypedDict):
    """How full the disk of the state directory is."""

    free_bytes: int
    total_bytes: int


class TroubleRow(TypedDict):
    """Something that a person should know, in a sentence."""

    level: Level
    text: str


class HealthRow(TypedDict):
    """What is known at once about the fleet's health."""

    level: Level
    daemon: DaemonRow | None
    disk: DiskRow | None
    failing_notify_targets: list[FailingTargetRow]
    rate_limits: list[LoginLimitRow]
    config_error: ConfigErrorRow | None
    troubles: list[TroubleRow]


def health_row(health: Health) -> HealthRow:
    """Return the fleet's health as plain data."""
    disk, troubles = health.disk, health.troubles
    return {
        "level": troubles[0][0] if troubles else Level.OK,
        "daemon": health.daemon,
        "disk": None if disk is None else {"free_bytes": disk.free, "total_bytes": disk.total},
        "failing_notify_targets": [failing_row(one) for one in health.failing],
        "rate_limits": [login_limit_row(one, health.stopped) for one in health.rate_limits],
        "config_error": None if health.daemon is None else health.daemon["config_error"],
        "troubles": [{"level": level, "text": text} for level, text in troubles],
    }
