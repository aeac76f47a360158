"""`jobs outline`: for people and for programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cli.jobs.test_run_processes import wait_for
from surfaces.drivers import FLEET, Cli, Shell


def test_an_outline_shows_executions_gaps_and_errors(cli: Cli, fleet: Path) -> None:
    cli("run", "failing")

    shown = cli("jobs", "outline", "@last")

    assert shown.code == 0
    assert "(failed)" in shown.out
    assert "execution 1: failed" in shown.out
    assert "waited for a worker" in shown.out
    assert "No luck today." in shown.out


def test_an_outline_for_programs_is_the_document_of_the_api(cli: Cli, fleet: Path) -> None:
    job_id = cli("run", "hello", "-p", "the first", "--json").data["job_id"]

    result = cli("jobs", "outline", job_id, "--json")

    assert result.document["schema"] == "nightherd/v1/job_outline"
    assert result.data["job_id"] == job_id
    assert result.data["counts"]["prompts"] == 1


def test_the_time_between_a_killed_worker_and_the_next_one_is_a_gap(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    process = shell.start("run", "slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)
    process.kill()
    process.communicate()
    (fleet / "nightherd.yaml").write_text(FLEET.replace("touch started; sleep 60", "true"))
    cli("worker", "--until-idle")

    found = cli("jobs", "outline", "@last", "--json").data

    assert [one["outcome"] for one in found["executions"]] == ["lost", "completed"]
    queued, crash = found["gaps"]
    assert (queued["reason"], crash["reason"]) == ("queued", "crash")
    assert crash["no_worker_until"] is not None
    assert crash["start"] < crash["no_worker_until"] <= crash["end"]
