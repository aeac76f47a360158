"""Appending, temporary files, names that become files, files kept aside, and what errors say."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightherd.errors import InvalidValueError, StateFileError
from nightherd.files.atomic import FileCalls, append_jsonl
from nightherd.files.paths import follow, safe_child, safe_name
from nightherd.files.permission import keep_aside, permission_error_message
from nightherd.files.reading import ReadOk, safe_read_jsonl

NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)


def test_records_are_appended_one_line_each_to_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    append_jsonl(path, {"n": 1, "text": "a\nb\u2028c"})
    append_jsonl(path, {"n": 2})

    assert len(path.read_bytes().splitlines()) == 2
    assert safe_read_jsonl(path) == ReadOk(data=[{"n": 1, "text": "a\nb\u2028c"}, {"n": 2}])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_torn_record_does_not_swallow_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": 2, "te')

    append_jsonl(path, {"n": 3})

    assert safe_read_jsonl(path, skip_invalid_lines=True) == ReadOk(
        data=[{"n": 1}, {"n": 3}], skipped_lines=1
    )


def test_an_append_is_synced_when_asked(tmp_path: Path) -> None:
    synced: list[int] = []

    append_jsonl(tmp_path / "a", 1, calls=FileCalls(fsync=synced.append))
    assert synced == []

    append_jsonl(tmp_path / "a", 2, durable=True, calls=FileCalls(fsync=synced.append))
    assert len(synced) == 1


@pytest.mark.parametrize("data", [object(), float("nan")])
def test_what_cannot_be_a_line_appends_nothing(tmp_path: Path, data: object) -> None:
    with pytest.raises(StateFileError) as caught:
        append_jsonl(tmp_path / "a", data)

    assert caught.value.operation == "append"
    assert not (tmp_path / "a").exists()


def test_an_append_into_nowhere_says_why(tmp_path: Path) -> None:
    with pytest.raises(StateFileError) as caught:
        append_jsonl(tmp_path / "gone" / "a", 1)

    assert caught.value.code == "ENOENT"
    assert caught.value.path == str(tmp_path / "gone" / "a")


@pytest.mark.parametrize("name", ["coder.json", "fleet.agent.json", "sub/a.json", "...", "a b"])
def test_names_that_stay_inside_are_paths_below_the_root(tmp_path: Path, name: str) -> None:
    assert safe_child(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        "../x",
        "a/../b",
        "a/../../b",
        "/etc/passwd",
        "a\0b",
        "a//b",
        "a/",
        "..\\x",
    ],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidValueError):
        safe_child(tmp_path, name)


@pytest.mark.parametrize("name", ["../x", "a/b", "/a", "..", "", "a\0b"])
def test_a_name_that_is_a_path_is_no_file_name(name: str) -> None:
    with pytest.raises(InvalidValueError):
        safe_name(name)

    assert safe_name("fleet.agent.json") == "fleet.agent.json"


def test_a_symbolic_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("s")
    (root / "out").symlink_to(tmp_path)
    (root / "secret").symlink_to(tmp_path / "secret")
    (root / "loop").symlink_to(root / "loop")
    (root / "self").symlink_to(root)

    for name in ("out/secret", "secret", "loop/x", "self"):
        with pytest.raises(InvalidValueError):
            safe_child(root, name)


def test_no_way_leads_through_a_circle_of_links(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "out").symlink_to("/")
    (tmp_path / "there").symlink_to("circle/../back")
    (tmp_path / "back").symlink_to("circle/../there")

    for way in ("circle", "circle/x", "circle/../out", "missing/../circle/../there", "back"):
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            follow(tmp_path / way)
    assert follow(tmp_path / "missing/../out") == Path("/")


def test_a_root_that_is_itself_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert safe_child(tmp_path / "link", "a") == tmp_path / "link" / "a"


def test_a_file_kept_aside_keeps_its_bytes_and_never_covers_another(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    for content in ("first", "second"):
        path.write_text(content)
        keep_aside(path, NOW)

    assert {kept.name: kept.read_text() for kept in tmp_path.iterdir()} == {
        "state.yaml.corrupt-20261115T093000Z": "first",
        "state.yaml.corrupt-20261115T093000Z-2": "second",
    }


def test_keeping_aside_what_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(StateFileError) as caught:
        keep_aside(tmp_path / "gone", NOW)

    assert caught.value.code == "ENOENT"


def test_system_codes_become_sentences() -> None:
    assert permission_error_message("EACCES", "/path/.nightherd") == (
        "Permission denied: Cannot access '/path/.nightherd'. Check file permissions."
    )
    assert "ENOTTY" in permission_error_message("ENOTTY", "/a")
    assert "unknown error" in permission_error_message(None, "/a")
