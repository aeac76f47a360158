"""An agent whose protection cannot be given does not run, and every surface says why and where."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from engine.bench import due_slot
from nightherd import Order, open_fleet
from nightherd.engine.operations.schedules import slot_change
from nightherd.errors import AgentBlockedError
from nightherd.model.change import FireSlot
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker
from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: caged
    runtime: scripted
    default_prompt: go
    allowed_tools: [Bash]
    sandbox: {
      enabled: true}
    script: [{tool: Bash, input: {command: touch escaped}}]
    schedules: {often: {interval: 1s}}
    chat: {slack: {channels: []}}
  - name: free
    runtime: scripted
    default_prompt: go
    sandbox: {enabled: false}
    script:
      - tool: Spawn
        input: {agent: caged, prompt: go}
    hooks: {after_run: [{type: slack, channel_id: C1}]}
"""
UNPRICED = """\
agents:
  - name: own
    runtime: native
    model: "anthropic:my-own-model-7b"
    limits: {spend: 0.50}
"""
WHERE = "nightherd.yaml:7:7"
WHY = "'sandbox.enabled' asks for a sandbox, which only Claude has"


@pytest.fixture
def caged(nowhere: Path) -> Path:
    (nowhere / "nightherd.yaml").write_text(FLEET)
    return nowhere


def test_run_of_an_unpriced_model_is_a_located_error(cli: Cli, nowhere: Path) -> None:
    (nowhere / "nightherd.yaml").write_text(UNPRICED)

    ran = cli("run", "own", "-p", "go")
    detached = cli("run", "own", "-p", "go", "--detach")

    assert (ran.code, detached.code) == (78, 78)
    assert "nightherd.yaml:4:12: the price of 'anthropic:my-own-model-7b'" in ran.err
    assert cli("jobs", "--json").data == []


@pytest.mark.parametrize("options", [[], ["-q"], ["--detach"], ["--json"]])
def test_run_of_an_agent_that_asks_for_a_sandbox_is_a_located_error(
    options: list[str], cli: Cli, caged: Path
) -> None:
    ran = cli("run", "caged", *options)

    assert ran.code == 78
    said = ran.out if "--json" in options else ran.err
    assert WHY in said
    if "--json" in options:
        (problem,) = ran.data["problems"]
        assert (problem["line"], problem["column"]) == (7, 7)
    else:
        assert WHERE in said
    assert not (caged / "escaped").exists()
    assert not (caged / ".nightherd").exists()


def test_a_worker_runs_the_others_and_says_who_does_not_run(cli: Cli, caged: Path) -> None:
    assert cli("run", "free", "--detach").code == 0

    worked = cli("worker", "--until-idle")

    assert worked.code == 0
    assert f"error: {WHERE}: {WHY}" in worked.err
    assert "agent caged does not run; the others do" in worked.err
    assert (
        "hooks.after_run[0] is told nothing: the variable SLACK_BOT_TOKEN is not set" in worked.err
    )
    assert "'sandbox' is not active yet: running agents with Claude" in worked.err
    (job,) = cli("jobs", "--json").data
    assert (job["agent"], job["status"]) == ("free", "completed")
    assert not (caged / "escaped").exists(), "nor does it run for another job"


def test_what_is_shown_of_it_is_an_error_with_its_reason(cli: Cli, caged: Path) -> None:
    assert cli("run", "free").code == 0

    status, listed = cli("status", "--json").data, cli("agent", "list", "--json").data
    shown = cli("agent", "show", "caged")

    for agents in (status["agents"], listed):
        rows = {row["name"]: row for row in agents}
        assert rows["caged"]["status"] == "error"
        assert WHY in rows["caged"]["error_message"]
        assert WHERE in rows["caged"]["error_message"]
        assert rows["free"]["status"] == "idle"
    assert WHY in shown.out
    assert WHY in cli("status").out.replace("\n", " ") or "does not run" in cli("status").out
    mirrored = (caged / ".nightherd" / "state.yaml").read_text()
    assert WHY in mirrored
    assert "status: error" in mirrored


def test_a_check_finds_it(cli: Cli, caged: Path) -> None:
    checked, document = cli("config", "check"), cli("config", "check", "--json")

    assert (checked.code, document.code) == (78, 78)
    assert f"{WHERE}: {WHY}" in checked.out
    assert "agent caged does not run; the others do" in checked.err
    assert document.data["ok"] is False
    assert document.data["problems"][0]["severity"] == "blocked"


def test_a_slot_of_it_is_skipped_and_says_why(caged: Path) -> None:
    fleet = load_fleet(caged, environ=os.environ, cwd=caged).fleet
    agent = fleet.agents["caged"]

    async def make() -> FireSlot:
        async with open_worker(caged / ".nightherd", fleet, os.environ) as context:
            return slot_change(due_slot(agent, agent.schedules["often"]), context)

    made = anyio.run(make)

    assert made.job is None
    assert WHY in (made.slot.reason or "")
    assert not made.is_error


def test_a_program_is_refused_too(caged: Path) -> None:
    async def run() -> None:
        async with open_fleet(caged) as fleet:
            await fleet.execute(Order(agent="caged", prompt="go"))

    with pytest.raises(AgentBlockedError, match="asks for a sandbox"):
        anyio.run(run)


def test_a_job_from_before_waits_and_is_not_resumed(cli: Cli, caged: Path) -> None:
    text = FLEET.replace("enabled: true", "enabled: false")
    (caged / "nightherd.yaml").write_text(text)
    assert cli("run", "caged", "--detach").code == 0
    (caged / "nightherd.yaml").write_text(FLEET)

    worked, resumed = cli("worker", "--until-idle"), cli("jobs", "resume", "@last")

    assert worked.code == 0
    assert resumed.code == 78
    (job,) = cli("jobs", "--json").data
    assert job["status"] == "pending"
    assert not (caged / "escaped").exists()


@pytest.mark.parametrize(
    ("text", "blocked"),
    [
        ("runtime: native\n    model: x:y\n    sandbox: {enabled: true}", True),
        ("runtime: scripted\n    script: [{say: hi}]\n    sandbox: {enabled: true}", True),
        ("runtime: native\n    model: x:y\n    sandbox: {enabled: false}", False),
        ("runtime: sdk\n    sandbox: {enabled: true}", False),
        ("docker: {enabled: true, network: egress}", False),
        ("docker: {network: egress}", False),
        ("docker: {enabled: false}", False),
    ],
)
def test_which_settings_protect(text: str, blocked: bool, cli: Cli, nowhere: Path) -> None:
    (nowhere / "nightherd.yaml").write_text(f"agents:\n  - name: a\n    {text}\n")

    assert cli("config", "check").code == (78 if blocked else 0)


def test_what_the_whole_fleet_asks_for_is_for_every_agent_that_says_nothing_else(
    cli: Cli, nowhere: Path
) -> None:
    (nowhere / "nightherd.yaml").write_text(
        "defaults: {runtime: scripted, script: [{say: hi}], default_prompt: go, sandbox: {enabled: true}}\n"
        "agents: [{name: a}, {name: b, sandbox: {enabled: false}}]\n"
    )

    assert (cli("run", "a").code, cli("run", "b").code) == (78, 0)


def test_limits_of_an_inner_fleet_are_not_ignored(cli: Cli, nowhere: Path) -> None:
    inner = nowhere / "inner"
    inner.mkdir()
    (inner / "nightherd.yaml").write_text(
        "limits: {spend: 1}\nmax_concurrent: 2\n"
        "agents: [{name: a, runtime: scripted, script: [{say: hi}], default_prompt: go}]\n"
    )
    (nowhere / "nightherd.yaml").write_text(
        "fleets: [{path: inner}]\n"
        "agents: [{name: b, runtime: scripted, script: [{say: hi}], default_prompt: go}]\n"
    )

    refused, ran = cli("run", "inner.a"), cli("run", "b")

    assert (refused.code, ran.code) == (78, 0)
    assert "inner/nightherd.yaml:1:1: 'limits' is used in the outermost fleet file" in refused.err
    assert (
        "'max_concurrent' is used in the outermost fleet file alone" in cli("config", "check").err
    )
