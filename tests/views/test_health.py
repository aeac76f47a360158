"""Health: what is in trouble, in sentences, the worst first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nightherd.model.disk_space import DiskSpace
from nightherd.model.doctor import Level
from nightherd.model.limits.login import LoginLimit
from nightherd.model.notifications.notification import TargetState
from nightherd.views.fleet.status import ConfigErrorRow, DaemonRow
from nightherd.views.health.health import Health, health_row

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 1 << 30
LIMIT = LoginLimit(
    id="claude-key:1", until=NOW, next_start_at=NOW, recorded_at=NOW, job_id=None, name=None
)


def daemon(*, is_draining: bool = False, error: ConfigErrorRow | None = None) -> DaemonRow:
    return DaemonRow(
        pid=7,
        host="barn",
        version="1",
        started_at="",
        uptime_seconds=9.0,
        is_draining=is_draining,
        config="nightherd.yaml",
        agents=None,
        loaded_at="",
        config_error=error,
        pending=[],
        socket=None,
        ports=[],
        address=None,
    )


def test_a_healthy_fleet_has_no_troubles() -> None:
    disk = DiskSpace(free=2 * GIB, total=500 * GIB)

    row = health_row(Health(daemon=daemon(), disk=disk, waiting=3, workers=1))

    assert (row["level"], row["troubles"]) == (Level.OK, [])
    assert row["disk"] == {"free_bytes": 2 * GIB, "total_bytes": 500 * GIB}


def test_troubles_are_told_the_worst_first() -> None:
    problem = {"file": "nightherd.yaml", "line": 1, "column": 1, "message": "no"}
    error = ConfigErrorRow(at=None, problems=[problem, problem])  # type: ignore[list-item]  # a plain dict
    target = TargetState(id="team", since=1, failures=3, last_error="503 from the server")
    health = Health(
        daemon=daemon(is_draining=True, error=error),
        disk=DiskSpace(free=GIB // 2, total=500 * GIB),
        failing=[target],
        rate_limits=[LIMIT],
        stopped={"coder": LIMIT, "tester": LIMIT},
        waiting=1,
        lost=2,
    )

    row = health_row(health)

    assert row["level"] is Level.PROBLEM
    assert [(one["level"].value, one["text"]) for one in row["troubles"]] == [
        ("problem", "the newest configuration is not used: it has 2 errors"),
        ("problem", "no worker runs; 1 waiting job"),
        ("warning", "the disk is nearly full: 512.0 MiB of 500.0 GiB are free"),
        ("warning", "the daemon is about to stop: it starts no more jobs"),
        ("warning", "2 running jobs without a live worker"),
        ("warning", "notify target team takes nothing: 503 from the server"),
        ("warning", "login claude-key:1 is rate limited, which stops coder, tester"),
    ]
    assert row["config_error"] == error
    assert [one["login"] for one in row["rate_limits"]] == ["claude-key:1"]


@pytest.mark.parametrize(
    ("free", "total", "level"),
    [
        (GIB, 10_000 * GIB, Level.OK),
        (GIB - 1, 10_000 * GIB, Level.WARNING),
        (GIB - 1, 2 * GIB, Level.OK),
        (99 << 20, 500 * GIB, Level.PROBLEM),
        (50 << 20, 200 << 20, Level.OK),
    ],
)
def test_a_disk_is_full_when_little_is_free_in_bytes_and_in_parts(
    free: int, total: int, level: Level
) -> None:
    assert DiskSpace(free=free, total=total).level is level
