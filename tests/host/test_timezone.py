"""The time zone of a machine: its name, however the system says it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import pytest

from nightherd.host.timezone import local_zone

SUMMER = datetime(2026, 7, 1, tzinfo=UTC)
ZONES = next(Path(one) for one in TZPATH if (Path(one) / "Europe/Berlin").is_file())


@pytest.mark.parametrize("name", ["Europe/Berlin", ":Europe/Berlin"])
def test_the_variable_comes_first(name: str, tmp_path: Path) -> None:
    assert local_zone({"TZ": name}, tmp_path) == ("Europe/Berlin", ZoneInfo("Europe/Berlin"))


def test_a_link_of_the_system_names_the_zone(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    link.symlink_to(ZONES / "Asia/Kathmandu")

    assert local_zone({}, link) == ("Asia/Kathmandu", ZoneInfo("Asia/Kathmandu"))


def test_a_copy_of_a_zone_has_its_rules_and_no_name(tmp_path: Path) -> None:
    copy = tmp_path / "localtime"
    copy.write_bytes((ZONES / "Europe/Berlin").read_bytes())

    name, zone = local_zone({"TZ": ""}, copy)

    assert name == "local"
    assert zone.utcoffset(SUMMER.replace(tzinfo=None)) == timedelta(hours=2)


@pytest.mark.parametrize("content", [None, b"", b"no zone"])
def test_without_a_zone_it_is_utc(content: bytes | None, tmp_path: Path) -> None:
    place = tmp_path / "localtime"
    if content is not None:
        place.write_bytes(content)

    assert local_zone({}, place) == ("UTC", UTC)


@pytest.mark.parametrize("name", ["Nowhere", "EST5EDT,M3.2.0", "../../etc/passwd", "Europe"])
def test_a_variable_that_names_no_zone_is_utc(name: str, tmp_path: Path) -> None:
    assert local_zone({"TZ": name}, tmp_path) == ("UTC", UTC)
