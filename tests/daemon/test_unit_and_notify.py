"""The systemd unit and what the service manager is told, without a service manager."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from nightherd.daemon.systemd import Notifier, Service, unit_name, unit_path, unit_text
from nightherd.errors import InvalidValueError


def service(directory: str, *, is_user: bool = True) -> Service:
    home = Path(directory)
    return Service(
        program=Path("/opt/bin/nightherd"),
        fleet_file=home / "nightherd.yaml",
        state_dir=home / ".nightherd",
        is_user=is_user,
    )


def test_the_unit_starts_this_fleet_and_no_other() -> None:
    text = unit_text(service("/srv/fleet"))

    assert (
        "ExecStart=/opt/bin/nightherd --config /srv/fleet/nightherd.yaml"
        " --state-dir /srv/fleet/.nightherd start"
    ) in text.splitlines()
    assert "WantedBy=default.target" in text
    assert "WantedBy=multi-user.target" in unit_text(service("/srv/fleet", is_user=False))


def test_names_that_systemd_would_take_apart_are_kept_whole() -> None:
    text = unit_text(service("/srv/my 100% $fleet"))

    assert '"/srv/my 100%% $$fleet/nightherd.yaml"' in text
    assert "WorkingDirectory=/srv/my 100%% $fleet" in text
    with pytest.raises(InvalidValueError):
        unit_text(service("/srv/two\nlines"))


def test_unit_finds_programs_where_the_shell_does() -> None:
    path = ("/home/me/.local/bin", "/opt/100% mine", "/usr/bin")
    text = unit_text(replace(service("/srv/fleet"), path=path))

    line = 'Environment="PATH=/home/me/.local/bin:/opt/100%% mine:/usr/bin"'
    assert line in text.splitlines()
    assert "Environment" not in unit_text(service("/srv/fleet"))


def test_each_directory_has_a_unit_of_its_own() -> None:
    assert unit_name(Path("/srv/my fleet/nightherd.yaml")) == "nightherd-my-fleet.service"
    assert unit_name(Path("/nightherd.yaml")) == "nightherd-fleet.service"


def test_directories_of_one_name_do_not_take_each_others_unit(tmp_path: Path) -> None:
    mine, other = Path("/srv/mine/fleet/nightherd.yaml"), Path("/srv/other/fleet/nightherd.yaml")
    first = unit_path(tmp_path, mine)
    first.write_text(unit_text(service("/srv/mine/fleet")))

    second = unit_path(tmp_path, other)

    assert first.name == "nightherd-fleet.service"
    assert unit_path(tmp_path, mine) == first
    assert second != first
    assert second.name.startswith("nightherd-fleet-")


def test_without_a_service_manager_nothing_is_said_and_nothing_fails(tmp_path: Path) -> None:
    for environ in ({}, {"NOTIFY_SOCKET": str(tmp_path / "nobody")}, {"NOTIFY_SOCKET": "@nobody"}):
        notifier = Notifier(environ)
        notifier.ready()
        notifier.status("two\nlines")
        assert notifier.watchdog_s is None


def test_the_watchdog_of_another_process_is_not_ours() -> None:
    mine = Notifier({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())})
    other = Notifier({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"})

    assert (mine.watchdog_s, other.watchdog_s) == (1.5, None)
