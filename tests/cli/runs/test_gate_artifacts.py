"""Gates in the inbox: what they show, and that the text a person leaves is what the next phase gets."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from components import Components
from surfaces.drivers import Cli

GATES = """\
agents:
  - name: writer
    runtime: scripted
    allowed_tools: [Write]
    default_prompt: go
    script:
      - tool: Write
        input: {file_path: plan.md, content: "the plan\\n"}
      - say: "wrote ${prompt}"

workflows:
  output:
    phases:
      - {name: plan, agent: writer, prompt: it}
      - {name: ok, depends_on: plan, gate: {summary: "Go?", artifact: {phase: plan}}}
      - {name: next, bash: cat, stdin: "${phases.ok.output.artifact}", depends_on: ok}
  file:
    WHERE
    inputs: {path: {type: text, default: plan.md}}
    phases:
      - {name: plan, agent: writer, prompt: it}
      - {name: ok, depends_on: plan, gate: {summary: "Go?", artifact: {file: "${inputs.path}"}}}
      - name: next
        bash: "cat; cat plan.md"
        stdin: "${phases.ok.output.artifact}"
        depends_on: ok
  diff:
    WHERE
    phases:
      - {name: plan, agent: writer, prompt: it}
      - {name: ok, depends_on: plan, gate: {summary: "Go?", artifact: diff}}
      - {name: next, bash: cat, stdin: "${phases.ok.output.artifact}", depends_on: ok}
  both:
    WHERE
    phases:
      - {name: plan, agent: writer, prompt: it}
      - {name: ok, depends_on: plan, gate: {summary: "Go?", quorum: 2, artifact: {file: plan.md}}}
  fails:
    WHERE
    phases:
      - {name: plan, agent: writer, prompt: it}
      - {name: ok, depends_on: plan, gate: {summary: "Go?", artifact: {file: plan.md}}}
      - {name: next, bash: "cat plan.md; [ -e $HERE/rain ]", depends_on: ok, env: {HERE: "${inputs.here}"}}
    inputs: {here: {type: text, default: HERE}}
  ask:
    phases:
      - {name: ok, gate: {kind: reply, summary: "Which one?"}}
      - {name: next, bash: cat, stdin: "${phases.ok.output.reply}", depends_on: ok}
"""
SHARED, WORKTREE = "description: shared", "working_directory: {root: ., mode: worktree}"


@pytest.fixture(params=[SHARED, WORKTREE], ids=["shared", "worktree"])
def gates(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with a fleet; its runs work in the directory itself, or in a worktree."""
    return prepare(tmp_path, monkeypatch, request.param)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, in the directory itself."""
    return prepare(tmp_path, monkeypatch, SHARED)


@pytest.fixture
def worktree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, components: Components) -> Path:
    """The same, in a worktree."""
    components.program("git")
    return prepare(tmp_path, monkeypatch, WORKTREE)


def prepare(directory: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> Path:
    (directory / "nightherd.yaml").write_text(
        GATES.replace("WHERE", where).replace("default: HERE", f"default: {directory}")
    )
    (directory / ".gitignore").write_text(".nightherd\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        subprocess.run(["git", *command], cwd=directory, check=True)
    monkeypatch.chdir(directory)
    return directory


def paused(cli: Cli, workflow: str, *arguments: str) -> Any:
    assert cli("workflow", "run", workflow, "--wait", *arguments).code == 8
    return cli("inbox", "show", "@last", "--json").data


def output(cli: Cli) -> str:
    assert cli("worker", "--until-idle").code == 0
    shown = cli("runs", "show", "@last", "--output", "next")
    assert (shown.code, shown.err) == (0, "")
    return shown.out


def test_gate_is_listed_and_shown_with_its_workflow_and_artifact(cli: Cli, shared: Path) -> None:
    item = paused(cli, "output")
    listed = cli("inbox", "list").out
    text = cli("inbox", "show", item["workflow_run_id"]).out

    assert (item["workflow"], item["gate"], item["run_status"]) == ("output", "ok", "paused")
    assert item["artifact"] == {
        "kind": "output",
        "file": None,
        "text": "wrote it",
        "problem": None,
    }
    assert item["workflow_run_id"] in listed
    assert "gate ok of workflow output\n  Go?\noutput\n  wrote it\n" in text
    assert "the run continues after the gate" in text


def test_approved_gate_passes_the_artifact_on(cli: Cli, shared: Path) -> None:
    item = paused(cli, "output")

    answered = cli("inbox", "approve", item["id"])

    assert answered.out == f"{item['id']} approved\n"
    assert f"run {item['workflow_run_id']} is running" in answered.err
    assert output(cli) == "wrote it\n"


def test_changed_output_is_what_the_next_phase_gets(cli: Cli, shared: Path) -> None:
    item = paused(cli, "output")

    assert cli("inbox", "approve", item["id"], "--input", "artifact=other").code == 0
    assert output(cli) == "other\n"


def test_reply_is_the_output_of_the_gate(cli: Cli, shared: Path) -> None:
    item = paused(cli, "ask")

    assert cli("inbox", "approve", item["id"]).code == 5
    assert cli("inbox", "reply", item["id"], "-m", "the red one").code == 0
    assert output(cli) == "the red one\n"


def test_file_is_read_from_where_the_run_works_when_it_is_shown_and_answered(
    cli: Cli, gates: Path
) -> None:
    item = paused(cli, "file")

    assert item["artifact"]["text"] == "the plan\n"
    assert cli("inbox", "approve", item["id"]).code == 0
    assert output(cli) == "the plan\nthe plan\n"


def test_changed_file_is_replaced_in_the_workspace(cli: Cli, gates: Path) -> None:
    item = paused(cli, "file")
    (gates / "better.md").write_text("a better plan\n")

    assert cli("inbox", "approve", item["id"], "--input", "artifact=@better.md").code == 0
    assert output(cli) == "a better plan\na better plan\n"
    assert cli("inbox", "show", item["id"], "--json").data["artifact"]["text"] == "a better plan\n"


def test_editor_changes_the_file(cli: Cli, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = paused(cli, "file")
    editor = shared / "editor"
    editor.write_text('#!/bin/sh\necho edited >> "$1"\ntouch -d "1 hour" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", "true")

    unchanged = cli("inbox", "approve", item["id"], "--edit")
    monkeypatch.setenv("VISUAL", str(editor))
    changed = cli("inbox", "approve", item["id"], "--edit")

    assert unchanged.code == 5
    assert "nothing was changed, so nothing was approved" in unchanged.err
    assert changed.code == 0
    assert (shared / "plan.md").read_text() == "the plan\nedited\n"


@pytest.mark.parametrize("path", ["../outside.md", "/etc/hostname", "link.md"])
def test_file_outside_of_the_directory_is_neither_shown_nor_written(
    path: str, cli: Cli, shared: Path
) -> None:
    outside = shared.parent / "outside.md"
    outside.write_text("not for gates")
    (shared / "link.md").symlink_to(outside)

    item = paused(cli, "file", "--input", f"path={path}")
    approved = cli("inbox", "approve", item["id"])
    changed = cli("inbox", "approve", item["id"], "--input", "artifact=x")

    assert item["artifact"]["text"] is None
    assert "where the run works" in item["artifact"]["problem"]
    assert (approved.code, changed.code) == (5, 5)
    assert outside.read_text() == "not for gates"
    assert cli("inbox", "reject", item["id"]).code == 0


def test_missing_file_can_be_given_or_the_gate_rejected(cli: Cli, shared: Path) -> None:
    item = paused(cli, "file")
    (shared / "plan.md").unlink()

    refused = cli("inbox", "approve", item["id"])

    assert refused.code == 5
    assert "there is no file plan.md" in refused.err
    assert cli("inbox", "approve", item["id"], "--input", "artifact=given").code == 0
    assert output(cli) == "givengiven\n"


def test_changes_in_the_workspace_are_shown_and_passed_on(cli: Cli, worktree: Path) -> None:
    item = paused(cli, "diff")

    assert item["artifact"]["kind"] == "diff"
    assert "+the plan" in item["artifact"]["text"]
    assert cli("inbox", "approve", item["id"]).code == 0
    assert "+the plan" in output(cli)


def test_answer_that_does_not_count_changes_no_file(cli: Cli, shared: Path) -> None:
    item = paused(cli, "file")
    cli("inbox", "reject", item["id"])

    assert cli("inbox", "approve", item["id"], "--input", "artifact=late").code == 5
    assert (shared / "plan.md").read_text() == "the plan\n"


@pytest.mark.parametrize(
    ("workflow", "given", "message"),
    [
        ("ask", "artifact=x", "only the approval"),
        ("output", '{"command": "ls"}', "the text of its artifact"),
        ("output", '{"artifact": 3}', "the text of its artifact"),
        ("output", "[]", "not a JSON object"),
    ],
)
def test_input_that_is_no_artifact_is_refused(
    workflow: str, given: str, message: str, cli: Cli, shared: Path
) -> None:
    item = paused(cli, workflow)

    refused = cli("inbox", "approve", item["id"], "--input", given)

    assert refused.code == 2
    if workflow != "ask":
        assert message in refused.err
    assert cli("inbox", "show", item["id"], "--json").data["status"] == "pending"


def test_text_that_several_people_approve_is_changed_by_none_of_them(
    cli: Cli, shared: Path
) -> None:
    item = paused(cli, "both")
    before = (shared / "plan.md").read_text()

    refused = cli("inbox", "approve", item["id"], "--input", "artifact=mine")

    assert refused.code == 5
    assert "needs 2 people: they approve the same text, or one rejects" in refused.err
    assert (shared / "plan.md").read_text() == before
    assert cli("inbox", "approve", item["id"]).code == 0
    assert cli("inbox", "show", item["id"], "--json").data["status"] == "pending"


def test_changed_file_is_in_the_workspace_of_a_retried_run(cli: Cli, worktree: Path) -> None:
    first = paused(cli, "file")
    cli("inbox", "reject", first["id"], "-m", "no")
    cli("runs", "retry", "@last")
    again = cli("inbox", "show", "@last", "--json").data

    assert cli("inbox", "approve", again["id"], "--input", "artifact=mine").code == 0

    assert output(cli) == "minemine\n"
    left = [file.read_text() for file in worktree.glob(".nightherd-workspaces/*/plan.md")]
    assert sorted(left) == sorted(["mine", again["artifact"]["text"]])


def test_changed_file_is_kept_when_a_later_phase_failed(cli: Cli, worktree: Path) -> None:
    item = paused(cli, "fails")
    assert cli("inbox", "approve", item["id"], "--input", "artifact=mine").code == 0
    cli("worker", "--until-idle")
    assert cli("runs", "show", "@last", "--json").data["status"] == "failed"

    (worktree / "rain").touch()
    cli("runs", "retry", "@last")

    assert output(cli) == "mine\n"
