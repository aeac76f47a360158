"""Files, directories, permissions and the disk: found, mended where that is possible, never overwritten."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from engine.doctor.ward import Ward
from nightherd.state.checkup import Checkup
from nightherd.state.soundness import Soundness
from nightherd.testing.determinism import START

GIGABYTE = 1 << 30


def aged(path: Path, by: timedelta) -> Path:
    """`path`, last written that long ago."""
    then = path.stat().st_mtime - by.total_seconds()
    os.utime(path, (then, then))
    return path


def test_healthy_directory_has_nothing_wrong_and_is_not_changed(used: Ward) -> None:
    before = used.hashes()

    used.clean("--fix", "--verify")

    assert used.hashes() == before


def test_place_without_a_state_directory_is_no_problem_and_stays_empty(ward: Ward) -> None:
    found = ward.doctor("--fix", "--verify")

    assert found.result.code == 0
    assert {check["name"] for check in found.data["checks"]} == {
        "agents",
        "git",
        "clock",
        "runtimes",
        "claude",
    }
    assert not ward.root.exists()


def test_file_where_the_state_directory_should_be_is_a_problem(ward: Ward) -> None:
    ward.root.write_text("mine")

    found = ward.doctor("--fix")

    assert found.result.code == 1
    assert "is where a directory should be" in found.of("directory")[0]["message"]
    assert ward.root.read_text() == "mine"


@pytest.mark.parametrize("name", ["sessions", "logs"])
def test_missing_directory_is_found_and_made_again(name: str, used: Ward) -> None:
    shutil.rmtree(used.root / name)

    found = used.doctor()
    assert (found.result.code, found.checks) == (1, ["directory"])
    assert not (used.root / name).exists()

    assert used.doctor("--fix", "--verify").result.code == 0
    assert (used.root / name).stat().st_mode & 0o777 == 0o700
    used.clean("--verify")


def test_missing_directory_of_bodies_is_made_again_and_what_it_held_is_told(used: Ward) -> None:
    blobs = used.root / "blobs"
    shutil.rmtree(blobs)

    assert used.doctor().checks == ["directory"]
    assert used.doctor("--fix").result.code == 0
    assert blobs.stat().st_mode & 0o777 == 0o700
    told = used.doctor("--verify").of("journals")
    assert told
    assert all("the settings of event" in one["message"] for one in told)


def test_journals_on_a_disk_that_is_away_are_not_taken_for_lost(used: Ward, tmp_path: Path) -> None:
    away = tmp_path / "away"
    (used.root / "jobs").rename(away)
    (used.root / "jobs").symlink_to(tmp_path / "disk")
    used.settle_wal()
    rows = used.rows()

    found = used.doctor("--fix")
    assert found.result.code == 1
    (told,) = found.of("directory")
    assert (
        told["message"]
        == f"{used.root / 'jobs'} is a link to {tmp_path / 'disk'}, which does not exist"
    )
    assert not any(one["is_fixed"] or one["is_fixable"] for one in found.of("record"))
    refused = used.cli("run", "hello")
    assert (refused.code, "which does not exist" in refused.err) == (1, True)
    assert used.rows() == rows

    away.rename(tmp_path / "disk")
    used.clean("--verify")


def put_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir(mode=0o700)


def put_pipe(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    os.mkfifo(path, 0o600)


def put_link(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.with_name("nowhere"))


@pytest.mark.parametrize(
    ("name", "put"),
    [
        ("write.lock", put_directory),
        ("nightherd.db-shm", put_link),
        ("ledger/*.jsonl", put_pipe),
        ("jobs/*.jsonl", put_pipe),
        ("state.yaml", put_pipe),
        ("blobs", put_pipe),
    ],
)
def test_what_stands_in_the_place_of_a_file_is_found_and_kept_aside(
    name: str, put: Callable[[Path], None], used: Ward
) -> None:
    used.settle_wal()
    path = next(iter(used.root.glob(name)), used.root / name)
    put(path)

    found = used.doctor("--verify")
    assert found.result.code == 1
    (intruder,) = found.of("files")
    assert (intruder["path"], intruder["is_fixable"]) == (str(path), True)
    assert "where a file should be" in intruder["message"]

    assert used.doctor("--fix").result.code == 0
    assert [one for one in path.parent.glob(f"{path.name}.corrupt-*") if not one.is_file()]
    assert used.cli("run", "hello", "--quiet").code == 0
    used.clean(*(() if name == "blobs" else ("--verify",)))  # what was there is gone


def test_link_of_the_ledger_to_nothing_is_told_and_left_to_whoever_made_it(
    used: Ward, tmp_path: Path
) -> None:
    month = used.ledger
    away = month.rename(tmp_path / "away")
    month.symlink_to(tmp_path / "disk")

    (told,) = used.doctor("--fix").of("files")
    assert told["message"] == f"{month} is a link to {tmp_path / 'disk'}, which does not exist"
    assert (told["is_fixable"], month.is_symlink()) == (False, True)

    away.rename(tmp_path / "disk")
    used.clean("--verify")


def test_directory_in_the_place_of_the_database_is_called_that(used: Ward) -> None:
    used.delete_database()
    used.database.mkdir(mode=0o700)

    listed = used.cli("jobs", "list")
    assert (listed.code, "Is a directory" in listed.err) == (1, True)

    assert used.doctor("--rebuild", "--verify").all == []
    assert len(used.jobs()) == 2


def test_stale_temporary_file_is_deleted_and_a_young_one_is_not(used: Ward) -> None:
    old = used.root / "jobs/.x.yaml.tmp.0123456789abcdef"
    young = used.root / ".state.yaml.tmp.fedcba9876543210"
    other = used.root / "jobs/.x.yaml.tmp.notours"
    for path in (old, young, other):
        path.write_text("half")
        path.chmod(0o600)
    aged(old, timedelta(minutes=2))
    aged(other, timedelta(days=9))

    found = used.doctor()
    assert (found.result.code, found.only("temp-files")["path"]) == (0, str(old))
    assert old.exists()

    assert used.doctor("--fix").only("temp-files")["is_fixed"]
    assert (old.exists(), young.exists(), other.exists()) == (False, True, True)
    used.clean()


def test_copies_that_a_killed_doctor_left_are_deleted_once_nobody_can_be_at_it(used: Ward) -> None:
    room = used.root / ".replay-abc"
    room.mkdir(mode=0o700)
    (room / "replayed.db").touch(0o600)
    rebuilt = used.root / "nightherd.db.rebuilt"
    rebuilt.touch(0o600)
    used.clean("--fix")
    assert room.exists()
    assert rebuilt.exists()

    aged(rebuilt, timedelta(hours=2))
    aged(room, timedelta(hours=2))

    assert len(used.doctor("--fix").of("temp-files")) == 2
    assert not room.exists()
    assert not rebuilt.exists()


@pytest.mark.parametrize("text", ["agents: [", "agents: 7\n", "\x00\x01\x02", "- a\n- b\n"])
def test_corrupt_state_file_is_kept_aside_and_written_again(text: str, used: Ward) -> None:
    state = used.root / "state.yaml"
    good = state.read_text()
    state.write_text(text)

    found = used.doctor()
    assert found.only("mirror")["path"] == str(state)
    assert state.read_text() == text

    used.doctor("--fix")

    (kept,) = used.root.glob("state.yaml.corrupt-*")
    assert kept.read_text() == text
    assert state.read_text() == good
    used.clean()


def test_what_others_can_read_is_kept_to_its_owner(used: Ward) -> None:
    state, jobs = used.root / "state.yaml", used.root / "jobs"
    state.chmod(0o644)
    jobs.chmod(0o755)

    found = used.doctor()
    assert (found.result.code, found.data["level"]) == (0, "warning")
    assert {one["path"] for one in found.of("permissions")} == {str(state), str(jobs)}

    used.doctor("--fix")

    assert state.stat().st_mode & 0o777 == 0o600
    assert jobs.stat().st_mode & 0o777 == 0o700
    used.clean()


def test_files_that_a_container_made_are_left_as_they_are(used: Ward) -> None:
    """Its user may be another one, and an agent in it chooses names and modes; only the directory is private."""
    containers = used.root / "containers"
    config = containers / "sessions" / "sess-1" / "claude"
    config.mkdir(parents=True)
    transcript = config / "notes.yaml"
    transcript.mkdir()
    program = config / "program"
    program.touch()
    program.chmod(0o755)
    os.mkfifo(config / "jobs.lock")
    containers.chmod(0o700)
    foreign = Checkup(
        used.root, can_use=lambda path: path == containers or config not in path.parents
    )
    before = used.hashes()

    assert list(foreign.permissions()) == []
    used.clean("--fix", "--verify")

    assert used.hashes() == before
    assert (transcript.is_dir(), program.stat().st_mode & 0o777) == (True, 0o755)


def test_directory_of_containers_that_others_can_read_is_closed(used: Ward) -> None:
    containers = used.root / "containers"
    containers.mkdir()
    containers.chmod(0o755)

    assert used.doctor("--fix").of("permissions")[0]["path"] == str(containers)

    assert containers.stat().st_mode & 0o777 == 0o700


def test_file_of_somebody_else_is_a_problem_that_names_its_owner(used: Ward) -> None:
    checkup = Checkup(used.root, can_use=lambda path: path.name not in {"write.lock", "jobs"})

    found = list(checkup.permissions())

    names = [Path(one.path or "").name for one in found]
    assert sorted(names) == ["jobs", "write.lock"]
    assert {(one.level.value, one.is_fixable) for one in found} == {("problem", False)}
    assert f" belongs to {pwd.getpwuid(os.geteuid()).pw_name}," in found[0].message
    assert f"chown -R USER {used.root}" in (found[0].remedy or "")


def test_file_its_owner_cannot_write_is_a_problem_and_mended(used: Ward) -> None:
    (job, _) = used.jobs()
    journal = used.journal(job["id"])
    journal.chmod(0o400)

    found = used.doctor()
    assert (found.result.code, found.only("permissions")["level"]) == (1, "problem")

    assert used.doctor("--fix").result.code == 0
    assert journal.stat().st_mode & 0o777 == 0o600


def test_link_out_of_the_directory_is_never_followed(used: Ward, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    target = outside / ".f.tmp.0123456789abcdef"
    target.write_text("theirs")
    target.chmod(0o644)
    aged(target, timedelta(days=1))
    (used.root / "link").symlink_to(outside)
    (used.root / ".g.tmp.0123456789abcdef").symlink_to(target)

    used.clean("--fix")

    assert target.stat().st_mode & 0o777 == 0o644
    assert outside.stat().st_mode & 0o777 == 0o755


@dataclass(frozen=True)
class Disk:
    """How full a disk is said to be."""

    total: int
    free: int


@pytest.mark.parametrize(
    ("free", "level"),
    [
        (50 * GIGABYTE, None),
        (2 * GIGABYTE, None),
        (GIGABYTE // 2, "warning"),
        (50 << 20, "problem"),
        (0, "problem"),
    ],
)
def test_disk_that_is_nearly_full_is_told(free: int, level: str | None, tmp_path: Path) -> None:
    checkup = Checkup(tmp_path, disk_usage=lambda path: Disk(100 * GIGABYTE, free))

    assert [finding.level.value for finding in checkup.disk()] == ([level] if level else [])


def test_small_disk_with_most_of_it_free_is_no_problem(tmp_path: Path) -> None:
    checkup = Checkup(tmp_path, disk_usage=lambda path: Disk(GIGABYTE // 2, GIGABYTE // 3))

    assert list(checkup.disk()) == []


@pytest.mark.parametrize(("kind", "count"), [("nfs4", 1), ("fuse.sshfs", 1), ("ext4", 0)])
def test_network_filesystem_is_a_problem(kind: str, count: int, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/root / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")

    found = list(Checkup(tmp_path, mounts=mounts).filesystem())

    assert [kind in finding.message for finding in found] == [True] * count


def test_sqlite_that_damages_databases_is_a_problem(tmp_path: Path) -> None:
    (found,) = Soundness(tmp_path, version=lambda: ("3.40.1", False)).sqlite()

    assert "3.40.1" in found.message
    assert list(Soundness(tmp_path, version=lambda: ("3.51.3", True)).sqlite()) == []
    assert list(Soundness(tmp_path).sqlite()) == []


def test_temporary_files_are_as_old_as_the_time_given(used: Ward) -> None:
    path = used.root / ".x.tmp.0123456789abcdef"
    path.write_text("half")
    moment = START.timestamp()
    os.utime(path, (moment, moment))
    checkup = Checkup(used.root)

    def names(after: float) -> list[str]:
        return [
            Path(found.path or "").name
            for found in checkup.temp_files(START + timedelta(seconds=after))
        ]

    assert (names(59), names(60)) == ([], [path.name])


@pytest.mark.parametrize("arguments", [("--verify", "--fix"), ("--fix",)])
def test_damaged_files_of_jobs_and_sessions_are_kept_aside_and_written_again(
    arguments: tuple[str, ...], used: Ward
) -> None:
    files = [min(used.root.glob(each)) for each in ("jobs/job-*.yaml", "sessions/*.json")]
    whole = [file.read_bytes() for file in files]
    for file in files:
        file.write_text("{ [")
    if "--verify" not in arguments:
        (used.root / "state.yaml").write_text("{ [")
    else:
        found = used.doctor("--verify")
        assert [one["path"] for one in found.of("mirror-files")] == [str(file) for file in files]

    used.doctor(*arguments)

    used.clean("--verify")
    assert [file.read_bytes() for file in files] == whole
    kept = [next(file.parent.glob(f"{file.name}.corrupt-*")) for file in files]
    assert [file.read_text() for file in kept] == ["{ [", "{ ["]


def test_readable_file_that_differs_from_the_state_is_found_and_written_again(used: Ward) -> None:
    files = {path: path.read_text() for path in (used.root / "jobs").glob("*.yaml")}
    path, good = next((path, text) for path, text in files.items() if "status: completed" in text)
    path.write_text(good.replace("status: completed", "status: running"))

    (found,) = used.doctor("--verify").of("mirror-files")

    assert found["path"] == str(path)
    assert found["message"].endswith("differs from the state, which says status: completed")
    assert used.doctor("--fix", "--verify").of("mirror-files")[0]["is_fixed"]
    assert path.read_text() == good
    used.clean("--verify")


def test_readable_files_that_were_deleted_are_missed_and_written_again(used: Ward) -> None:
    files = [min(used.root.glob(each)) for each in ("jobs/job-*.yaml", "sessions/sess-*.json")]
    whole = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()

    (missed,) = used.doctor("--verify").of("mirror-files")
    assert missed["message"] == f"2 readable files are missing: {files[0]}, and others"

    assert used.doctor("--verify", "--fix").result.code == 0
    used.clean("--verify")
    assert [file.read_bytes() for file in files] == whole
