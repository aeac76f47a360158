"""The state directory: made whole, kept private, and refused where it cannot be safe."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from components import Components
from nightherd.errors import StateDirectoryCreateError, StateDirectoryValidationError
from nightherd.state.directory import (
    filesystem_of,
    init_state_directory,
    validate_state_directory,
)

NOBODY = 65534


def test_directory_is_made_whole_and_for_its_owner_only(tmp_path: Path) -> None:
    root = tmp_path / "deep/.nightherd"

    made = init_state_directory(root)

    assert made.root == root
    assert {path.name for path in root.iterdir()} == {
        "jobs",
        "sessions",
        "logs",
        "ledger",
        "blobs",
        ".gitignore",
    }
    for path in made.directories:
        assert path.stat().st_mode & 0o777 == 0o700
    assert (root / ".gitignore").read_text() == "*\n"
    assert (root / ".gitignore").stat().st_mode & 0o777 == 0o600
    assert made.database == root / "nightherd.db"
    assert made.state_file == root / "state.yaml"
    assert validate_state_directory(root) == made


def test_state_is_invisible_to_git(tmp_path: Path, components: Components) -> None:
    git = components.program("git")
    subprocess.run([git, "init", "-q", tmp_path], check=True)
    made = init_state_directory(tmp_path / ".nightherd")
    (made.jobs / "secret.jsonl").write_text("{}")

    status = subprocess.run(
        [git, "status", "--porcelain"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert status.stdout == ""


def test_making_it_again_keeps_what_is_there(tmp_path: Path) -> None:
    made = init_state_directory(tmp_path / ".nightherd")
    (made.jobs / "job.jsonl").write_text("kept")
    (made.root / ".gitignore").write_text("mine\n")
    made.blobs.rmdir()

    init_state_directory(made.root)

    assert (made.jobs / "job.jsonl").read_text() == "kept"
    assert (made.root / ".gitignore").read_text() == "mine\n"
    assert made.blobs.is_dir()


def test_missing_directories_are_named(tmp_path: Path) -> None:
    made = init_state_directory(tmp_path / ".nightherd")
    made.logs.rmdir()
    made.ledger.rmdir()

    with pytest.raises(StateDirectoryValidationError, match="is incomplete") as caught:
        validate_state_directory(made.root)

    assert caught.value.missing_paths == (str(made.logs), str(made.ledger))


def test_file_in_the_way_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / ".nightherd").write_text("a file")

    with pytest.raises(StateDirectoryCreateError, match="Not a directory") as caught:
        init_state_directory(tmp_path / ".nightherd")

    assert caught.value.code == "EEXIST"
    assert (tmp_path / ".nightherd").read_text() == "a file"


def test_file_in_the_way_of_a_part_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".nightherd").mkdir()
    (tmp_path / ".nightherd/jobs").write_text("a file")

    with pytest.raises(StateDirectoryCreateError) as caught:
        init_state_directory(tmp_path / ".nightherd")

    assert caught.value.path == str(tmp_path / ".nightherd/jobs")


def test_link_to_a_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".nightherd").symlink_to(tmp_path / "elsewhere")

    init_state_directory(tmp_path / ".nightherd")

    assert (tmp_path / "elsewhere/jobs").is_dir()


def test_link_to_nowhere_is_refused_and_nothing_made(tmp_path: Path) -> None:
    (tmp_path / ".nightherd").symlink_to(tmp_path / "nowhere")

    with pytest.raises(StateDirectoryCreateError, match="does not exist") as caught:
        init_state_directory(tmp_path / ".nightherd")

    assert caught.value.code == "ENOENT"
    assert not (tmp_path / "nowhere").exists()


def in_another_persons_shoes(path: Path) -> tuple[str, str]:
    """What making a state directory at `path` says to somebody who may not write above it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            init_state_directory(path)
        except StateDirectoryCreateError as error:
            os.write(writing, f"{error.code}\n{error.message}".encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as said:
        code, _, message = said.read().partition("\n")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return code, message


def test_missing_permission_reads_like_the_documented_message(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    for above in (closed, *closed.parents):
        if above.stat().st_uid == os.geteuid() and above != Path(above.anchor):
            above.chmod(above.stat().st_mode | 0o111)
    closed.chmod(0o555)

    code, message = in_another_persons_shoes(closed / ".nightherd")

    path = closed / ".nightherd"
    assert code == "EACCES"
    assert message == f"Permission denied: Cannot access '{path}'. Check file permissions."


MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home {root}/net nfs4 rw 0 0
/dev/vdb {root}/net/local\\040disk xfs rw 0 0
me@host: {root}/ssh fuse.sshfs rw 0 0
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    """The kernel's table of mounts, as a machine with network disks would have it."""
    (tmp_path / "mounts").write_text(MOUNTS.format(root=tmp_path))
    return tmp_path / "mounts"


@pytest.mark.parametrize("place", ["net", "net/deep/er", "ssh"])
def test_network_filesystem_is_refused_and_nothing_made(
    place: str, mounts: Path, tmp_path: Path
) -> None:
    with pytest.raises(StateDirectoryCreateError, match="network filesystem") as caught:
        init_state_directory(tmp_path / place / ".nightherd", mounts=mounts)

    assert caught.value.hint is not None
    assert not (tmp_path / place).exists()


def test_local_disk_inside_a_network_one_is_fine(mounts: Path, tmp_path: Path) -> None:
    assert filesystem_of(tmp_path / "net/x", mounts) == "nfs4"
    assert filesystem_of(tmp_path / "net/local disk/x", mounts) == "xfs"
    assert filesystem_of(tmp_path, mounts) == "ext4"
    assert filesystem_of(tmp_path, tmp_path / "no such table") is None
    init_state_directory(tmp_path / "net/local disk/.nightherd", mounts=mounts)
