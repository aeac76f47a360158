"""The files that gates show: texts of the run's directory, replaced whole, and nothing outside of it."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from nightherd.errors import NightherdError, NotFoundError, RefusedError
from nightherd.workspaces.gate_files import LARGEST_BYTES, LocalGateFiles
from soak import often


@pytest.fixture
def files(tmp_path: Path) -> LocalGateFiles:
    return LocalGateFiles(tmp_path / ".nightherd")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Where a run works."""
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def test_file_is_read_and_replaced_with_its_permissions(files: LocalGateFiles, work: Path) -> None:
    (work / "docs").mkdir()
    file = work / "docs" / "plan.md"
    file.write_text("old")
    file.chmod(0o640)

    assert files.read(str(work), "docs/plan.md") == "old"
    files.write(str(work), "docs/plan.md", "new: é")

    assert files.read(str(work), str(file)) == "new: é"
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in (work / "docs").iterdir()] == ["plan.md"]


def test_new_file_is_readable_by_agents(files: LocalGateFiles, work: Path) -> None:
    files.write(str(work), "plan.md", "text")

    assert (work / "plan.md").stat().st_mode & 0o777 == 0o644


def test_link_inside_of_the_directory_stays_a_link(files: LocalGateFiles, work: Path) -> None:
    (work / "real.md").write_text("old")
    (work / "plan.md").symlink_to("real.md")

    files.write(str(work), "plan.md", "new")

    assert (work / "plan.md").is_symlink()
    assert (work / "real.md").read_text() == "new"


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/hostname", "link", "linked/secret", "", "a\0b"]
)
def test_path_that_leads_out_is_refused(path: str, files: LocalGateFiles, work: Path) -> None:
    secret = work.parent / "secret"
    secret.write_text("secret")
    (work / "link").symlink_to(secret)
    (work / "linked").symlink_to(work.parent)

    with pytest.raises(RefusedError):
        files.read(str(work), path)
    with pytest.raises(RefusedError):
        files.write(str(work), path, "overwritten")
    assert secret.read_text() == "secret"


def test_state_directory_in_the_directory_is_not_shown(
    files: LocalGateFiles, tmp_path: Path
) -> None:
    journal = tmp_path / ".nightherd" / "jobs" / "job.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_text("what another agent said")
    (tmp_path / "plan.md").symlink_to(journal)

    for path in (".nightherd/jobs/job.jsonl", "plan.md"):
        with pytest.raises(RefusedError, match="is part of the state directory"):
            files.read(str(tmp_path), path)
        with pytest.raises(RefusedError, match="is part of the state directory"):
            files.write(str(tmp_path), path, "changed")
    assert journal.read_text() == "what another agent said"


def test_what_is_no_text_is_refused_with_the_reason(files: LocalGateFiles, work: Path) -> None:
    (work / "binary").write_bytes(b"\xff\xfe")
    (work / "large").write_bytes(b"x" * (LARGEST_BYTES + 1))
    (work / "folder").mkdir()
    os.mkfifo(work / "pipe")

    for name, reason in {
        "binary": "is not UTF-8 text",
        "large": "a gate shows at most",
        "folder": "cannot be read",
        "pipe": "cannot be read",
    }.items():
        with pytest.raises(RefusedError, match=reason):
            files.read(str(work), name)


def test_missing_file_or_directory_is_named(files: LocalGateFiles, work: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no file plan\.md"):
        files.read(str(work), "plan.md")
    with pytest.raises(NotFoundError, match="there is no directory"):
        files.write(str(work), "docs/plan.md", "text")
    with pytest.raises(NightherdError):
        files.read(str(work / "gone"), "plan.md")


def test_directory_that_becomes_a_link_meanwhile_is_never_written_through(
    files: LocalGateFiles, work: Path
) -> None:
    outside, inside, away = work.parent / "outside", work / "docs", work / "away"
    outside.mkdir()
    inside.mkdir()
    (outside / "plan.md").write_text("mine")
    link = work / "link"
    link.symlink_to(outside)
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            inside.rename(away)
            link.rename(inside)
            inside.rename(link)
            away.rename(inside)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(often(2_000, soak=50_000)):
            with suppress(NightherdError):
                files.write(str(work), "docs/plan.md", f"{number}")
            with suppress(NightherdError):
                assert files.read(str(work), "docs/plan.md") != "mine"
    finally:
        is_over.set()
        thread.join()
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"plan.md": "mine"}
    assert {path.name for path in inside.iterdir()} <= {"plan.md"}
