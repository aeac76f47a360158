"""Sessions that came from Claude Code: what can be done with what is only in their own transcripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessions.ranch import Ranch

UUID = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def adopted(ranch: Ranch, tmp_path: Path) -> str:
    """The session of an imported transcript of two messages."""
    home = tmp_path / "theirs"
    folder = home / "projects" / "-srv-pasture"
    folder.mkdir(parents=True)
    lines = [
        {
            "type": kind,
            "uuid": f"u{number}",
            "cwd": str(tmp_path),
            "timestamp": f"2026-03-01T12:00:0{number}.000Z",
            "message": {"id": f"m{number}", "role": kind, "content": text},
        }
        for number, (kind, text) in enumerate([("user", "hello"), ("assistant", "there")])
    ]
    (folder / f"{UUID}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert ranch.cli("import", "claude", str(home)).code == 0
    found: str = ranch.show(UUID)["id"]
    return found


def test_adopted_session_says_where_its_messages_are(ranch: Ranch, adopted: str) -> None:
    shown = ranch.cli("session", "show", adopted, "--history")

    assert shown.code == 0
    assert "in its own transcript" in shown.err
    assert ranch.show(adopted)["message_count"] == 2


def test_adopted_session_is_not_forked_into_an_empty_one(ranch: Ranch, adopted: str) -> None:
    refused = ranch.cli("session", "fork", adopted)

    assert refused.code == 5
    assert "takeover" in refused.err
    assert len(ranch.data("session", "list")) == 1


def test_adopted_session_is_taken_over_in_its_directory(
    ranch: Ranch, adopted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))

    taken = ranch.cli("session", "takeover", adopted)

    assert taken.code == 0
    assert taken.out == f"cd {tmp_path} && claude --resume {UUID}\n"


def test_what_no_claude_knows_cannot_be_taken_over(ranch: Ranch) -> None:
    session = ranch.run("memory")["session_id"]

    refused = ranch.cli("session", "takeover", session)

    assert refused.code == 5
    assert "--format claude" in refused.err


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
