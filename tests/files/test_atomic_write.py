"""Atomic writes: the old file or the new one, whatever fails in between."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nightherd.errors import AtomicWriteError
from nightherd.files.atomic import TEMP_NAME, FileCalls, atomic_write_file, atomic_write_json
from nightherd.files.yaml_dump import atomic_write_yaml


def failing(code: int, times: int) -> Callable[[str, str], None]:
    """A rename that is refused so many times, and then works."""
    left = [times]

    def rename(source: str, target: str) -> None:
        if left[0] > 0:
            left[0] -= 1
            raise OSError(code, os.strerror(code), target)
        Path(source).replace(target)

    return rename


def test_a_file_is_replaced_as_a_whole_and_private(tmp_path: Path) -> None:
    target = tmp_path / "state.yaml"
    target.write_text("old")
    before = target.stat().st_ino

    atomic_write_file(target, "new ünïcode\n")

    assert target.read_text(encoding="utf-8") == "new ünïcode\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert target.stat().st_ino != before
    assert [path.name for path in tmp_path.iterdir()] == ["state.yaml"]


def test_the_temporary_file_stands_beside_the_target_under_its_own_name(tmp_path: Path) -> None:
    seen: list[Path] = []

    def rename(source: str, target: str) -> None:
        seen.append(Path(source))
        Path(source).replace(target)

    atomic_write_file(tmp_path / "state.yaml", b"x", calls=FileCalls(rename=rename))

    (temp,) = seen
    found = TEMP_NAME.fullmatch(temp.name)
    assert found is not None
    assert found["name"] == "state.yaml"
    assert temp.parent == tmp_path


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
def test_a_refused_rename_is_tried_three_more_times(tmp_path: Path, code: int) -> None:
    delays: list[float] = []
    calls = FileCalls(rename=failing(code, 3), sleep=delays.append)

    atomic_write_file(tmp_path / "a", "new", calls=calls)

    assert (tmp_path / "a").read_text() == "new"
    assert delays == [0.05, 0.1, 0.2]


def test_a_rename_refused_for_good_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    delays: list[float] = []
    calls = FileCalls(rename=failing(errno.EACCES, 4), sleep=delays.append)

    with pytest.raises(AtomicWriteError) as caught:
        atomic_write_file(target, "new", calls=calls)

    assert caught.value.code == "EACCES"
    assert caught.value.path == str(target)
    assert TEMP_NAME.fullmatch(Path(caught.value.temp_path or "").name)
    assert isinstance(caught.value.__cause__, PermissionError)
    assert caught.value.message == (
        f"Permission denied: Cannot access '{target}'. Check file permissions."
    )
    assert delays == [0.05, 0.1, 0.2]
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.ENOENT, errno.EIO])
def test_any_other_error_is_not_tried_again(tmp_path: Path, code: int) -> None:
    delays: list[float] = []
    calls = FileCalls(rename=failing(code, 1), sleep=delays.append)

    with pytest.raises(AtomicWriteError) as caught:
        atomic_write_file(tmp_path / "a", "new", calls=calls)

    assert caught.value.code == errno.errorcode[code]
    assert delays == []
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_in_the_middle_leaves_no_temporary_file(tmp_path: Path) -> None:
    def rename(source: str, target: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic_write_file(tmp_path / "a", "new", calls=FileCalls(rename=rename))

    assert list(tmp_path.iterdir()) == []


def test_file_then_rename_then_directory_are_synced_in_this_order(tmp_path: Path) -> None:
    order: list[str] = []

    def fsync(handle: int) -> None:
        order.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")

    def rename(source: str, target: str) -> None:
        order.append("rename")
        Path(source).replace(target)

    atomic_write_file(tmp_path / "a", "new", calls=FileCalls(rename=rename, fsync=fsync))

    assert order == ["file", "rename", "directory"]


def test_a_write_that_need_not_be_durable_syncs_nothing(tmp_path: Path) -> None:
    synced: list[int] = []

    atomic_write_file(tmp_path / "a", "new", durable=False, calls=FileCalls(fsync=synced.append))

    assert (tmp_path / "a").read_text() == "new"
    assert synced == []


def test_a_full_disk_at_the_sync_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")

    def fsync(handle: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(AtomicWriteError) as caught:
        atomic_write_file(tmp_path / "a", "new", calls=FileCalls(fsync=fsync))

    assert caught.value.code == "ENOSPC"
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_missing_directory_is_an_error_with_its_code(tmp_path: Path) -> None:
    with pytest.raises(AtomicWriteError) as caught:
        atomic_write_file(tmp_path / "gone" / "a", "new")

    assert caught.value.code == "ENOENT"
    assert not (tmp_path / "gone").exists()


def test_a_directory_in_the_way_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "a" / "inside").mkdir(parents=True)

    with pytest.raises(AtomicWriteError) as caught:
        atomic_write_file(tmp_path / "a", "new")

    assert caught.value.code in ("EISDIR", "ENOTEMPTY", "EEXIST")
    assert (tmp_path / "a" / "inside").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_text_that_is_not_utf_8_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(AtomicWriteError):
        atomic_write_file(tmp_path / "a", "\ud800")

    assert list(tmp_path.iterdir()) == []


def test_json_is_indented_by_two_and_ends_with_a_newline(tmp_path: Path) -> None:
    atomic_write_json(tmp_path / "a.json", {"name": "Zoë", "jobs": [1]})

    assert (tmp_path / "a.json").read_text(encoding="utf-8") == (
        '{\n  "name": "Zoë",\n  "jobs": [\n    1\n  ]\n}\n'
    )


def test_json_keeps_a_lone_surrogate(tmp_path: Path) -> None:
    atomic_write_json(tmp_path / "a.json", ["\ud800"])

    assert json.loads((tmp_path / "a.json").read_bytes()) == ["\ud800"]


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize("data", [object(), {"a": {1, 2}}, float("nan"), LOOP, b"bytes"])
def test_what_json_cannot_hold_is_an_error_and_writes_nothing(tmp_path: Path, data: Any) -> None:
    with pytest.raises(AtomicWriteError):
        atomic_write_json(tmp_path / "a.json", data)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [object(), {"a": {1, 2}}, LOOP, b"bytes", [10**5000]])
def test_what_yaml_cannot_hold_is_an_error_and_writes_nothing(tmp_path: Path, data: Any) -> None:
    with pytest.raises(AtomicWriteError):
        atomic_write_yaml(tmp_path / "a.yaml", data)

    assert list(tmp_path.iterdir()) == []


def test_yaml_is_written_atomically_too(tmp_path: Path) -> None:
    at = datetime(2024, 1, 19, 9, 0, tzinfo=UTC)

    atomic_write_yaml(tmp_path / "a.yaml", {"at": at, "fleet": {}})

    assert (tmp_path / "a.yaml").read_text() == 'at: "2024-01-19T09:00:00.000000Z"\nfleet: {}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
