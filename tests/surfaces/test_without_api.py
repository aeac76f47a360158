"""A fleet that runs where the API is not installed: whoever needs the API is told how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from nightherd.cli.daemon.stop import show_started
from nightherd.cli.screen.render import Screen
from nightherd.daemon.record import DaemonRecord, make_record, remove_record, write_record
from nightherd.wiring.stores import system_clock
from surfaces.drivers import Cli

INSTALL = "pip install 'nightherd[serve]'"


@pytest.fixture
def record(fleet: Path) -> Iterator[DaemonRecord]:
    """What a daemon says of itself that serves nothing. It is this process."""
    state_dir = fleet / ".nightherd"
    state_dir.mkdir(mode=0o700)
    made = make_record(at=system_clock().now(), version="0", config="nightherd.yaml", agents=None)
    write_record(state_dir, made)
    yield made
    remove_record(state_dir)


def test_the_api_is_not_looked_for_where_a_fleet_runs_without_it(
    cli: Cli, record: DaemonRecord
) -> None:
    asked = cli("api", "GET", "/v1/jobs")

    assert asked.code == 69
    assert f"process {record.pid} runs the fleet, but without its API" in asked.err
    assert f"try: {INSTALL}, then restart the daemon: nightherd restart" in asked.err
    assert "without its API" in cli("status").out


def test_a_detached_start_says_that_there_is_no_api(
    record: DaemonRecord,
) -> None:
    out, err = StringIO(), StringIO()

    show_started(Screen(out, err, {}), record)

    assert out.getvalue() == f"{record.pid}\n"
    assert f"the API is not served: {INSTALL}\n" in err.getvalue()
