"""Safe reads: data or a reason, patience with writers, none with what is not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nightherd.errors import SafeReadError
from nightherd.files.reading import (
    ReadFailed,
    ReadOk,
    safe_read_json,
    safe_read_jsonl,
    safe_read_yaml,
)


def test_yaml_and_json_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("fleet: {}\n")
    (tmp_path / "a.json").write_text('{"a": [1]}')

    assert safe_read_yaml(tmp_path / "a.yaml") == ReadOk(data={"fleet": {}})
    assert safe_read_json(tmp_path / "a.json") == ReadOk(data={"a": [1]})
    assert safe_read_yaml(str(tmp_path / "a.yaml")).success


def test_an_empty_yaml_file_is_none_and_an_empty_json_file_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")

    assert safe_read_yaml(tmp_path / "empty") == ReadOk(data=None)
    assert not safe_read_json(tmp_path / "empty", sleep=lambda _: None).success


@pytest.mark.parametrize("read", [safe_read_yaml, safe_read_json])
@pytest.mark.parametrize("torn", ["{", "\xff", '{"a": '])
def test_a_file_that_is_whole_at_the_next_look_is_read(
    tmp_path: Path, read: Callable[..., object], torn: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(torn.encode("latin-1"))
    delays: list[float] = []

    def sleep(seconds: float) -> None:
        delays.append(seconds)
        if len(delays) == 2:
            path.write_text('{"a": 1}')

    assert read(path, sleep=sleep) == ReadOk(data={"a": 1})
    assert delays == [0.01, 0.02]


def test_a_file_that_stays_broken_is_a_failure_after_three_more_looks(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: [")
    delays: list[float] = []

    result = safe_read_yaml(path, sleep=delays.append)

    assert isinstance(result, ReadFailed)
    assert not result.success
    assert isinstance(result.error, SafeReadError)
    assert result.error.path == str(path)
    assert result.error.__cause__ is not None
    assert "cannot be parsed" in result.error.message
    assert delays == [0.01, 0.02, 0.04]
    assert path.read_text() == "a: ["


def test_a_missing_file_is_answered_at_once(tmp_path: Path) -> None:
    delays: list[float] = []

    result = safe_read_yaml(tmp_path / "gone", sleep=delays.append)

    assert isinstance(result, ReadFailed)
    assert result.error.code == "ENOENT"
    assert isinstance(result.error.__cause__, FileNotFoundError)
    assert delays == []


def test_a_directory_is_answered_at_once(tmp_path: Path) -> None:
    for result in (safe_read_json(tmp_path), safe_read_jsonl(tmp_path)):
        assert isinstance(result, ReadFailed)
        assert result.error.code == "EISDIR"


def test_windows_line_ends_and_byte_order_marks_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n')
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}\r\n')

    assert safe_read_yaml(tmp_path / "a.yaml") == ReadOk(data={"a": 1, "b": 2})
    assert safe_read_json(tmp_path / "a.json") == ReadOk(data={"a": 1})
    assert safe_read_jsonl(tmp_path / "a.jsonl") == ReadOk(data=[{"a": 1}, {"a": 2}])


@pytest.mark.parametrize("tail", [b'{"a"', b'{"a": "\xc3', b'{"a"\n', b'{"a": \n\n'])
def test_a_last_line_that_is_not_finished_is_left_out_and_counted(
    tmp_path: Path, tail: bytes
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n": 1}\n{"n": 2}\n' + tail)

    assert safe_read_jsonl(path) == ReadOk(data=[{"n": 1}, {"n": 2}], skipped_lines=1)


def test_a_bad_line_in_the_middle_is_damage_unless_asked_to_skip_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n": 1}\nbad\n\n{"n": 2}\n')

    with pytest.raises(SafeReadError, match="line 2") as caught:
        safe_read_jsonl(path)

    assert caught.value.path == str(path)
    assert safe_read_jsonl(path, skip_invalid_lines=True) == ReadOk(
        data=[{"n": 1}, {"n": 2}], skipped_lines=1
    )


def test_line_separators_inside_a_record_do_not_end_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"a": "x\u2028y\u0085z"}\n'.encode())

    assert safe_read_jsonl(path) == ReadOk(data=[{"a": "x\u2028y\u0085z"}])


def test_an_empty_jsonl_file_is_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")

    assert safe_read_jsonl(tmp_path / "a.jsonl") == ReadOk(data=[])
