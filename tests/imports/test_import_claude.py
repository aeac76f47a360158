"""Importing Claude Code's sessions: every transcript once, as it is, and nothing of Claude Code's touched."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from imports.conftest import Importer
from imports.foreign_trees import (
    CWD,
    ClaudeTree,
    assistant,
    fingerprint,
    lines,
    tool_result,
    user,
    uuid,
)
from nightherd.model.sessions.session import SessionMode, SessionStatus
from nightherd.model.units import MicroUsd


def test_transcript_becomes_a_session_and_a_raw_copy(
    importer: Importer, claude: ClaudeTree
) -> None:
    source = claude.talk()

    data = importer.data("claude", str(claude.root))

    session = importer.session()
    assert data["imported"]["sessions"] == 1
    assert (session.agent, session.runtime_type) == ("claude", "cli")
    assert (session.mode, session.status) == (SessionMode.FRESH_PER_JOB, SessionStatus.PAUSED)
    assert (session.runtime_session_id, session.working_directory) == (uuid(1), CWD)
    assert session.name == "Why is the cart empty?"
    assert (session.message_count, session.turn_count) == (3, 1)
    assert session.token_estimate == 1000
    assert session.imported_from == str(source)
    assert session.created_at == datetime(2026, 1, 2, 9, 0, 0, tzinfo=UTC)
    assert session.last_active_at == datetime(2026, 1, 2, 9, 0, 7, tzinfo=UTC)
    copy = importer.copy(source.name)
    assert copy.read_bytes() == source.read_bytes()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700


def test_source_is_byte_for_byte_what_it_was(importer: Importer, claude: ClaudeTree) -> None:
    claude.talk()
    claude.write("not json", user(), number=2)
    (claude.root / "projects" / "a file").write_text("no project")
    before = fingerprint(claude.root)

    importer.data("claude", str(claude.root), "--dry-run")
    importer.data("claude", str(claude.root))

    assert fingerprint(claude.root) == before


def test_dry_run_says_what_would_be_and_makes_nothing(
    importer: Importer, claude: ClaudeTree
) -> None:
    claude.talk()
    claude.talk(2)

    result = importer("claude", str(claude.root), "--dry-run")

    assert (result.code, result.out) == (0, "would import 2 sessions\n")
    assert not importer.state.exists()


def test_dry_run_on_a_state_that_is_there_changes_no_row_and_no_copy(
    importer: Importer, claude: ClaudeTree
) -> None:
    claude.talk()
    importer.data("claude", str(claude.root))
    claude.talk(more=1)
    claude.talk(2)
    before, copies = importer.sessions(), fingerprint(importer.state / "transcripts")

    data = importer.data("claude", str(claude.root), "--dry-run")

    assert data["imported"]["sessions"] == data["imported"]["refreshed"] == 1
    assert importer.sessions() == before
    assert fingerprint(importer.state / "transcripts") == copies


def test_second_import_adds_only_what_is_new(importer: Importer, claude: ClaudeTree) -> None:
    claude.talk()
    importer.data("claude", str(claude.root))

    again = importer.data("claude", str(claude.root))
    claude.talk(2)
    third = importer.data("claude", str(claude.root))

    assert not any(again["imported"].values())
    assert again["unchanged"] == 1
    assert (third["imported"]["sessions"], third["unchanged"]) == (1, 1)
    assert sorted(str(one.runtime_session_id) for one in importer.sessions()) == [uuid(1), uuid(2)]


def test_second_import_is_told_to_people_too(importer: Importer, claude: ClaudeTree) -> None:
    claude.talk()

    first = importer("claude", str(claude.root))
    second = importer("claude", str(claude.root))

    assert first.out == "imported 1 session\n"
    assert second.out == "imported nothing\nhere already: 1\n"


def test_transcript_that_grew_is_followed(importer: Importer, claude: ClaudeTree) -> None:
    claude.talk()
    importer.data("claude", str(claude.root))
    before = importer.session()
    source = claude.talk(more=2)

    data = importer.data("claude", str(claude.root))

    after = importer.session()
    assert (data["imported"]["refreshed"], data["imported"]["sessions"]) == (1, 0)
    assert (after.id, after.number) == (before.id, before.number)
    assert after.message_count == before.message_count + 2
    assert importer.copy(source.name).read_bytes() == source.read_bytes()


def test_transcript_that_lost_its_beginning_does_not_replace_the_copy(
    importer: Importer, claude: ClaudeTree
) -> None:
    source = claude.talk()
    importer.data("claude", str(claude.root))
    kept, session = importer.copy(source.name).read_bytes(), importer.session()
    claude.write(user("Something else entirely"), *[assistant(id=f"m{n}") for n in range(9)])

    data = importer.data("claude", str(claude.root))

    assert [one["source"] for one in data["skipped"]] == [str(source)]
    assert "the copy is kept" in data["skipped"][0]["reason"]
    assert importer.copy(source.name).read_bytes() == kept
    assert importer.session() == session


def test_transcript_that_was_cut_short_does_not_replace_the_copy(
    importer: Importer, claude: ClaudeTree
) -> None:
    source = claude.talk(more=3)
    importer.data("claude", str(claude.root))
    kept = importer.copy(source.name).read_bytes()
    source.write_bytes(kept[: len(kept) // 2])

    data = importer.data("claude", str(claude.root))

    assert len(data["skipped"]) == 1
    assert importer.copy(source.name).read_bytes() == kept


def test_touched_transcript_is_looked_at_and_found_unchanged(
    importer: Importer, claude: ClaudeTree
) -> None:
    source = claude.talk()
    importer.data("claude", str(claude.root))
    os.utime(source, (2_000_000_000, 2_000_000_000))

    data = importer.data("claude", str(claude.root))

    assert not any(data["imported"].values())
    assert data["unchanged"] == 1


def test_lost_copy_is_taken_again(importer: Importer, claude: ClaudeTree) -> None:
    source = claude.talk()
    importer.data("claude", str(claude.root))
    importer.copy(source.name).unlink()

    data = importer.data("claude", str(claude.root))

    assert data["unchanged"] == 1
    assert importer.copy(source.name).read_bytes() == source.read_bytes()
    assert len(importer.sessions()) == 1


def test_torn_last_line_is_no_bad_line(importer: Importer, claude: ClaudeTree) -> None:
    source = claude.talk()
    with source.open("ab") as file:
        file.write(b'{"type":"assistant","message":{"id":"msg_9","cont')

    data = importer.data("claude", str(claude.root))

    assert data["unreadable"] == []
    assert importer.session().message_count == 3
    assert importer.copy(source.name).read_bytes() == source.read_bytes()


def test_bad_lines_are_listed_with_their_number_and_kept_in_the_copy(
    importer: Importer, claude: ClaudeTree
) -> None:
    source = claude.write(user(), "", "{broken", '["a list"]', assistant())

    data = importer.data("claude", str(claude.root))

    assert [(one["file"], one["line"]) for one in data["unreadable"]] == [
        (str(source), 3),
        (str(source), 4),
    ]
    assert importer.session().message_count == 2
    assert importer.copy(source.name).read_bytes() == source.read_bytes()


def test_thousands_of_bad_lines_are_not_all_listed(importer: Importer, claude: ClaudeTree) -> None:
    claude.write(user(), *["{"] * 5000)

    data = importer.data("claude", str(claude.root))

    assert len(data["unreadable"]) == 21
    assert "4980 more" in data["unreadable"][-1]["reason"]


def test_file_without_one_readable_line_is_unreadable(
    importer: Importer, claude: ClaudeTree
) -> None:
    claude.write("\x00\x01 not a transcript", "nor this")

    result = importer("claude", str(claude.root), "--json")

    assert result.code == 1
    assert [one["line"] for one in result.data["unreadable"]] == [1]
    assert importer.sessions() == ()
    assert list((importer.state / "transcripts").iterdir()) == []


def test_directory_link_and_pipe_in_a_transcripts_place_are_listed(
    importer: Importer, claude: ClaudeTree
) -> None:
    claude.talk()
    claude.path(2).mkdir()
    claude.path(3).symlink_to("nowhere")
    os.mkfifo(claude.path(4))

    data = importer.data("claude", str(claude.root))

    assert data["imported"]["sessions"] == 1
    assert {Path(one["file"]).stem: one["reason"] for one in data["unreadable"]} == {
        uuid(2): "Is a directory",
        uuid(3): "No such file or directory",
        uuid(4): "Not a regular file",
    }


def test_nothing_readable_ends_with_one_and_nothing_there_with_zero(
    importer: Importer, claude: ClaudeTree
) -> None:
    assert importer("claude", str(claude.root)).code == 0

    claude.path(2).mkdir(parents=True)

    assert importer("claude", str(claude.root)).code == 1


def test_missing_directory_is_not_found(importer: Importer, tmp_path: Path) -> None:
    result = importer("claude", str(tmp_path / "nowhere"))

    assert result.code == 3
    assert "projects" in result.err
    assert not importer.state.exists()


def test_default_is_the_config_directory_then_the_home(
    importer: Importer, claude: ClaudeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ClaudeTree(tmp_path / "home" / ".claude").talk(7)
    claude.talk(1)

    at_home = importer.data("claude")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude.root))
    named = importer.data("claude")

    assert at_home["imported"]["sessions"] == named["imported"]["sessions"] == 1
    assert {one.runtime_session_id for one in importer.sessions()} == {uuid(1), uuid(7)}


def test_projects_directory_itself_can_be_given(importer: Importer, claude: ClaudeTree) -> None:
    claude.talk()

    assert importer.data("claude", str(claude.root / "projects"))["imported"]["sessions"] == 1


def test_sub_agents_are_copied_beside_and_are_no_sessions(
    importer: Importer, claude: ClaudeTree
) -> None:
    source = claude.talk()
    folder = source.with_suffix("")
    (folder / "subagents").mkdir(parents=True)
    (folder / "tool-results").mkdir()
    (folder / "subagents" / "agent-a1.jsonl").write_text(lines(assistant(isSidechain=True)))
    (folder / "tool-results" / "big.txt").write_text("output")
    (folder / "subagents" / "agent-gone.jsonl").symlink_to("nowhere")

    data = importer.data("claude", str(claude.root))
    again = importer.data("claude", str(claude.root))

    copy = importer.copy(f"{uuid(1)}/subagents/agent-a1.jsonl")
    assert copy.read_bytes() == (folder / "subagents" / "agent-a1.jsonl").read_bytes()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert importer.copy(f"{uuid(1)}/tool-results/big.txt").read_text() == "output"
    assert (data["imported"]["sessions"], data["imported"]["companions"]) == (1, 2)
    assert [Path(one["file"]).name for one in data["unreadable"]] == ["agent-gone.jsonl"]
    assert not any(again["imported"].values())


def test_what_is_no_session_is_skipped_with_its_reason(
    importer: Importer, claude: ClaudeTree
) -> None:
    claude.talk()
    only = claude.write(user(isSidechain=True), assistant(isSidechain=True), number=2)
    silent = claude.write({"type": "summary", "summary": "Cart work", "leafUuid": "x"}, number=3)
    agent = claude.path().with_name("agent-7f.jsonl")
    agent.write_text(lines(assistant(isSidechain=True)))
    other = claude.path().with_name("notes.jsonl")
    other.write_text(lines(user()))

    data = importer.data("claude", str(claude.root))

    assert {one["source"]: one["reason"] for one in data["skipped"]} == {
        str(agent): "a sub-agent's own transcript",
        str(other): "its name is not a session id",
        str(only): "only a sub-agent speaks in it",
        str(silent): "it has no messages",
    }
    assert len(importer.sessions()) == 1
    assert sorted(path.name for path in importer.copy("").iterdir()) == [f"{uuid(1)}.jsonl"]


def test_longer_of_two_transcripts_of_one_session_counts(
    importer: Importer, claude: ClaudeTree
) -> None:
    claude.talk(1, slug="-a-old")
    longer = claude.talk(1, more=1)

    data = importer.data("claude", str(claude.root))

    assert importer.session().imported_from == str(longer)
    assert [Path(one["source"]).parent.name for one in data["skipped"]] == ["-a-old"]


def test_known_secret_is_masked_in_the_name_even_where_it_is_cut(
    importer: Importer, claude: ClaudeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "hunter2-hunter2")
    source = claude.write(user("x" * 90 + " hunter2-hunter2 " + "y" * 50), assistant())

    importer.data("claude", str(claude.root))

    name = importer.session().name
    assert name is not None
    assert "hunter2" not in name
    assert len(name) == 100
    assert b"hunter2-hunter2" in importer.copy(source.name).read_bytes()
    assert b"hunter2" not in b"".join(
        path.read_bytes() for path in (importer.state / "ledger").iterdir()
    )


def test_costs_are_summed_exactly_and_never_invented(
    importer: Importer, claude: ClaudeTree
) -> None:
    claude.write(
        user(),
        assistant(id="a", costUSD=0.1),
        assistant(id="a", costUSD=0.1),
        assistant(id="b", costUSD=0.2),
        assistant(id="c", costUSD=-3),
        assistant(id="d", costUSD=0.000001, isSidechain=True),
    )
    claude.talk(2)

    importer.data("claude", str(claude.root))

    costs = {one.runtime_session_id: one.cost_microusd for one in importer.sessions()}
    assert costs == {uuid(1): MicroUsd(300_001), uuid(2): MicroUsd(0)}


def test_lone_surrogates_and_odd_types_cost_nothing_but_themselves(
    importer: Importer, claude: ClaudeTree
) -> None:
    claude.write(
        '{"type":"user","cwd":"/srv/shop","message":{"content":"half \\ud83d a face"}}',
        {
            "type": "assistant",
            "timestamp": 7,
            "cwd": ["/"],
            "message": {"id": "m", "usage": "lots"},
        },
        user([{"type": "text", "text": {"not": "text"}}, {"type": "tool_result"}]),
        {"type": "system", "message": "a text"},
        {"type": "user", "message": {"content": [{"type": "image"}]}, "timestamp": "not a time"},
    )

    data = importer.data("claude", str(claude.root))

    assert data["unreadable"] == []
    session = importer.session()
    assert session.name == "half \N{REPLACEMENT CHARACTER} a face"
    assert session.message_count == 5


def test_sessions_are_listed_in_the_order_they_were_last_written(
    importer: Importer, claude: ClaudeTree
) -> None:
    for number, at in ((1, 30), (2, 10), (3, 20)):
        os.utime(claude.talk(number), (at, at))

    importer.data("claude", str(claude.root))

    assert [one.runtime_session_id for one in importer.sessions()] == [uuid(1), uuid(3), uuid(2)]


def test_times_are_the_files_when_no_line_has_any(importer: Importer, claude: ClaudeTree) -> None:
    bare = [
        {key: value for key, value in line.items() if key != "timestamp"}
        for line in (user(), assistant())
    ]
    os.utime(claude.write(*bare), (1_700_000_000, 1_700_000_000))

    importer.data("claude", str(claude.root))

    at = datetime.fromtimestamp(1_700_000_000, UTC)
    assert (importer.session().created_at, importer.session().last_active_at) == (at, at)


def test_hundred_transcripts_in_more_than_one_batch_are_all_there_once(
    importer: Importer, claude: ClaudeTree
) -> None:
    for number in range(100):
        claude.talk(number)

    data = importer.data("claude", str(claude.root))
    again = importer.data("claude", str(claude.root))

    assert data["imported"]["sessions"] == again["unchanged"] == 100
    assert len({one.runtime_session_id for one in importer.sessions()}) == 100


def test_doctor_has_nothing_to_say_after_an_import(importer: Importer, claude: ClaudeTree) -> None:
    claude.talk()
    importer.data("claude", str(claude.root))

    result = importer.run("doctor", "--verify", "--json")

    assert result.code == 0, result


def test_tool_results_count_one_each(importer: Importer, claude: ClaudeTree) -> None:
    two = user([{"type": "tool_result"}, {"type": "tool_result"}, {"type": "text", "text": "and"}])
    claude.write(user(), assistant(), tool_result(), two, user("caveat", isMeta=True))

    importer.data("claude", str(claude.root))

    assert importer.session().message_count == 6
