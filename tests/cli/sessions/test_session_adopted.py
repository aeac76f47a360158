"""Sessions that came from Claude Code are sessions like any other: shown, forked, exported, gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.sessions.ranch import Ranch

UUID = "11111111-2222-4333-8444-555555555555"


def write(home: Path, directory: Path, *said: tuple[str, str]) -> Path:
    """A transcript in which each line goes on from the one before."""
    path = home / "projects" / "-srv-pasture" / f"{UUID}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "type": kind,
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number else None,
            "cwd": str(directory),
            "timestamp": f"2026-03-01T12:00:0{number}.000Z",
            "message": {"id": f"m{number}", "role": kind, "content": text},
        }
        for number, (kind, text) in enumerate(said)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where somebody's transcripts are; Claude's own directory here is another."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return tmp_path / "theirs"


@pytest.fixture
def adopted(ranch: Ranch, tmp_path: Path, home: Path) -> str:
    """The session of an imported transcript of two messages."""
    write(home, tmp_path, ("user", "hello"), ("assistant", "there"))
    assert ranch.cli("import", "claude", str(home)).code == 0
    found: str = ranch.show(UUID)["id"]
    return found


def test_messages_of_an_adopted_session_are_shown_and_the_copy_stays(
    ranch: Ranch, adopted: str, home: Path
) -> None:
    shown = ranch.show(adopted, "--history")

    assert [message["text"] for message in shown["history"]] == ["hello", "there"]
    assert [message["message"] for message in shown["history"]] == [1, 2]
    assert (shown["message_count"], shown["status"], shown["turn_count"]) == (2, "paused", 1)
    assert ranch.texts(adopted) == ["hello", "there"]
    assert len(ranch.data("jobs", "list")) == 1
    copy = ranch.state / "transcripts" / f"{UUID}.jsonl"
    assert copy.read_bytes() == next(home.rglob("*.jsonl")).read_bytes()
    assert ranch.cli("doctor").code == 0


def test_adopted_session_that_grew_is_shown_with_what_is_new(
    ranch: Ranch, adopted: str, home: Path, tmp_path: Path
) -> None:
    before = ranch.show(adopted, "--history")["history"]
    talk = [("user", "hello"), ("assistant", "there"), ("user", "more?"), ("assistant", "more")]
    write(home, tmp_path, *talk)
    imported = ranch.data("import", "claude", str(home))

    after = ranch.show(adopted, "--history")

    assert imported["imported"]["refreshed"] == 1
    assert after["history"][:2] == before
    assert [message["text"] for message in after["history"]] == [text for _, text in talk]
    assert (after["message_count"], after["job_count"]) == (4, 2)


@pytest.mark.parametrize(("at", "kept"), [("0", []), ("1", ["hello"]), ("2", ["hello", "there"])])
def test_adopted_session_is_forked_at_any_message(
    ranch: Ranch, adopted: str, at: str, kept: list[str]
) -> None:
    fork = ranch.data("session", "fork", adopted, "--at-message", at)

    assert (fork["message_count"], fork["parent_session_id"]) == (len(kept), adopted)
    assert ranch.texts(fork["id"]) == kept
    assert ranch.texts(adopted) == ["hello", "there"]
    tree = ranch.cli("session", "tree", adopted)
    assert f"after message {at}" in tree.out
    assert ranch.data("session", "compare", adopted, fork["id"])["common_messages"] == len(kept)


@pytest.mark.parametrize("kind", ["json", "claude", "markdown", "html"])
def test_adopted_session_is_exported(ranch: Ranch, adopted: str, kind: str) -> None:
    exported = ranch.cli("session", "export", adopted, "--format", kind)

    assert exported.code == 0
    assert "hello" in exported.out
    assert "there" in exported.out


def test_adopted_session_is_gone_on_with_by_nobody_that_does_not_fit(
    ranch: Ranch, adopted: str, tmp_path: Path
) -> None:
    nobody = ranch.cli("session", "resume", adopted, "-p", "go on")
    scripted = ranch.cli("session", "resume", adopted, "--agent", "memory", "-p", "go on")

    assert nobody.code == 3
    assert f"works in {tmp_path}" in nobody.err
    assert scripted.code == 5
    assert "is run by scripted" in scripted.err
    assert ranch.data("jobs", "list") == []
    (told,) = {message["job_id"] for message in ranch.show(adopted, "--history")["history"]}
    for command in ("resume", "fork"):
        assert f"works in {tmp_path}" in ranch.cli("jobs", command, told, "-p", "go on").err


def test_adopted_session_is_taken_over_in_its_directory(
    ranch: Ranch, adopted: str, tmp_path: Path
) -> None:
    taken = ranch.cli("session", "takeover", adopted)

    assert taken.code == 0
    assert taken.out == f"cd {tmp_path} && claude --resume {UUID}\n"


def test_session_with_a_job_that_starts_by_itself_cannot_be_taken_over(
    ranch: Ranch, adopted: str
) -> None:
    fleet = ranch.root / "nightherd.yaml"
    fleet.write_text(
        fleet.read_text() + "\n  - {name: coder, runtime: cli, working_directory: .}\n"
    )
    assert ranch.cli("reload", "--accept").code == 0
    queued = ranch.cli("session", "resume", adopted, "--agent", "coder", "-p", "go on", "--detach")
    assert queued.code == 0, queued.err
    job = queued.out.strip()

    refused = ranch.cli("session", "takeover", adopted)

    assert refused.code == 5
    assert f"{job} goes first in session {adopted} and waits for a worker" in refused.err
    assert f"nightherd jobs cancel {job}" in refused.err
    assert ranch.cli("jobs", "cancel", job).code == 0
    assert ranch.cli("session", "takeover", adopted).code == 0


def test_what_no_claude_knows_cannot_be_taken_over(ranch: Ranch) -> None:
    session = ranch.run("memory")["session_id"]

    refused = ranch.cli("session", "takeover", session)

    assert refused.code == 5
    assert f"nightherd session export {session}" in refused.err


def test_session_whose_directory_is_gone_cannot_be_taken_over(ranch: Ranch, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    folder = tmp_path / "theirs" / "projects" / "-gone"
    folder.mkdir(parents=True)
    line = {
        "type": "user",
        "cwd": str(gone),
        "timestamp": "2026-03-01T12:00:00.000Z",
        "message": {"role": "user", "content": "hello"},
    }
    (folder / f"{UUID}.jsonl").write_text(json.dumps(line) + "\n")
    ranch.cli("import", "claude", str(tmp_path / "theirs"))

    refused = ranch.cli("session", "takeover", UUID)

    assert refused.code == 5
    assert "is gone" in refused.err
