"""Claude's directory in a container: whatever its agent puts there, the worker touches no other file of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nightherd.runtimes.claude.deferred import deferred_in
from nightherd.runtimes.claude.gate import WrittenCalls
from nightherd.runtimes.claude.transcripts.claude_files import SharedFiles
from nightherd.runtimes.claude.transcripts.keeping import KeptTranscript
from nightherd.runtimes.claude.transcripts.places import expected_path

UUID = "6e964430-d2f6-475a-9e64-5130a5c62256"
LINE = b'{"type":"user","uuid":"a","id":"toolu_1"}\n'
SECRET = b'{"of":"the machine","id":"toolu_2"}\n'


class Den:
    """The directory of one session's container, our copies, and a file that is not the agent's."""

    def __init__(self, root: Path) -> None:
        self.top = root / "claude"
        self.top.mkdir()
        self.copies = root / "transcripts"
        self.outside = root / "outside"
        self.outside.mkdir()
        self.secret = self.outside / "secret.jsonl"
        self.secret.write_bytes(SECRET.rstrip())
        self.work = root / "work"
        self.work.mkdir()
        self.environment = {"CLAUDE_CONFIG_DIR": str(self.top)}
        self.files = SharedFiles(self.top)

    @property
    def transcript(self) -> Path:
        return expected_path(self.environment, str(self.work), UUID)

    def kept(self) -> KeptTranscript:
        return KeptTranscript(
            self.copies,
            UUID,
            environment=self.environment,
            directory=str(self.work),
            files=self.files,
        )

    def run(self) -> None:
        """What a run does with transcripts from its beginning to its end."""
        kept = self.kept()
        try:
            kept.restore()
        except OSError:
            pass  # reported as a warning
        kept.harvest()
        kept.finish(is_over=False)

    def everything(self) -> list[bytes]:
        """What is in files, ours and the agent's."""
        tops = [path for top in (self.top, self.copies) for path in top.rglob("*")]
        return [path.read_bytes() for path in tops if path.is_file() and not path.is_symlink()]


@pytest.fixture
def den(tmp_path: Path) -> Den:
    return Den(tmp_path)


def link_transcript(den: Den) -> None:
    den.transcript.parent.mkdir(parents=True)
    den.transcript.symlink_to(den.secret)


def link_folder(den: Den) -> None:
    den.transcript.parent.parent.mkdir()
    den.transcript.parent.symlink_to(den.outside)
    (den.outside / f"{UUID}.jsonl").write_bytes(SECRET)


def link_projects(den: Den) -> None:
    (den.top / "projects").symlink_to(den.outside)


def link_companions(den: Den) -> None:
    den.transcript.parent.mkdir(parents=True)
    den.transcript.write_bytes(LINE)
    den.transcript.with_suffix("").symlink_to(den.outside)


def link_inside_companions(den: Den) -> None:
    den.transcript.with_suffix("").mkdir(parents=True)
    den.transcript.write_bytes(LINE)
    (den.transcript.with_suffix("") / "deep").symlink_to(den.outside)
    (den.transcript.with_suffix("") / "one").symlink_to(den.secret)


def pipe(den: Den) -> None:
    den.transcript.parent.mkdir(parents=True)
    os.mkfifo(den.transcript)


def directory(den: Den) -> None:
    den.transcript.mkdir(parents=True)


TRICKS = [
    link_transcript,
    link_folder,
    link_projects,
    link_companions,
    link_inside_companions,
    pipe,
    directory,
]


@pytest.mark.parametrize("has_copy", [True, False])
@pytest.mark.parametrize("trick", TRICKS)
def test_no_link_leads_out_and_nothing_is_waited_for(
    den: Den, trick: Callable[[Den], None], has_copy: bool
) -> None:
    if has_copy:
        (den.copies / UUID / "subagents").mkdir(parents=True)
        (den.copies / f"{UUID}.jsonl").write_bytes(LINE)
        (den.copies / UUID / "subagents" / "agent-1.jsonl").write_bytes(LINE)
    trick(den)
    before = {path: path.read_bytes() for path in den.outside.iterdir()}

    den.run()
    assert deferred_in(den.transcript, den.files) is None

    assert {path: path.read_bytes() for path in den.outside.iterdir()} == before
    assert not [data for data in den.everything() if b"of" in data]


@pytest.mark.parametrize("trick", [link_transcript, pipe, directory])
def test_what_is_no_transcript_is_put_aside_for_our_copy(
    den: Den, trick: Callable[[Den], None]
) -> None:
    den.copies.mkdir()
    (den.copies / f"{UUID}.jsonl").write_bytes(LINE)
    trick(den)

    assert den.kept().restore()

    assert not den.transcript.is_symlink()
    assert den.transcript.read_bytes() == LINE


def test_session_that_comes_from_elsewhere_is_put_there_for_the_containers_user(den: Den) -> None:
    # Only root can give files away.
    owner = (1000, 1001) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(den.top, *owner)
    (den.copies / UUID / "subagents").mkdir(parents=True)
    (den.copies / f"{UUID}.jsonl").write_bytes(LINE)
    (den.copies / UUID / "subagents" / "agent-1.jsonl").write_bytes(LINE)

    assert den.kept().restore()

    found = list(den.top.rglob("*"))
    assert {path.name for path in found} >= {f"{UUID}.jsonl", "agent-1.jsonl"}
    assert {(path.stat().st_uid, path.stat().st_gid) for path in found} == {owner}


def test_what_a_container_wrote_is_copied_with_its_companions(den: Den) -> None:
    beside = den.transcript.with_suffix("") / "subagents"
    beside.mkdir(parents=True)
    (beside / "agent-1.jsonl").write_bytes(LINE)
    den.transcript.write_bytes(LINE + b'{"half')

    kept = den.kept()
    kept.harvest()
    kept.finish(is_over=False)
    kept.restore()

    assert (den.copies / f"{UUID}.jsonl").read_bytes() == LINE + b'{"half'
    assert (den.copies / UUID / "subagents" / "agent-1.jsonl").read_bytes() == LINE
    assert den.transcript.read_bytes() == LINE + b'{"half\n', "the next line is one of its own"


def test_session_that_began_in_another_directory_is_found_by_name(den: Den) -> None:
    elsewhere = den.top / "projects" / "-some-where" / f"{UUID}.jsonl"
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(LINE)

    assert not den.kept().restore()

    assert den.transcript.read_bytes() == LINE


@pytest.mark.parametrize("name", ["/etc/passwd", "{outside}/secret.jsonl", "{top}/../outside/x"])
def test_path_outside_of_the_directory_is_not_opened(den: Den, name: str) -> None:
    path = Path(name.format(top=den.top, outside=den.outside))

    assert den.files.size(path) == 0
    with pytest.raises(PermissionError, match="is not below"):
        den.files.open(path)
    with pytest.raises(PermissionError, match="is not below"):
        den.files.replace(path, b"x")


def test_gate_reads_no_transcript_but_that_of_the_container(den: Den) -> None:
    den.transcript.parent.mkdir(parents=True)
    den.transcript.write_bytes(LINE)
    (den.top / "link.jsonl").symlink_to(den.secret)
    deep = den.transcript.with_suffix("") / "subagents" / "flow"
    deep.mkdir(parents=True)
    (deep / "agent-7.jsonl").write_bytes(LINE.replace(b"toolu_1", b"toolu_7"))
    written = WrittenCalls(den.files)

    assert written.has(den.transcript, "toolu_1")
    assert written.has(den.transcript, "toolu_7", "7")
    assert not written.has(den.transcript, "toolu_2", "../../../../outside/secret")
    assert not written.has(den.secret, "toolu_2")
    assert not written.has(den.top / "link.jsonl", "toolu_2")


def test_call_beyond_a_line_that_is_longer_than_what_is_read_at_once_is_found(
    den: Den, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightherd.runtimes.claude.gate.AT_ONCE", 50)
    den.transcript.parent.mkdir(parents=True)
    den.transcript.write_bytes(b"x" * 120 + b"\n" + LINE)
    written = WrittenCalls(den.files)

    looks = [written.has(den.transcript, "toolu_1") for _ in range(5)]

    assert looks[0] is False
    assert looks[-1] is True
