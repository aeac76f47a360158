"""Copies of transcripts: they grow with their source, lose nothing, and are put back where Claude looks."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import anyio
import pytest
from claude_agent_sdk import project_key_for_directory
from claude_agent_sdk.testing import run_session_store_conformance

from nightherd.errors import StateFileError
from nightherd.runtimes.claude.transcripts.keeping import (
    SECOND_COPY,
    KeptTranscript,
    TranscriptCopy,
)
from nightherd.runtimes.claude.transcripts.places import config_directory, slug_of, transcript_path
from nightherd.runtimes.claude.transcripts.store import FileSessionStore

UUID = "6e964430-d2f6-475a-9e64-5130a5c62256"


def entry(uuid: str, **more: object) -> bytes:
    return (
        json.dumps({"type": "user", "uuid": uuid, **more}, separators=(",", ":")).encode() + b"\n"
    )


class Place:
    """A home with Claude's directory in it, and a state directory's transcripts."""

    def __init__(self, root: Path) -> None:
        self.home = root / "claude"
        self.ours = root / "transcripts"
        self.work = root / "work"
        self.work.mkdir()
        self.environment = {"CLAUDE_CONFIG_DIR": str(self.home)}

    @property
    def theirs(self) -> Path:
        return transcript_path(self.environment, str(self.work), UUID)

    @property
    def copy(self) -> Path:
        return self.ours / f"{UUID}.jsonl"

    def write(self, data: bytes) -> None:
        self.theirs.parent.mkdir(parents=True, exist_ok=True)
        self.theirs.write_bytes(data)

    def kept(self) -> KeptTranscript:
        return KeptTranscript(
            self.ours, UUID, environment=self.environment, directory=str(self.work)
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("name", ["plain", "with space_and.dot", "ünï✓"])
def test_folder_of_a_directory_is_called_as_claude_calls_it(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    directory.mkdir()

    assert slug_of(str(directory)) == project_key_for_directory(directory)


def test_directory_of_claude_is_the_one_it_is_given_else_the_one_at_home() -> None:
    assert config_directory({"CLAUDE_CONFIG_DIR": "/c", "HOME": "/h"}) == Path("/c")
    assert config_directory({"CLAUDE_CONFIG_DIR": "", "HOME": "/h"}) == Path("/h/.claude")


def test_session_is_found_in_whatever_folder_it_began(place: Place) -> None:
    elsewhere = place.home / "projects" / "-some-where" / f"{UUID}.jsonl"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(entry("a"))

    assert place.theirs == elsewhere


def test_session_that_began_elsewhere_is_one_file_with_a_name_where_claude_looks_first(
    place: Place,
) -> None:
    elsewhere = place.home / "projects" / "-some-where" / f"{UUID}.jsonl"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(entry("a"))

    assert place.kept().restore() is False
    assert place.theirs.parent.name == slug_of(str(place.work))
    assert place.theirs.samefile(elsewhere)

    place.kept().restore()
    elsewhere.unlink()
    assert place.theirs.read_bytes() == entry("a")


def test_copy_grows_with_its_source_and_is_private(place: Place) -> None:
    kept = place.kept()
    kept.harvest()
    assert not place.copy.exists()

    place.write(entry("a"))
    kept.harvest()
    first = place.copy.stat()
    place.write(entry("a") + entry("b") + b'{"half')
    kept.harvest()
    place.write(entry("a") + entry("b") + b'{"half": 1}\n')
    kept.harvest()

    assert place.copy.read_bytes() == place.theirs.read_bytes()
    assert place.copy.stat().st_ino == first.st_ino
    assert (first.st_mode & 0o777, place.ours.stat().st_mode & 0o777) == (0o600, 0o700)


def test_copy_is_gone_on_with_by_the_next_run(place: Place) -> None:
    place.write(entry("a"))
    place.kept().harvest()
    place.write(entry("a") + entry("b"))
    place.kept().harvest()

    assert place.copy.read_bytes() == entry("a") + entry("b")


def test_source_that_shrank_or_is_gone_takes_nothing_away(place: Place) -> None:
    place.write(entry("a") + entry("b"))
    kept = place.kept()
    kept.harvest()
    place.write(entry("a"))
    kept.harvest()
    place.theirs.unlink()
    kept.harvest()

    assert place.copy.read_bytes() == entry("a") + entry("b")


def test_source_that_is_another_one_does_not_overwrite_the_copy(place: Place) -> None:
    place.write(entry("a"))
    place.kept().harvest()
    place.write(entry("x") + entry("y"))
    place.kept().harvest()

    assert place.copy.read_bytes() == entry("x") + entry("y")
    assert (place.ours / f"{UUID}.before-1.jsonl").read_bytes() == entry("a")


def test_copy_that_somebody_else_is_at_is_left_to_them(place: Place) -> None:
    place.write(entry("a"))
    place.kept().harvest()
    place.write(entry("a") + entry("b"))
    with place.copy.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        place.kept().harvest()

    assert place.copy.read_bytes() == entry("a")


def test_packed_copy_is_smaller_private_and_read_all_the_same(place: Place) -> None:
    place.write(entry("a") * 1000)
    kept = place.kept()
    kept.finish(is_over=True)
    packed = place.ours / f"{UUID}.jsonl.gz"

    assert not place.copy.exists()
    assert packed.stat().st_size < 1000
    assert packed.stat().st_mode & 0o777 == 0o600
    assert TranscriptCopy(place.ours, UUID).read() == entry("a") * 1000
    assert not packed.exists()


def test_damaged_copy_is_put_aside_and_told_of_once(place: Place) -> None:
    place.ours.mkdir()
    packed = place.ours / f"{UUID}.jsonl.gz"
    packed.write_bytes(b"\x1f\x8b\x08nonsense")
    place.write(entry("a"))

    with pytest.raises(StateFileError, match="damaged"):
        place.kept().restore()
    assert not place.kept().restore()

    assert place.copy.read_bytes() == entry("a")
    assert packed.with_name(f"{packed.name}.damaged").exists()


def test_lost_session_is_put_back(place: Place) -> None:
    place.write(entry("a") + entry("b"))
    beside = place.theirs.with_suffix("") / "subagents" / "agent-1.jsonl"
    beside.parent.mkdir(parents=True)
    beside.write_bytes(entry("s"))
    place.kept().finish(is_over=True)
    for path in (beside, place.theirs):
        path.unlink()

    assert place.kept().restore()
    assert place.theirs.read_bytes() == entry("a") + entry("b")
    assert place.theirs.stat().st_mode & 0o777 == 0o600
    assert beside.read_bytes() == entry("s")


def test_session_that_is_behind_is_brought_up_to_the_copy(place: Place) -> None:
    place.write(entry("a") + entry("b"))
    place.kept().harvest()
    place.write(entry("a"))

    assert place.kept().restore()
    assert place.theirs.read_bytes() == entry("a") + entry("b")
    assert [path.name for path in place.theirs.parent.iterdir()] == [place.theirs.name]


def test_session_that_went_another_way_is_kept_beside(place: Place) -> None:
    place.write(entry("a") + entry("b"))
    place.kept().harvest()
    place.write(entry("x"))

    assert place.kept().restore()
    assert place.theirs.read_bytes() == entry("a") + entry("b")
    aside = place.theirs.with_name(f"{place.theirs.name}.before-nightherd")
    assert aside.read_bytes() == entry("x")


def test_session_that_is_ahead_is_left_alone_and_copied(place: Place) -> None:
    place.write(entry("a"))
    place.kept().harvest()
    place.write(entry("a") + entry("b"))

    assert not place.kept().restore()
    assert place.theirs.read_bytes() == place.copy.read_bytes() == entry("a") + entry("b")


def test_half_a_line_of_a_killed_claude_does_not_swallow_the_next(place: Place) -> None:
    place.write(entry("a") + b'{"type":"us')

    assert not place.kept().restore()
    assert place.theirs.read_bytes() == entry("a") + b'{"type":"us\n'


def test_half_a_line_is_not_put_back(place: Place) -> None:
    place.write(entry("a") + b'{"type":"us')
    place.kept().harvest()
    place.theirs.unlink()

    assert place.kept().restore()
    assert place.theirs.read_bytes() == entry("a")
    with place.theirs.open("ab") as more:
        more.write(entry("b"))
    place.kept().harvest()
    assert place.copy.read_bytes() == entry("a") + entry("b")
    assert [path.name for path in place.ours.iterdir()] == [place.copy.name]


def test_session_of_which_there_is_no_copy_is_not_made_up(place: Place) -> None:
    assert not place.kept().restore()
    assert not place.theirs.exists()


def test_what_only_the_second_copy_has_is_put_back_too(place: Place) -> None:
    place.write(entry("a") + entry("b"))
    place.kept().harvest()
    second = place.ours / SECOND_COPY / "-w" / f"{UUID}.jsonl"
    second.parent.mkdir(parents=True)
    second.write_bytes(entry("b") + entry("c") + b'{"uuid":"d"')
    place.theirs.unlink()

    assert place.kept().restore()
    assert place.theirs.read_bytes() == entry("a") + entry("b") + entry("c")


def test_second_copy_is_gone_when_the_first_has_everything(place: Place) -> None:
    second = place.ours / SECOND_COPY / "-w" / f"{UUID}.jsonl"
    second.parent.mkdir(parents=True)
    second.write_bytes(entry("a") + entry("b"))
    place.write(entry("a"))
    place.kept().finish(is_over=False)
    assert second.exists()

    place.write(entry("a") + entry("b"))
    place.kept().finish(is_over=False)
    assert not second.exists()


def test_store_keeps_what_the_sdk_expects_of_one(tmp_path: Path) -> None:
    numbers = iter(range(100))

    def make() -> FileSessionStore:
        return FileSessionStore(tmp_path / str(next(numbers)))

    anyio.run(run_session_store_conformance, make)
    assert next(numbers) > 14


def test_store_writes_no_entry_twice_and_reads_past_half_a_line(tmp_path: Path) -> None:
    key = {"project_key": "p", "session_id": "s"}

    async def use() -> None:
        store = FileSessionStore(tmp_path)
        await store.append(key, [{"type": "x", "uuid": "1"}, {"type": "y"}])  # type: ignore[arg-type] # keys are plain mappings
        with (tmp_path / "p" / "s.jsonl").open("ab") as file:
            file.write(b'{"type": "ha')
        again = FileSessionStore(tmp_path)
        await again.append(key, [{"type": "x", "uuid": "1"}, {"type": "z", "uuid": "2"}])  # type: ignore[arg-type] # the same
        assert await again.load(key) == [  # type: ignore[arg-type] # the same
            {"type": "x", "uuid": "1"},
            {"type": "y"},
            {"type": "z", "uuid": "2"},
        ]

    anyio.run(use)


def test_every_directory_of_the_copies_is_private(place: Place) -> None:
    key = {"project_key": "p", "session_id": "s", "subpath": "subagents/one"}

    async def use() -> None:
        store = FileSessionStore(place.ours / SECOND_COPY)
        await store.append(key, [{"type": "x"}])  # type: ignore[arg-type] # keys are plain mappings

    anyio.run(use)
    place.write(entry("a"))
    beside = place.theirs.with_suffix("") / "subagents" / "agent-1.jsonl"
    beside.parent.mkdir(parents=True)
    beside.write_bytes(entry("b"))
    place.kept().finish(is_over=False)

    folders = [place.ours, *(path for path in place.ours.rglob("*") if path.is_dir())]
    assert len(folders) > 4
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


def test_store_does_not_leave_its_directory(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "store")

    async def climb() -> None:
        await store.append({"project_key": "..", "session_id": "s"}, [{"type": "x"}])

    with pytest.raises(ValueError, match="cannot be a file name"):
        anyio.run(climb)
