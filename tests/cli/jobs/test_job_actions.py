"""`jobs cancel` and `jobs retry`: what they do, and what they refuse without changing anything."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.jobs.test_run_processes import is_alive, wait_for
from nightherd.model.ids import JobId
from nightherd.state.reader import SqliteReader
from surfaces.drivers import Cli, Shell, submit_pending

DESK = """\
agents:
  - name: desk
    runtime: scripted
    session: {mode: per_channel}
    schedules:
      nightly: {type: interval, interval: 1d, prompt: good night}
    script:
      - say: "At ${prompt}"
"""


def overrides_of(fleet: Path, job_id: str) -> Mapping[str, Any]:
    with closing(SqliteReader(fleet / ".nightherd")) as reader:
        texts = reader.find_texts(JobId(job_id))
    assert texts is not None
    return texts.overrides.document()


def channel_of(fleet: Path, job_id: str) -> str | None:
    with closing(SqliteReader(fleet / ".nightherd")) as reader:
        job = reader.find_job(JobId(job_id))
        assert job is not None
        assert job.session_id is not None
        session = reader.find_session(job.session_id)
    assert session is not None
    return session.channel_id


def test_waiting_job_is_cancelled_at_once(cli: Cli, fleet: Path) -> None:
    job_id = submit_pending(fleet)

    asked = cli("jobs", "cancel", job_id)

    assert (asked.code, asked.out, asked.err) == (0, f"cancelled {job_id}\n", "")
    job = cli("jobs", "show", job_id, "--json").data
    assert (job["status"], job["exit_reason"], job["executions"]) == ("cancelled", "cancelled", [])
    assert cli("worker", "--until-idle").out == ""


def test_running_job_is_stopped_by_the_process_that_runs_it(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    file = fleet / "nightherd.yaml"
    file.write_text(f"cancel_grace: 1s\n{file.read_text()}")
    process = shell.start("run", "stubborn", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)

    asked = cli("jobs", "cancel", "@last", "--json")
    twice = cli("jobs", "cancel", "@last", "--json")
    process.communicate()

    assert (asked.code, asked.document["schema"]) == (0, "nightherd/v1/job")
    assert asked.data["status"] in ("running", "cancelled")
    assert twice.code in (0, 5)  # 5 when it has ended meanwhile
    assert process.returncode == 130
    assert cli("jobs", "show", "@last", "--json").data["status"] == "cancelled"
    assert not is_alive(int((fleet / "started").read_text()))


def test_job_of_a_process_that_is_gone_is_cancelled_at_once(
    shell: Shell, cli: Cli, fleet: Path
) -> None:
    process = shell.start("run", "stubborn", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(fleet / "started", process)
    process.kill()
    process.communicate()

    asked = cli("jobs", "cancel", "@last", "--json")

    assert (asked.code, asked.data["status"]) == (0, "cancelled")
    assert not is_alive(int((fleet / "started").read_text()))


def test_job_that_has_ended_stays_as_it_is(cli: Cli, fleet: Path) -> None:
    assert cli("run", "echo", "-p", "hi").code == 0
    before = cli("jobs", "show", "@last", "--json").data

    refused = cli("jobs", "cancel", "@last")

    assert refused.code == 5
    assert "is completed" in refused.err
    assert cli("jobs", "show", "@last", "--json").data == before


def test_job_is_cancelled_once(cli: Cli, fleet: Path) -> None:
    job_id = submit_pending(fleet)

    assert cli("jobs", "cancel", job_id).code == 0
    assert cli("jobs", "cancel", job_id).code == 5


@pytest.mark.parametrize("action", ["cancel", "retry"])
@pytest.mark.parametrize("name", ["job-2026-01-01-zzzzzz", "zzz", "@last", "@last-failed"])
def test_job_that_is_not_there_is_not_found(action: str, name: str, cli: Cli, fleet: Path) -> None:
    assert cli("jobs", action, name).code == 3
    assert cli("jobs", "--json").data == []


def test_retry_is_a_new_job_with_the_same_work(cli: Cli, fleet: Path) -> None:
    assert cli("run", "echo", "--input", "topic=night").code == 0
    old = cli("jobs", "show", "@last", "--json").data

    again = cli("jobs", "retry", "@last")
    new = cli("jobs", "show", again.out.strip(), "--json").data

    assert (again.code, again.err) == (
        0,
        "no worker is running; run it now: nightherd worker --until-idle\n",
    )
    assert new["id"] != old["id"]
    assert (new["status"], new["prompt"], new["inputs"]) == (
        "pending",
        "topic night",
        {"topic": "night"},
    )
    assert cli("worker", "--until-idle").code == 0
    assert cli("jobs", "show", new["id"], "--json").data["summary"] == "topic night"
    assert cli("jobs", "show", old["id"], "--json").data == old


def test_retry_has_what_the_first_try_was_given(cli: Cli, fleet: Path) -> None:
    given = ("--limit", "spend=0.25", "--max-turns", "3", "--job-timeout", "1h", "--model", "other")
    assert cli("run", "echo", "--input", "topic=night", *given).code == 0
    kept = overrides_of(fleet, cli("jobs", "show", "@last", "--json").data["id"])
    assert set(kept) == {"limits", "max_turns", "job_timeout", "model"}

    again = cli("jobs", "retry", "@last").out.strip()

    assert overrides_of(fleet, again) == kept


def test_retry_is_in_its_channel_and_of_its_schedule(cli: Cli, fleet: Path) -> None:
    (fleet / "nightherd.yaml").write_text(DESK)
    assert cli("run", "desk", "-p", "hi", "--channel", "C1").code == 0
    assert cli("schedule", "run", "desk/nightly").code == 0
    assert cli("worker", "--until-idle").code == 0
    of_channel, of_schedule = sorted(cli("jobs", "--json").data, key=lambda job: job["created_at"])

    at_desk = cli("jobs", "retry", of_channel["id"]).out.strip()
    nightly = cli("jobs", "retry", of_schedule["id"]).out.strip()

    assert channel_of(fleet, at_desk) == "C1"
    assert channel_of(fleet, nightly) == "schedule/nightly"
    shown = cli("jobs", "show", nightly, "--json").data
    assert (shown["schedule"], shown["trigger_type"]) == ("nightly", "manual")


def test_job_that_has_not_ended_is_not_tried_again(cli: Cli, fleet: Path) -> None:
    job_id = submit_pending(fleet)

    refused = cli("jobs", "retry", job_id)

    assert refused.code == 5
    assert "is pending" in refused.err
    assert len(cli("jobs", "--json").data) == 1
