"""`nightherd runs tail`: everything that happened in a run, in order, each line after its phase."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from surfaces.drivers import Cli, Shell


def test_tail_shows_events_and_nodes_in_order(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "many", "--wait")

    lines = cli("runs", "tail", "@last", "-n", "all").out.splitlines()

    assert lines[0].startswith("each[0] | - began job-")
    for item in range(3):
        mine = [line.partition(" | ")[2] for line in lines if line.startswith(f"each[{item}] |")]
        assert mine[1:] == [f"» do {'abc'[item]}", f"wrote do {'abc'[item]}", "✔ succeeded"]
    assert lines.index("each | ✔ succeeded") > lines.index("each[2] | ✔ succeeded")
    assert lines.index("again[1]/look | wrote look 1") < lines.index("again[2]/look | wrote look 2")
    assert lines[-1] == "again | ✔ succeeded"


def test_tail_shows_the_last_lines_and_the_command_that_answers_a_gate(
    cli: Cli, flows: Path
) -> None:
    cli("workflow", "run", "gated", "--wait")

    result = cli("runs", "tail", "@last", "-n", "1")

    assert result.code == 0
    assert result.out.startswith("ok | ‖ waits for a person: Go on with wrote the plan?\n")
    assert "nightherd inbox approve ask-" in result.out


def test_documents_hold_the_events_of_the_journal(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "simple", "--wait")

    documents = cli("runs", "tail", "@last", "-n", "all", "--json").documents

    assert {one["schema"] for one in documents} == {"nightherd/v1/workflow_event"}
    rows = [one["data"] for one in documents]
    job = next(row["job_id"] for row in rows if row["phase"] == "plan")
    events = [row["event"] for row in rows if row["phase"] == "plan" and "event" in row]
    journal = cli("jobs", "tail", job, "-n", "all", "--json").documents
    assert events == [one["data"] for one in journal]
    changes = [(row["phase"], row["status"]) for row in rows if "status" in row]
    assert changes == [
        ("plan", "began"),
        ("plan", "succeeded"),
        ("check", "began"),
        ("check", "succeeded"),
    ]


def test_kept_phases_are_named_and_their_jobs_are_not_read_again(cli: Cli, flows: Path) -> None:
    failed = cli("workflow", "run", "broken", "--json").data["id"]
    cli("runs", "retry", failed)

    out = cli("runs", "tail", "@last", "-n", "all").out

    assert f"plan | - kept from {failed}: succeeded\n" in out
    assert "wrote plan" not in out


def test_follow_ends_with_the_exit_code_of_the_run(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "simple", "--wait")
    assert cli("runs", "tail", "@last", "-f").code == 0
    cli("workflow", "run", "broken", "--wait")
    assert cli("runs", "tail", "@last", "-f").code == 1


def test_follow_shows_jobs_that_begin_later(flows: Path) -> None:
    shell = Shell(flows)
    run = shell.run("workflow", "run", "waiting", "--detach").out.strip()
    follower = shell.start("runs", "tail", run, "-f", stdout=subprocess.PIPE)
    assert follower.stdout is not None
    while b"waits for the event" not in follower.stdout.readline():
        assert follower.poll() is None
    shell.run("runs", "signal", run, "deployed")
    shell.run("worker", "--until-idle")
    out, _ = follower.communicate()

    assert follower.returncode == 0
    assert b"deployed | \xe2\x9c\x94 succeeded" in out
    assert b"after | wrote after" in out
    shell.close()


MESSAGES = """\
workflows:
  told:
    phases:
      - name: good
        bash: echo done
        messages: {on_start: good begins, on_success: "good said ${phases.good.output}"}
      - name: quiet
        bash: "true"
        messages: {on_start: quiet begins}
      - name: bad
        bash: exit 3
        messages: {on_failure: "bad ended with ${phases.bad.exit_code}"}
  waits:
    phases:
      - name: pause
        wait: {event: go}
        messages: {on_start: pause begins, on_success: pause is over}
      - name: both
        messages: {on_start: both begin}
        phases: [{name: inner, wait: {event: stop}}]
"""


def test_messages_of_phases_are_shown_when_they_begin_and_end(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightherd.yaml").write_text(MESSAGES)

    cli("workflow", "run", "told", "--wait")
    ended = cli("runs", "tail", "@last", "-n", "all").out.splitlines()
    begun = cli("workflow", "run", "waits").out.splitlines()
    cli("runs", "signal", "@last", "go")
    later = cli("runs", "tail", "@last", "-n", "all").out.splitlines()

    assert "good | ✔ succeeded: good said done" in ended
    assert "quiet | ✔ succeeded" in ended
    place = ended.index("bad | ✗ failed: exit code 3")
    assert ended[place + 1] == "bad |   bad ended with 3"
    assert begun[0] == "pause | - began: pause begins"
    assert "pause | ✔ succeeded: pause is over" in later
    assert "both | - began: both begin" in later
