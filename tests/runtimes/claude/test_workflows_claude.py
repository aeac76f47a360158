"""Workflows on the real `claude`: phases share a worktree, and conversations continue as their phases say."""

from __future__ import annotations

import pytest

from nightherd.testing.messages_script import Answer, Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.claude.test_claude_workspaces import bash, copies, said
from runtimes.claude.workflow_shop import PromptedModel, WorkflowShop, nodes_of, statuses_of
from runtimes.claude.workspace_shop import FIRST, files_in

VERDICT = "{type: object, required: [ok], properties: {ok: {type: boolean}}}"
BUILD = f"""\
  - name: clerk
  - name: critic
workflows:
  build:
    working_directory: {{root: shop, mode: worktree}}
    phases:
      - {{name: plan, agent: clerk, prompt: PLAN IT}}
      - name: mend
        loop: {{max_iterations: 3, until: phases.review.output.ok}}
        phases:
          - {{name: fix, agent: clerk, prompt: "FIX NUMBER ${{loop.iteration}}"}}
          - {{name: review, agent: critic, prompt: "REVIEW NUMBER ${{loop.iteration}}", output: {VERDICT}}}
      - {{name: ok, gate: {{summary: Publish?}}}}
      - {{name: publish, bash: "cat plan fixes > published; cat published"}}
"""


def doing(command: str, text: str) -> tuple[Answer, ...]:
    """A model that runs one command, and then says that it is done."""
    return (Say(text="I begin", calls=(bash(command),)), Say(text=text))


BUILT: dict[str, tuple[Answer, ...]] = {
    "PLAN IT": doing("echo plan > plan", "planned"),
    "FIX NUMBER 1": doing("echo one >> fixes", "fixed one"),
    "REVIEW NUMBER 1": (Say(text='{"ok": false}'),),
    "FIX NUMBER 2": doing("echo two >> fixes", "fixed two"),
    "REVIEW NUMBER 2": (Say(text='```json\n{"ok": true}\n```'),),
}


def test_phases_share_a_worktree_and_iterations_continue_their_conversations(
    stage: ClaudeStage,
) -> None:
    with PromptedModel(BUILT) as api:
        herd = WorkflowShop(stage, api, BUILD)
        waiting = herd.run_workflow("build")
        herd.approve()
        herd.work()
        run = herd.run_shown()
        nodes = nodes_of(run)
        changes = herd.data("jobs", "diff", nodes["publish"]["job_id"], "--all")

    assert (waiting["status"], run["status"]) == ("paused", "succeeded")
    assert (nodes_of(waiting)["ok"]["status"], nodes["mend"]["status"]) == ("paused", "succeeded")
    jobs = [node["job_id"] for node in nodes.values() if node["job_id"] is not None]
    assert len(jobs) == 6
    (place,) = {herd.directory(job) for job in jobs}
    made = {"plan": b"plan\n", "fixes": b"one\ntwo\n", "published": b"plan\none\ntwo\n"}
    first = {name: text.encode() for name, text in FIRST.items()}
    assert files_in(place) == {**first, **made}
    assert files_in(herd.shop) == first
    assert sorted(file["path"] for file in changes["files"]) == sorted(made)

    parts = ("PLAN IT", "FIX NUMBER 1", "fixed one", "REVIEW NUMBER 1", "FIX NUMBER 2")
    assert said(api.asked_for("FIX NUMBER 2")[0], *parts) == [parts[1], parts[2], parts[4]]
    (review,) = api.asked_for("REVIEW NUMBER 2")
    assert said(review, *parts) == ["REVIEW NUMBER 1"]
    assert [copies(review, '"required": ["ok"]'), copies(review, '{"ok": false}')] == [2, 1]
    transcripts = [*(stage.claude_home / "projects").rglob("*.jsonl")]
    assert len(transcripts) == 3, "one for the plan, one for all fixes, one for all reviews"
    assert not any(herd.by_hand(job) for job in jobs)


SHARED = """\
  - name: clerk
workflows:
  shared:
    working_directory: {root: shop, mode: worktree}
    phases:
      - {name: plan, agent: clerk, prompt: PLAN IT}
      - name: fresh
        agent: clerk
        prompt: "FRESH NUMBER ${loop.iteration}"
        loop: {max_iterations: 2, until: loop.iteration == 2, fresh_context: true}
      - {name: build, agent: clerk, prompt: BUILD IT, session: plan}
      - {name: last, agent: clerk, prompt: LAST OF ALL, session: build}
"""


@pytest.mark.either_runtime
def test_phase_continues_the_session_that_it_names_and_fresh_iterations_continue_none(
    stage: ClaudeStage,
) -> None:
    scripts: dict[str, tuple[Answer, ...]] = {
        "PLAN IT": doing("echo plan > plan", "planned"),
        "FRESH NUMBER 1": (Say(text="first try"),),
        "FRESH NUMBER 2": (Say(text="second try"),),
        "BUILD IT": (Say(text="it stands"),),
        "LAST OF ALL": (Say(text="the end"),),
    }
    with PromptedModel(scripts) as api:
        herd = WorkflowShop(stage, api, SHARED)
        run = herd.run_workflow("shared")

    assert run["status"] == "succeeded", statuses_of(run)
    parts = (
        "PLAN IT",
        "planned",
        "first try",
        "second try",
        "BUILD IT",
        "it stands",
        "LAST OF ALL",
    )
    heard = {mark: said(api.asked_for(mark)[-1], *parts) for mark in scripts}
    assert heard["FRESH NUMBER 1"] == heard["FRESH NUMBER 2"] == []
    assert heard["BUILD IT"] == ["PLAN IT", "planned", "BUILD IT"]
    assert heard["LAST OF ALL"] == ["PLAN IT", "planned", "BUILD IT", "it stands", "LAST OF ALL"]
    assert len([*(stage.claude_home / "projects").rglob("*.jsonl")]) == 3
