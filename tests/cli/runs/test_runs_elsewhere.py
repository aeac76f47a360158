"""Runs in other commands: jobs name their run and phase, `status` counts runs, the inbox retries failed ones."""

from __future__ import annotations

from pathlib import Path

from cli.runs.flows import by_path
from surfaces.drivers import Cli


def test_job_names_its_run_and_phase(cli: Cli, flows: Path) -> None:
    run = cli("workflow", "run", "simple", "--json").data
    job = by_path(run)["plan"]["job_id"]

    data = cli("jobs", "show", job, "--json").data
    card = cli("jobs", "show", job).out

    assert (data["workflow_run_id"], data["phase"]) == (run["id"], "plan")
    assert f"run       {run['id']}, phase plan\n" in card
    assert f"{run['id']}/plan: wrote plan tests" in cli("jobs", "list").out
    plain = cli("run", "writer", "--json").data["job_id"]
    data = cli("jobs", "show", plain, "--json").data
    assert (data["workflow_run_id"], data["phase"]) == (None, None)


def test_retry_of_a_phase_is_refused_and_the_run_named(cli: Cli, flows: Path) -> None:
    run = cli("workflow", "run", "broken", "--json").data
    nodes = by_path(run)
    command = by_path(cli("workflow", "run", "simple", "--json").data)["check"]

    refused = cli("jobs", "retry", nodes["work"]["job_id"])

    assert refused.code == 5
    assert f"nightherd runs retry {run['id']}" in refused.err
    assert cli("jobs", "retry", command["job_id"]).code == 5
    assert "nightherd jobs retry" not in cli("jobs", "show", nodes["work"]["job_id"]).out


def test_status_counts_open_runs(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "simple", "--wait")
    assert "runs:" not in cli("status").out
    cli("workflow", "run", "gated", "--wait")
    cli("workflow", "run", "waiting", "--wait")
    cli("workflow", "run", "simple", "--detach")

    assert "runs: 1 running, 2 paused (gated, simple, waiting)" in cli("status").out
    assert cli("status", "--json").data["runs"] == {
        "queued": 0,
        "running": 1,
        "paused": 2,
        "workflows": {"gated": {"paused": 1}, "waiting": {"paused": 1}, "simple": {"running": 1}},
    }


def test_failed_run_is_retried_from_the_inbox(cli: Cli, flows: Path) -> None:
    failed = cli("workflow", "run", "broken", "--json").data["id"]
    item = cli("inbox", "show", failed, "--json").data

    answered = cli("inbox", "retry", failed)

    assert (item["kind"], item["workflow"]) == ("failure", "broken")
    assert answered.code == 0
    newest = cli("runs", "list", "--json").data[0]
    assert newest["retried_from"] == failed
    assert f"run {newest['id']} is running" in answered.err
    assert cli("inbox", "retry", item["id"]).code == 5
    assert len(cli("runs", "list", "--json").data) == 2


def test_run_that_is_retried_is_no_open_question_any_more(cli: Cli, flows: Path) -> None:
    failed = cli("workflow", "run", "broken", "--json").data["id"]
    (item,) = cli("inbox", "list", "--json").data

    cli("runs", "retry", failed)

    assert cli("inbox", "list", "--json").data == []
    assert cli("inbox", "show", item["id"], "--json").data["status"] == "superseded"


def test_dismissed_failure_leaves_the_run_as_it_is(cli: Cli, flows: Path) -> None:
    failed = cli("workflow", "run", "broken", "--json").data["id"]

    assert cli("inbox", "dismiss", failed).code == 0
    assert [run["id"] for run in cli("runs", "list", "--json").data] == [failed]
    assert cli("inbox", "list", "--json").data == []
