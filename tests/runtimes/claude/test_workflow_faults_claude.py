"""Workflows on the real `claude` that are killed, wait for people, meet limits, and are retried and forked."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from components import Components
from nightherd.testing.messages_script import Answer, Say
from runtimes.claude.approval_places import Victim
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage, make_stage
from runtimes.claude.test_claude_workspace_kills import kill
from runtimes.claude.test_claude_workspaces import bash, said, write
from runtimes.claude.test_workflows_claude import VERDICT, doing
from runtimes.claude.workflow_shop import PromptedModel, WorkflowShop, nodes_of, statuses_of
from runtimes.claude.workspace_shop import files_in
from runtimes.stage import until

CHAIN = """\
  - name: clerk
workflows:
  chain:
    working_directory: {root: shop, mode: worktree}
    phases:
      - {name: plan, agent: clerk, prompt: PLAN IT}
      - {name: mark, bash: "echo marked >> marks"}
      - {name: build, agent: clerk, prompt: BUILD IT, session: plan}
      - {name: check, bash: "cat plan built"}
"""
KILLS = [(Victim.CLAUDE, "cli"), (Victim.WORKER, "sdk"), (Victim.BOTH, "cli")]


@pytest.mark.parametrize(("victim", "runtime"), KILLS)
@pytest.mark.timeout(240)
def test_run_goes_on_after_a_kill_and_no_completed_phase_runs_again(
    tmp_path: Path, components: Components, slot: None, victim: Victim, runtime: str
) -> None:
    stage = make_stage(tmp_path, components.claude(), runtime)
    scripts: dict[str, tuple[Answer, ...]] = {
        "PLAN IT": doing("echo plan >> plan", "planned"),
        "BUILD IT": (
            Say(text="I begin", calls=(bash("echo built >> built"),)),
            Say(text="never heard", hold=threading.Event()),
            Say(text="it stands"),
        ),
    }
    with PromptedModel(scripts) as api:
        herd = WorkflowShop(stage, api, CHAIN)
        with herd.started("workflow", "run", "chain") as worker:
            assert api.wait_until_asked(4, PATIENCE_S)
            kill(victim, worker, stage)
            if victim is Victim.CLAUDE:
                worker.wait()
        anyio.run(until, lambda: stage.processes() == {})
        herd.work()
        run = herd.run_shown()

    nodes = nodes_of(run)
    assert run["status"] == "succeeded", statuses_of(run)
    place = herd.directory(nodes["check"]["job_id"])
    files = files_in(place)
    assert [files[name] for name in ("plan", "marks", "built")] == [
        *(b"plan\n", b"marked\n", b"built\n")
    ]
    assert len(herd.statuses()) == 4
    epochs = {
        path: {line["epoch"] for line in herd.journal_of(nodes[path]["job_id"])} - {0}
        for path in ("plan", "mark", "build")
    }
    again = {1} if victim is Victim.CLAUDE else {1, 2}
    assert epochs == {"plan": {1}, "mark": {1}, "build": again}
    heard = said(api.asked[-1], "PLAN IT", "planned", "BUILD IT", "never heard")
    assert heard == ["PLAN IT", "planned", "BUILD IT"]
    assert len([*(stage.claude_home / "projects").rglob("*.jsonl")]) == 1
    assert stage.processes() == {}


ASKING = """\
  - name: clerk
    approvals: [{tool: Write}]
workflows:
  both:
    working_directory: {root: shop, mode: worktree}
    phases:
      - {name: build, agent: clerk, prompt: BUILD IT, depends_on: []}
      - {name: ok, gate: {summary: Publish?}, depends_on: []}
      - {name: publish, bash: "cat page", depends_on: [build, ok]}
"""


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_call_inside_a_phase_and_a_gate_wait_for_people_at_the_same_time(
    stage: ClaudeStage,
) -> None:
    scripts: dict[str, tuple[Answer, ...]] = {
        "BUILD IT": (Say(text="I ask", calls=(write("page", "hello\n"),)), Say(text="it stands")),
    }
    with PromptedModel(scripts) as api:
        herd = WorkflowShop(stage, api, ASKING)
        waiting = herd.run_workflow("both")
        asked = herd.data("inbox", "list")
        gate = nodes_of(waiting)["ok"]["inbox_item_id"]
        (call,) = [item["id"] for item in asked if item["id"] != gate]
        herd.approve(gate)
        between = herd.run_shown()
        herd.approve(call)
        herd.work()
        run = herd.run_shown()

    assert (waiting["status"], between["status"], run["status"]) == (
        *("paused", "paused", "succeeded"),
    )
    assert len(waiting["waits_for"]) == 2
    assert statuses_of(between) == {"build": "paused", "ok": "succeeded", "publish": "pending"}
    shown = herd.nightherd("runs", "show", "@last", "--output", "publish").stdout
    assert shown == "hello\n"


LIMITED = """\
  - name: clerk
workflows:
  limited:
    working_directory: {root: shop, mode: worktree}
    limits: {turns: 3}
    phases:
      - {name: plan, agent: clerk, prompt: PLAN IT}
      - {name: build, agent: clerk, prompt: BUILD IT, session: plan}
      - {name: check, bash: "cat plan built"}
"""


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_limit_of_a_run_suspends_the_phase_that_meets_it_until_it_is_raised(
    stage: ClaudeStage,
) -> None:
    scripts = {
        "PLAN IT": doing("echo plan > plan", "planned"),
        "BUILD IT": doing("echo built >> built", "it stands"),
    }
    with PromptedModel(scripts) as api:
        herd = WorkflowShop(stage, api, LIMITED)
        waiting = herd.run_workflow("limited")
        raised = herd.nightherd("runs", "raise", "@last", "turns=10")
        herd.work()
        run = herd.run_shown()

    assert (waiting["status"], run["status"]) == ("paused", "succeeded"), raised
    assert statuses_of(waiting) == {"plan": "succeeded", "build": "paused", "check": "pending"}
    place = herd.directory(nodes_of(run)["check"]["job_id"])
    assert files_in(place)["built"] == b"built\n"
    assert len(herd.statuses()) == 3


KEPT = """\
  - name: clerk
workflows:
  kept:
    inputs: {way: {default: first}}
    working_directory: {root: shop, mode: worktree}
    phases:
      - {name: plan, agent: clerk, prompt: PLAN IT}
      - {name: build, agent: clerk, prompt: "BUILD THE ${inputs.way} WAY", session: plan}
      - {name: check, bash: "cat plan built; test ! -e broken", env: {SAID: "${phases.build.output}"}}
"""


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_retried_and_forked_runs_continue_conversation_and_files_as_they_were(
    stage: ClaudeStage,
) -> None:
    scripts: dict[str, tuple[Answer, ...]] = {
        "PLAN IT": doing("echo plan >> plan", "planned"),
        "BUILD THE first WAY": doing("echo one >> built; touch broken", "first done"),
        "BUILD THE other WAY": doing("echo two >> built", "other done"),
    }
    with PromptedModel(scripts) as api:
        herd = WorkflowShop(stage, api, KEPT)
        failed = herd.run_workflow("kept")
        herd.nightherd("runs", "retry", failed["id"])
        herd.work()
        retried = herd.run_shown()
        herd.nightherd("runs", "fork", failed["id"], "--at", "build", "--input", "way=other")
        herd.work()
        forked = herd.run_shown()

    assert [run["status"] for run in (failed, retried, forked)] == [
        *("failed", "failed", "succeeded")
    ]
    assert len({run["id"] for run in (failed, retried, forked)}) == 3
    marks = ("PLAN IT", "planned", "BUILD THE first WAY", "first done", "BUILD THE other WAY")
    heard = said(api.asked[-1], *marks)
    assert heard == ["PLAN IT", "planned", "BUILD THE other WAY"]
    places = [herd.directory(nodes_of(run)["check"]["job_id"]) for run in (failed, retried, forked)]
    files = [files_in(place) for place in places]
    assert len({*places}) == 3
    assert [one["built"] for one in files] == [b"one\n", b"one\n", b"two\n"]
    assert ["broken" in one for one in files] == [True, True, False]
    assert [one["plan"] for one in files] == [b"plan\n"] * 3


STRICT = f"""\
  - name: clerk
workflows:
  strict:
    working_directory: {{root: shop, mode: worktree}}
    phases:
      - {{name: plan, agent: clerk, prompt: PLAN IT}}
      - {{name: build, agent: clerk, prompt: BUILD IT, session: plan, output: {VERDICT}}}
"""


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_retried_phase_does_not_hear_what_its_failed_attempt_said(stage: ClaudeStage) -> None:
    scripts: dict[str, tuple[Answer, ...]] = {
        "PLAN IT": doing("echo plan >> plan", "planned"),
        "BUILD IT": (
            *doing("echo one >> built", "no JSON at all"),
            *doing("echo two >> built", '{"ok": true}'),
        ),
    }
    with PromptedModel(scripts) as api:
        herd = WorkflowShop(stage, api, STRICT)
        failed = herd.run_workflow("strict")
        retry = herd.nightherd("runs", "retry", failed["id"])
        herd.work()
        run = herd.run_shown()

    assert (failed["status"], run["status"]) == ("failed", "succeeded"), retry.stderr
    marks = ("PLAN IT", "planned", "BUILD IT", "no JSON at all")
    assert said(api.asked[-1], *marks) == ["PLAN IT", "planned", "BUILD IT"]
    files = files_in(herd.directory(nodes_of(run)["build"]["job_id"]))
    assert (files["plan"], files["built"]) == (b"plan\n", b"two\n")
