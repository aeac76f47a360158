"""`nightherd schedule`: listing, looking ahead, overriding, running by hand, and saying why."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nightherd.host.machine import user_name
from nightherd.model.agents.agent import Agent
from nightherd.model.schedules.due import parse_rule
from nightherd.model.schedules.rule import Schedule
from nightherd.model.schedules.schedule import ScheduleState, ScheduleStatus
from nightherd.runtimes.scripted.capabilities import SCRIPTED
from nightherd.views.schedules.schedules import make_view
from nightherd.views.schedules.why import why_next
from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: shepherd
    runtime: scripted
    default_prompt: count the sheep
    schedules:
      nightly: {cron: "30 2 * * *", timezone: Europe/Zurich, prompt: "mend ${inputs.what}", inputs: {what: the fence}}
      hourly: {interval: 1h, jitter: 5m}
      off: {interval: 1m, enabled: false}
      hook: {type: webhook}
    script:
      - say: "${prompt}"
  - name: idle
    runtime: scripted
    script: [{say: nothing}]
"""
WORKFLOW = """\
workflows:
  report:
    on: {schedules: {weekly: {cron: "0 6 * * 1"}}}
    phases: [{name: write, agent: idle, prompt: go}]
"""


@pytest.fixture
def herd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with schedules; the test stands in it."""
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def row(cli: Cli, name: str) -> dict[str, Any]:
    rows = cli("schedule", "list", "--json").data
    (found,) = [one for one in rows if one["name"] == name]
    assert isinstance(found, dict)
    return found


def test_every_declared_schedule_is_listed_before_anything_ran(herd: Path, cli: Cli) -> None:
    listed = cli("schedule", "--json")
    shown = cli("schedule")

    assert listed.document["schema"] == "nightherd/v1/schedules"
    assert [one["id"] for one in listed.data] == [
        "shepherd/nightly",
        "shepherd/hourly",
        "shepherd/off",
        "shepherd/hook",
    ]
    assert row(cli, "nightly")["rule"] == "30 2 * * * (Europe/Zurich)"
    # Half past two in Zurich; on the day that skips it, right after the gap.
    nightly = row(cli, "nightly")["next_run_at"]
    assert nightly[10:] in {f"T{at}:00.000000Z" for at in ("00:30", "01:30", "01:00")}
    assert (row(cli, "off")["status"], row(cli, "off")["next_run_at"]) == ("disabled", None)
    assert (row(cli, "hook")["rule"], row(cli, "hook")["next_run_at"]) == (None, None)
    assert "shepherd/hourly" in shown.out
    assert "no daemon is running, so schedules do not fire" in shown.err
    assert not (herd / ".nightherd" / "nightherd.db").exists()


def test_what_is_due_is_told_in_order_and_only_so_far(herd: Path, cli: Cli) -> None:
    day = cli("schedule", "next", "--for", "24h", "--json").data
    few = cli("schedule", "next", "--for", "30d", "--limit", "3", "--json").data

    assert sorted(day, key=lambda one: one["runs_at"]) == day
    assert {one["schedule"] for one in day} == {"shepherd/nightly", "shepherd/hourly"}
    assert [one["schedule"] for one in day].count("shepherd/hourly") == 24
    assert len(few) == 3
    assert all(one["due_at"] <= one["runs_at"] for one in day)
    assert cli("schedule", "next", "--agent", "idle").err.startswith("nothing is due")


def test_an_override_says_who_set_it_and_is_taken_away_again(herd: Path, cli: Cli) -> None:
    changed = cli("schedule", "set", "shepherd/hourly", "0 4 * * *", "--json").data
    disabled = cli("schedule", "disable", "shepherd/hourly", "--json").data
    reset = cli("schedule", "reset", "shepherd/hourly", "--json").data

    assert (changed["rule"], changed["declared_rule"]) == ("0 4 * * * (UTC)", "every 1h")
    assert changed["override"]["updated_by"] == user_name()
    assert changed["next_run_at"][11:16] in ("04:00", "04:01", "04:02", "04:03", "04:04")
    assert (disabled["status"], disabled["next_run_at"]) == ("disabled", None)
    assert disabled["override"]["schedule"] == "0 4 * * *"
    assert (reset["status"], reset["rule"], reset["override"]) == ("idle", "every 1h", None)
    assert row(cli, "hourly") == reset


def test_enabling_wins_over_the_file(herd: Path, cli: Cli) -> None:
    enabled = cli("schedule", "enable", "shepherd/off", "--json").data
    why = cli("schedule", "why", "shepherd/off", "--json").data

    assert (enabled["status"], enabled["enabled"]) == ("idle", True)
    assert enabled["next_run_at"] is not None
    assert f"it was enabled by {user_name()} at" in why["next"][0]
    assert why["last_slot"] is None
    assert "no daemon is running, so schedules do not fire" in why["next"][-1]


def test_a_schedule_is_run_by_hand_with_its_own_prompt(herd: Path, cli: Cli) -> None:
    job = cli("schedule", "run", "shepherd/nightly", "--json").data
    running = row(cli, "nightly")
    worked = cli("worker", "--until-idle")
    shown = cli("jobs", "show", job["id"], "--json").data

    assert (job["schedule"], job["trigger_type"], job["status"]) == ("nightly", "manual", "pending")
    assert running["last_run_at"] is None
    assert worked.code == 0
    assert (shown["prompt"], shown["summary"]) == ("mend the fence", "mend the fence")
    assert cli("schedule", "history", "shepherd/nightly", "--json").data == []
    assert cli("schedule", "history", "shepherd/nightly").err == "it has not been due yet\n"


def test_a_schedule_of_a_workflow_is_refused_with_the_command_that_runs_it(
    herd: Path, cli: Cli
) -> None:
    (herd / "nightherd.yaml").write_text(FLEET + WORKFLOW)

    refused = cli("schedule", "run", "workflow:report/weekly")

    assert refused.code == 5
    assert "workflow:report/weekly starts a workflow, not a job" in refused.err
    assert "nightherd workflow run report" in refused.err


def test_a_schedule_on_record_follows_a_job_that_was_run_by_hand(herd: Path, cli: Cli) -> None:
    cli("schedule", "enable", "shepherd/nightly")
    cli("schedule", "run", "shepherd/nightly")
    running = row(cli, "nightly")
    cli("worker", "--until-idle")

    assert running["status"] == "running"
    assert row(cli, "nightly")["status"] == "idle"
    assert row(cli, "nightly")["last_run_at"] is not None


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "shepherd/never"), 3, "the fleet has no schedule 'shepherd/never'"),
        (("why", "nobody/nightly"), 3, "the fleet has no agent 'nobody'"),
        (("disable", "shepherd"), 2, "'shepherd' is not a schedule; write AGENT/NAME"),
        (("set", "shepherd/hourly", "sometimes"), 2, "'sometimes' is not a cron expression"),
        (("set", "shepherd/hourly", "10ms"), 2, "an interval is at least 1s"),
        (("next", "--for", "soon"), 2, "'soon' is not a duration"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    herd: Path, cli: Cli, arguments: tuple[str, ...], code: int, said: str
) -> None:
    before = cli("schedule", "--json").data

    refused = cli("schedule", *arguments)

    assert refused.code == code
    assert said in refused.err
    after = cli("schedule", "--json").data
    assert [one["override"] for one in after] == [one["override"] for one in before]


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (1, "unless 1 of its jobs has not ended by then (max_overlap)"),
        (2, "unless 2 of its jobs have not ended by then (max_overlap)"),
    ],
)
def test_a_schedule_that_runs_says_how_many_of_its_jobs_hold_it_up(most: int, said: str) -> None:
    agent = Agent(name="shepherd", runtime=SCRIPTED, working_directory="/")
    schedule = Schedule(name="hourly", rule=parse_rule("1h", "UTC"), max_overlap=most)
    state = ScheduleState(
        id="shepherd/hourly", agent="shepherd", name="hourly", status=ScheduleStatus.RUNNING
    )
    view = make_view(agent, schedule, {state.id: state}, {}, datetime(2026, 11, 15, tzinfo=UTC))

    assert why_next(view, is_kept=True)[-1] == said


HELD = """\
agents:
  - name: shepherd
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: count the sheep
    schedules:
      hourly: {interval: 1h, limits: {turns: 1}, max_suspended: 1}
      daily: {interval: 1d}
    script:
      - tool: Bash
        input: {command: "true"}
      - say: counted
"""


def test_a_job_that_waits_for_a_person_is_named_wherever_its_schedule_stands_still(
    herd: Path, cli: Cli
) -> None:
    (herd / "nightherd.yaml").write_text(HELD)
    cli("schedule", "enable", "shepherd/hourly")
    job_id = cli("schedule", "run", "shepherd/hourly", "--json").data["id"]
    cli("worker", "--until-idle")
    command = f"nightherd jobs resume {job_id} --raise turns=2"

    status, why = cli("status"), cli("schedule", "why", "shepherd/hourly")
    document = cli("status", "--json").data

    assert f"shepherd/hourly is blocked: {job_id} is suspended (limit): {command}\n" in status.out
    assert f"it is blocked: {job_id} is suspended (limit): {command}\n" in why.out
    assert "max_suspended: 1" in why.out
    assert row(cli, "hourly")["status"] == "idle"
    assert document["held_schedules"] == [{"schedule": "shepherd/hourly", "jobs": [job_id]}]
    assert row(cli, "hourly")["held_by"] == [job_id]
    assert row(cli, "daily")["held_by"] == []
    assert f"blocked by {job_id}" in cli("schedule", "list").out

    cli("jobs", "cancel", job_id)
    assert cli("status", "--json").data["held_schedules"] == []
    assert "blocked" not in cli("status").out + cli("schedule").out
