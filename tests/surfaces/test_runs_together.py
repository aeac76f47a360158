"""Runs with other features at the same time: limits above sub-workflows, retries, sessions, secrets, moved fleets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from components import Components
from surfaces.drivers import Cli
from workspace_fleet import make_project

SECRET = "a-secret-nobody-may-read"
FLEET = """\
webhooks: {secret_env: HOOK_SECRET, endpoints: {started: {signature: standard, agent: writer}}}
defaults: {runtime: scripted, permission_mode: bypassPermissions, default_prompt: go}
agents:
  - name: writer
    allowed_tools: [Bash]
    script:
      - repeat: 9
        steps: [{say: "wrote ${prompt}"}, {usage: {output_tokens: 2, cost_usd: 0.01}}, {end: true}]
  - name: sleeper
    script:
      - say: begins
      - sleep: 200ms
      - say: goes on
      - sleep: 200ms
      - say: wakes
  - name: bounded
    limits: {duration: 100ms}
    script: [{say: begins}, {sleep: 200ms}, {say: wakes}]
  - name: failing
    script: [{fail: {code: bad_luck, message: No luck.}}]
workflows:
  three:
    phases:
      - {name: one, agent: writer, prompt: one}
      - {name: two, agent: writer, prompt: two}
      - {name: three, agent: writer, prompt: three}
  above:
    limits: {spend: 0.015}
    phases:
      - {name: below, workflow: three}
      - {name: last, bash: echo last}
  sleeps:
    phases: [{name: sleep, agent: sleeper, prompt: go}]
  hurried:
    limits: {duration: 100ms}
    phases:
      - {name: sleep, agent: sleeper, prompt: go}
      - {name: last, bash: echo last}
  hurried_below:
    limits: {duration: 100ms}
    phases:
      - {name: below, workflow: sleeps}
      - {name: last, bash: echo last}
  strict:
    limits: {duration: 100ms, on_reached: fail}
    phases:
      - {name: sleep, agent: sleeper, prompt: go, on_failure: continue}
      - {name: below, workflow: sleeps, on_failure: continue}
      - {name: last, wait: {for: 1ms}}
  patient:
    limits: {duration: 1h}
    phases: [{name: sleep, agent: bounded, prompt: go}]
  asks:
    phases: [{name: ask, gate: {summary: Go on?}}]
  asks_below:
    phases: [{name: below, workflow: asks}]
  fails:
    phases: [{name: work, agent: failing, prompt: go}]
  waits:
    phases: [{name: deployed, wait: {event: deployed}}]
  shared:
    phases:
      - {name: plan, agent: writer, prompt: plan}
      - {name: ok, gate: {summary: Go on?}}
      - {name: build, agent: writer, prompt: build, session: plan}
  files:
    working_directory: {root: ., mode: worktree}
    phases:
      - {name: first, bash: "echo first > log"}
      - {name: ok, gate: {summary: Go on?}}
      - {name: last, bash: "echo last >> log; cat log"}
  home:
    phases:
      - {name: ok, gate: {summary: Go on?}}
      - {name: last, bash: "cat here"}
"""


@pytest.fixture
def herd(fleet: Path, components: Components, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project under git with a fleet; the test stands in it."""
    components.program("git")
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    make_project(fleet)
    (fleet / "nightherd.yaml").write_text(FLEET)
    return fleet


def run(cli: Cli, workflow: str) -> dict[str, Any]:
    """A run of the workflow, once it has ended or waits."""
    cli("workflow", "run", workflow, "--wait")
    return shown(cli)


def shown(cli: Cli, run_id: str = "@last") -> dict[str, Any]:
    found: dict[str, Any] = cli("runs", "show", run_id, "--json").data
    return found


def work(cli: Cli) -> None:
    cli("worker", "--until-idle")


def answer(cli: Cli, verdict: str = "approve") -> None:
    done = cli("inbox", verdict, "@last")
    assert done.code == 0, done.err


def test_raised_limit_of_a_run_continues_the_jobs_of_its_sub_workflows(
    cli: Cli, herd: Path
) -> None:
    waiting = run(cli, "above")
    assert waiting["status"] == "paused"

    cli("runs", "raise", waiting["id"], "spend=1")
    work(cli)

    assert shown(cli, waiting["id"])["status"] == "succeeded"


@pytest.mark.parametrize("workflow", ["hurried", "hurried_below"])
def test_duration_of_a_run_bounds_all_its_jobs_until_it_is_raised(
    cli: Cli, herd: Path, workflow: str
) -> None:
    waiting = run(cli, workflow)
    assert waiting["status"] == "paused", waiting["nodes"]
    (below,) = waiting["child_runs"] or [waiting["id"]]
    (wait,) = shown(cli, below)["waits_for"]
    raising = re.fullmatch(
        f"nightherd runs raise {waiting['id']} duration=([0-9]+)ms", wait["next"]
    )
    # Twice the limit, or more where a busy machine passed it by far.
    assert raising is not None, wait["next"]
    assert int(raising[1]) >= 200
    assert f"limit of 100ms of {waiting['id']}" in wait["what"]

    cli("runs", "raise", waiting["id"], "duration=1m")
    work(cli)

    ended = shown(cli, waiting["id"])
    assert ended["status"] == "succeeded"
    assert ended["worked_seconds"] >= 0.4
    (limit,) = ended["limits"]
    assert limit["used"] >= 400


def test_phases_fail_at_the_duration_of_a_run_that_says_so(cli: Cli, herd: Path) -> None:
    ended = run(cli, "strict")

    assert ended["status"] == "succeeded", ended["error"]
    assert [node["status"] for node in ended["nodes"]] == ["failed", "failed", "succeeded"]
    assert "duration" in ended["nodes"][0]["error"]


def test_duration_of_an_agent_counts_in_a_run_that_has_more_time(cli: Cli, herd: Path) -> None:
    waiting = run(cli, "patient")
    assert waiting["status"] == "paused"
    (wait,) = waiting["waits_for"]
    assert wait["next"].startswith("nightherd inbox raise ask-")

    cli("runs", "raise", waiting["id"], "duration=2h")
    assert shown(cli, waiting["id"])["status"] == "paused"

    (job,) = cli("jobs", "list", "--json").data
    assert cli("jobs", "resume", job["id"], "--raise", "duration=1m", "--detach").code == 0
    work(cli)
    assert shown(cli, waiting["id"])["status"] == "succeeded"


def test_time_and_cost_of_a_run_are_those_of_all_its_jobs(cli: Cli, herd: Path) -> None:
    cli("workflow", "run", "sleeps", "--wait")
    ended = run(cli, "above")
    cli("runs", "raise", ended["id"], "spend=1")
    work(cli)

    listed = {one["workflow"]: one for one in cli("runs", "list", "--json").data}

    assert listed["sleeps"]["worked_seconds"] >= 0.4
    assert listed["three"]["cost_usd"] == pytest.approx(0.03)
    assert listed["above"]["cost_usd"] == pytest.approx(0.03)


def test_retried_run_leaves_no_question_about_its_failure(cli: Cli, herd: Path) -> None:
    failed = run(cli, "fails")
    (item,) = cli("inbox", "list", "--json").data
    assert item["kind"] == "failure"

    cli("runs", "retry", failed["id"])

    assert cli("inbox", "list", "--json").data == []
    assert cli("inbox", "show", item["id"], "--json").data["status"] == "superseded"


def test_person_who_rejects_in_a_sub_workflow_is_not_asked_about_the_failure(
    cli: Cli, herd: Path
) -> None:
    run(cli, "asks_below")

    cli("inbox", "reject", "@last", "-m", "not today")

    assert shown(cli)["status"] == "failed"
    assert cli("inbox", "list", "--json").data == []


def test_name_and_key_of_an_event_hold_no_secret(cli: Cli, herd: Path) -> None:
    waiting = run(cli, "waits")
    words = ("--payload", f'"{SECRET}"', "--key", SECRET)

    unknown = cli("runs", "signal", waiting["id"], SECRET, *words)
    assert (unknown.code, SECRET in unknown.err) == (2, False)
    assert cli("runs", "signal", waiting["id"], "deployed", *words).code == 0

    files = [path for path in (herd / ".nightherd").rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert shown(cli, waiting["id"])["status"] == "succeeded"


def test_phase_continues_the_fork_that_a_person_made_the_current_session(
    cli: Cli, herd: Path
) -> None:
    waiting = run(cli, "shared")
    (plan,) = [node for node in waiting["nodes"] if node["path"] == "plan"]
    session = cli("jobs", "show", plan["job_id"], "--json").data["session_id"]
    fork = cli("session", "fork", session, "--at-message", "1", "--json").data["id"]
    assert cli("session", "use", fork).code == 0

    answer(cli)
    work(cli)

    (build,) = [node for node in shown(cli)["nodes"] if node["path"] == "build"]
    assert cli("jobs", "show", build["job_id"], "--json").data["session_id"] == fork


@pytest.mark.parametrize(("workflow", "said"), [("files", "first\nlast"), ("home", "here")])
def test_run_continues_after_its_fleet_was_moved(
    cli: Cli, herd: Path, monkeypatch: pytest.MonkeyPatch, workflow: str, said: str
) -> None:
    (herd / "here").write_text("here\n")
    waiting = run(cli, workflow)
    moved = herd.rename(herd.with_name(f"{herd.name}-moved"))
    monkeypatch.chdir(moved)

    answer(cli)
    work(cli)

    ended = shown(cli, waiting["id"])
    assert (ended["status"], ended["error"]) == ("succeeded", None)
    assert cli("runs", "show", waiting["id"], "--output", "last").out.strip() == said
    assert not herd.exists()
