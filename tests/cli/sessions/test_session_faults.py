"""Killed anywhere, a session command has happened or has not; and what is torn or gone is told, not guessed."""

from __future__ import annotations

import json
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from cli.sessions.ranch import FLEET, Ranch
from nightherd.testing.fork_server import Ended, ForkServer
from surfaces.drivers import Shell

STATE_POINTS = [
    "db.begin",
    "db.before_commit",
    "db.after_commit",
    "ledger.half_written",
    "ledger.appended",
]
JOURNAL_POINTS = ["finished.before_rename", "finished.after_rename"]
WORK = "cli.sessions.session_victims:command"
UUID = "11111111-2222-4333-8444-555555555555"


def kill(server: ForkServer, directory: Path, *words: str, point: str, nth: int = 1) -> Ended:
    """How a command ended that was to be killed at a point."""
    order = {"directory": str(directory), "words": list(words), "point": point, "nth": nth}
    ended = server.run(WORK, order)
    assert ended.error == ""
    return ended


def check_whole(ranch: Ranch) -> None:
    """Database, ledger and journals agree, and every session can be shown."""
    assert ranch.cli("doctor").code == 0
    for row in ranch.data("session", "list"):
        shown = ranch.show(row["id"], "--history", "--limit", "10000")
        assert len(shown["history"]) == shown["message_count"]


@pytest.mark.parametrize("point", STATE_POINTS)
def test_killed_fork_has_happened_or_has_not(
    fork_server: ForkServer, ranch: Ranch, point: str
) -> None:
    session = ranch.run("memory", "-p", "first")["session_id"]
    journals, texts = ranch.files(), ranch.texts(session)

    ended = kill(
        fork_server, ranch.root, "session", "fork", session, "--at-message", "2", point=point
    )

    assert ended.status == -signal.SIGKILL
    forks = ranch.show(session)["forks"]
    assert len(forks) <= 1
    assert [ranch.texts(fork) for fork in forks] == [texts[:2]] * len(forks)
    assert ranch.files() == journals
    check_whole(ranch)
    assert ranch.cli("session", "fork", session, "--at-message", "2").code == 0


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("point", STATE_POINTS)
def test_killed_cleanup_is_completed_by_the_next(
    fork_server: ForkServer, ranch: Ranch, point: str, nth: int
) -> None:
    sessions = {ranch.run("fresh")["session_id"] for _ in range(3)}
    kept = ranch.run("memory")["session_id"]
    journals = ranch.files()
    words = ("session", "cleanup", "--older-than", "0s")

    ended = kill(fork_server, ranch.root, *words, point=point, nth=nth)

    assert ended.status in (-signal.SIGKILL, 0)
    listed = {row["id"] for row in ranch.data("session", "list")}
    assert kept in listed
    assert listed <= {*sessions, kept}
    ranch.data(*words)
    assert [row["id"] for row in ranch.data("session", "list")] == [kept]
    assert ranch.files() == journals
    check_whole(ranch)


@pytest.mark.parametrize("point", [*JOURNAL_POINTS, *STATE_POINTS])
def test_killed_import_is_completed_by_the_next(
    fork_server: ForkServer, ranch: Ranch, tmp_path_factory: pytest.TempPathFactory, point: str
) -> None:
    root = ranch.run("memory", "-p", "first")["session_id"]
    ranch.cli("session", "fork", root, "--at-message", "2", "--run", "-p", "otherwise", "-q")
    session = ranch.show("@last")["id"]
    before = ranch.show(session, "--history")["history"]
    file = ranch.root / "session.json"
    ranch.cli("session", "export", session, "-o", str(file))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "nightherd.yaml").write_text(FLEET)
    config = ("--config", str(elsewhere / "nightherd.yaml"))

    ended = kill(fork_server, elsewhere, "session", "import", str(file), point=point)

    assert ended.status == -signal.SIGKILL
    there = ranch.data(*config, "session", "list")
    assert len(there) <= 1
    ranch.data(*config, "session", "import", str(file))
    shown = ranch.data(*config, "session", "show", session, "--history")
    assert shown["history"] == before
    assert len(ranch.data(*config, "jobs", "list")) == 2
    assert ranch.cli(*config, "doctor").code == 0


@pytest.mark.parametrize("point", [*JOURNAL_POINTS, *STATE_POINTS])
def test_killed_telling_of_an_imported_session_is_done_by_the_next(
    fork_server: ForkServer, ranch: Ranch, point: str
) -> None:
    transcript = ranch.root / "theirs" / "projects" / "-srv" / f"{UUID}.jsonl"
    transcript.parent.mkdir(parents=True)
    said = [
        {"type": kind, "cwd": "/srv", "uuid": kind, "message": {"content": kind}}
        for kind in ("user", "assistant")
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in said))
    ranch.data("import", "claude", "theirs")

    ended = kill(fork_server, ranch.root, "session", "show", UUID, "--history", point=point)

    assert ended.status == -signal.SIGKILL
    assert len(ranch.data("jobs", "list")) <= 1
    assert ranch.texts(UUID) == ["user", "assistant"]
    assert len(ranch.data("jobs", "list")) == 1
    check_whole(ranch)


def test_killed_export_leaves_the_old_file_or_none(fork_server: ForkServer, ranch: Ranch) -> None:
    session = ranch.run("memory")["session_id"]
    out = ranch.root / "session.json"
    ranch.cli("session", "export", session, "-o", str(out))
    old = out.read_bytes()

    process = subprocess.Popen(
        Shell.line("session", "export", session, "-o", str(out)), cwd=ranch.root
    )
    process.kill()
    process.wait()

    assert out.read_bytes() == old or json.loads(out.read_bytes())["data"]["session"]["id"]


@pytest.mark.parametrize("nth", [3, 6, 9])
def test_killed_summary_is_made_by_the_next_execution(
    fork_server: ForkServer, ranch: Ranch, nth: int
) -> None:
    (ranch.root / "nightherd.yaml").write_text("""\
agents:
  - name: long
    runtime: scripted
    default_prompt: go
    session: {mode: persistent, max_context_tokens: 20, context_window: 2}
    script:
      - say: "a long answer, a long answer, a long answer, a long answer, a long answer, a long answer"
      - say: "another long answer, another long answer, another long answer, another long answer"
      - say: "the last"
""")
    session = ranch.run("long", "-p", "first")["session_id"]
    said = ranch.texts(session)

    ended = kill(
        fork_server,
        ranch.root,
        "run",
        "long",
        "-p",
        "second",
        "-q",
        point="journal.after_write",
        nth=nth,
    )

    assert ended.status in (-signal.SIGKILL, 0)
    assert ranch.cli("worker", "--until-idle").code == 0
    job = ranch.data("jobs", "show", "@last")
    assert (job["status"], job["session_id"]) == ("completed", session)
    assert ranch.texts(session) == [*said, "second"]
    events = [
        json.loads(line)["data"]
        for line in ranch.cli("jobs", "tail", job["id"], "--json").out.splitlines()
    ]
    summaries = [event for event in events if event.get("subtype") == "summary"]
    assert len(summaries) == 1
    check_whole(ranch)


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("point", ["db.before_commit", "db.after_commit", "ledger.half_written"])
def test_killed_resume_has_asked_once_or_not_at_all(
    fork_server: ForkServer, ranch: Ranch, point: str, nth: int
) -> None:
    session = ranch.run("memory", "-p", "first")["session_id"]

    ended = kill(
        fork_server, ranch.root, "session", "resume", session, "-p", "second", point=point, nth=nth
    )

    assert ended.status == -signal.SIGKILL
    assert ranch.cli("worker", "--until-idle").code == 0
    jobs = ranch.data("jobs", "list")
    assert len(jobs) <= 2
    assert {job["status"] for job in jobs} == {"completed"}
    assert ranch.texts(session).count("second") == len(jobs) - 1
    check_whole(ranch)
    assert ranch.cli("session", "resume", session, "-p", "third").code == 0


def test_two_processes_that_resume_one_session_wait_for_each_other(
    ranch: Ranch, tmp_path: Path
) -> None:
    session = ranch.run("memory", "-p", "first")["session_id"]
    shell = Shell(tmp_path)
    both = [
        shell.start("session", "resume", session, "-p", f"number {number}", "-q")
        for number in (1, 2)
    ]

    assert [process.wait() for process in both] == [0, 0]

    shell.close()
    asked = [text for text in ranch.texts(session) if text.startswith("number")]
    assert sorted(asked) == ["number 1", "number 2"]
    assert ranch.show(session)["job_count"] == 3
    jobs = [ranch.data("jobs", "show", job) for job in ranch.show(session)["jobs"]]
    for before, after in pairwise(jobs):
        assert before["finished_at"] <= after["started_at"]
    check_whole(ranch)


def test_torn_tail_of_a_journal_is_not_part_of_the_conversation(ranch: Ranch) -> None:
    done = ranch.run("memory", "-p", "first")
    texts = ranch.texts(done["session_id"])
    journal = ranch.state / "jobs" / f"{done['job_id']}.jsonl"
    with journal.open("ab") as file:
        file.write(b'{"v":1,"seq":99,"type":"assistant","content":"never fin')

    assert ranch.texts(done["session_id"]) == texts
    fork = ranch.data("session", "fork", done["session_id"])["id"]
    assert ranch.texts(fork) == texts
    exported = json.loads(ranch.cli("session", "export", done["session_id"]).out)
    assert exported["data"]["jobs"][0]["events"][-1]["type"] != "assistant"
    assert ranch.cli("session", "resume", fork, "-p", "more", "-q").code == 0


def test_history_says_which_journal_is_missing(ranch: Ranch) -> None:
    first, second = ranch.run("memory", "-p", "first"), ranch.run("memory", "-p", "second")
    (ranch.state / "jobs" / f"{first['job_id']}.jsonl").unlink()

    shown = ranch.show(second["session_id"], "--history")
    told = ranch.cli("session", "show", second["session_id"], "--history")

    (lost,) = shown["unreadable"]
    assert (lost["job_id"], lost["is_gone"], lost["bytes"]) == (first["job_id"], True, [])
    assert lost["missing"] > 0
    assert f"not shown: the journal of {first['job_id']} is missing" in told.err


def test_history_says_that_the_end_of_a_journal_is_missing(ranch: Ranch) -> None:
    done = ranch.run("memory", "-p", "first")
    journal = ranch.state / "jobs" / f"{done['job_id']}.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-2]))

    (lost,) = ranch.show(done["session_id"], "--history")["unreadable"]

    assert (lost["missing"], lost["is_gone"]) == (2, False)


def test_session_in_use_is_kept_by_cleanup_and_counted_as_it_grows(
    ranch: Ranch, tmp_path: Path
) -> None:
    (ranch.root / "nightherd.yaml").write_text("""\
agents:
  - name: slow
    runtime: scripted
    default_prompt: go
    allowed_tools: [Bash]
    session: {mode: persistent, idle_timeout: 1ms}
    script:
      - say: "working"
      - tool: Bash
        input: {command: "touch begun; while [ ! -e enough ]; do sleep 0.05; done"}
      - say: "done"
""")
    shell = Shell(tmp_path)
    process = shell.start("run", "slow", "-q")
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
    session = ranch.show("@last")

    cleaned = ranch.data("session", "cleanup", "--older-than", "0s")

    assert (session["status"], session["message_count"], session["turn_count"]) == ("active", 2, 1)
    assert cleaned["removed"] == []
    assert ranch.data("session", "list", "--status", "active")[0]["message_count"] == 2
    assert ranch.cli("session", "takeover", session["id"]).code == 5
    (tmp_path / "enough").touch()
    assert process.wait() == 0
    shell.close()
    assert ranch.show(session["id"])["message_count"] == 4
