"""The state directory as programs make it: whole, or an error that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightherd import (
    AtomicWriteError,
    StateDirectoryCreateError,
    StateFileError,
    atomic_write_json,
    init_state_directory,
    read_fleet_state,
    safe_read_yaml,
)


def test_new_directory_has_an_empty_state_and_is_found_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    directory = init_state_directory()

    assert directory.root == tmp_path / ".nightherd"
    assert safe_read_yaml(directory.state_file).success
    assert read_fleet_state(directory.state_file).agents == {}
    before = directory.state_file.stat()
    assert init_state_directory(directory.root) == directory
    assert directory.state_file.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("text", ["agents: [", "agents: {a: {status: asleep}}", "- 1"])
def test_state_file_that_cannot_be_used_is_an_error_and_stays(text: str, tmp_path: Path) -> None:
    directory = init_state_directory(tmp_path)
    directory.state_file.write_text(text)

    with pytest.raises(StateFileError) as caught:
        init_state_directory(tmp_path)

    assert (caught.value.path, caught.value.operation) == (str(directory.state_file), "read")
    assert caught.value.__cause__ is not None
    assert directory.state_file.read_text() == text


def test_what_cannot_be_made_or_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StateDirectoryCreateError) as directory:
        init_state_directory(tmp_path / "file" / "state")
    with pytest.raises(AtomicWriteError) as written:
        atomic_write_json(tmp_path / "missing" / "x.json", {})

    assert (directory.value.code, directory.value.hint) == (
        "ENOTDIR",
        "choose another place: --state-dir DIR",
    )
    assert written.value.message == f"Not found: '{tmp_path / 'missing'}' does not exist."
