"""`nightherd workflow run`: it works on its run without a daemon, and ends as the run stands."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from cli.runs.flows import FLOWS, by_path
from surfaces.drivers import Cli, Shell


def test_run_is_worked_on_to_its_end_and_every_line_names_its_phase(cli: Cli, flows: Path) -> None:
    result = cli("workflow", "run", "simple", "--input", "topic=tests")

    assert result.code == 0
    assert "plan | wrote plan tests\n" in result.out
    assert "check | ✔ succeeded\n" in result.out
    assert result.out.index("plan | ✔ succeeded") < result.out.index("check | - began")
    assert "✔ succeeded, $0.0012" in result.err


def test_json_is_one_document_of_the_run(cli: Cli, flows: Path) -> None:
    result = cli("workflow", "run", "simple", "--input", "topic=docs", "--json")

    assert result.code == 0
    assert result.document["schema"] == "nightherd/v1/workflow_run"
    assert (result.data["status"], result.data["cost_usd"]) == ("succeeded", 0.0012)
    assert result.data["inputs"] == {"topic": "docs"}
    nodes = by_path(result.data)
    assert (nodes["plan"]["status"], nodes["check"]["status"]) == ("succeeded", "skipped")
    assert nodes["check"]["skip_cause"] == "condition"


def test_paused_run_says_what_it_waits_for_and_ends_with_8(cli: Cli, flows: Path) -> None:
    result = cli("workflow", "run", "gated", "--wait")

    assert (result.code, result.out) == (8, "")
    assert "ok waits for a person: Go on with wrote the plan?" in result.err
    assert "nightherd inbox approve ask-" in result.err


def test_failed_run_ends_with_1_and_names_the_retry(cli: Cli, flows: Path) -> None:
    result = cli("workflow", "run", "broken")

    assert result.code == 1
    assert "work | ✗ failed: No luck today." in result.out
    assert "nightherd runs retry run-" in result.err


def test_short_pause_is_waited_for(cli: Cli, flows: Path) -> None:
    assert cli("workflow", "run", "brief", "--wait").code == 0


def test_run_of_another_workflow_is_shown_with_the_phases_below(cli: Cli, flows: Path) -> None:
    result = cli("workflow", "run", "outer")

    assert result.code == 0
    assert "inner/plan | wrote plan below\n" in result.out


def test_detached_run_waits_for_a_worker(cli: Cli, flows: Path) -> None:
    started = cli("workflow", "run", "simple", "--detach")

    assert started.code == 0
    assert started.out.startswith("run-")
    assert "nightherd worker --until-idle" in started.err
    assert cli("runs", "list", "--json").data[0]["status"] == "running"
    assert cli("worker", "--until-idle").code == 0
    assert cli("runs", "list", "--json").data[0]["status"] == "succeeded"


def test_wait_timeout_leaves_the_run_to_a_worker_which_continues_it(cli: Cli, flows: Path) -> None:
    result = cli("workflow", "run", "slow", "--wait", "--wait-timeout", "300ms")

    assert result.code == 8
    (job,) = cli("jobs", "list", "--json").data
    assert (job["status"], job["restart_count"]) == ("pending", 0)
    assert cli("runs", "show", "@last", "--json").data["status"] == "running"


def test_interrupt_cancels_the_run(flows: Path) -> None:
    shell = Shell(flows)
    started = shell.start("workflow", "run", "slow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout is not None
    while b"working" not in started.stdout.readline():
        assert started.poll() is None
    started.send_signal(signal.SIGINT)
    _, err = started.communicate()

    assert started.returncode == 130
    assert b"cancelled" in err
    run = json.loads(shell.run("runs", "show", "@last", "--json").out)["data"]
    assert (run["status"], by_path(run)["sleep"]["status"]) == ("cancelled", "cancelled")
    shell.close()


def test_jobs_of_agents_that_the_workflow_does_not_name_are_left_alone(
    cli: Cli, flows: Path
) -> None:
    other = cli("run", "patient", "--detach").out.strip()

    assert cli("workflow", "run", "simple", "--wait").code == 0
    assert cli("jobs", "show", other, "--json").data["status"] == "pending"


def test_inputs_are_read_by_their_type_and_from_files(cli: Cli, flows: Path) -> None:
    (flows / "topic.txt").write_text("from a file")

    listed = cli("workflow", "run", "many", "--input", 'files=["x"]', "--json").data
    parts = cli("workflow", "run", "many", "--input", "files=x, y", "--dry-run", "--json").data
    text = cli("workflow", "run", "simple", "--input", "topic=@topic.txt", "--json").data
    at = cli("workflow", "run", "simple", "--input", "topic=@@home", "--dry-run", "--json").data

    assert listed["inputs"] == {"files": ["x"]}
    assert parts["inputs"] == {"files": ["x", "y"]}
    assert text["inputs"] == {"topic": "from a file"}
    assert at["inputs"] == {"topic": "@home"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simpel"], "the fleet has no workflow 'simpel'; it has 'simple'"),
        (["simple", "--input", "x=1"], "there is no input 'x'"),
        (["simple", "--input", "topic=@gone.txt"], "gone.txt cannot be read"),
        (["simple", "--wait", "--detach"], "--wait and --detach cannot be used together"),
    ],
)
def test_wrong_arguments_record_nothing(
    arguments: list[str], message: str, cli: Cli, flows: Path
) -> None:
    result = cli("workflow", "run", *arguments)

    assert result.code in (2, 3)
    assert message in result.err
    assert not (flows / ".nightherd").exists()


def test_dry_run_shows_the_phases_and_decides_what_inputs_decide(cli: Cli, flows: Path) -> None:
    text = cli("workflow", "run", "simple", "--dry-run", "--input", "topic=docs")
    data = cli("workflow", "run", "many", "--dry-run", "--json").data
    gated = cli("workflow", "run", "gated", "--dry-run").out

    assert text.code == 0
    assert "check  command bash  echo checked" in text.out
    assert "when inputs.topic == 'tests': false: it is skipped" in text.out
    assert [phase["path"] for phase in data["phases"]] == ["each", "again"]
    assert (data["phases"][0]["items"], data["phases"][1]["max_iterations"]) == (3, 5)
    assert data["phases"][1]["phases"][0]["does"] == "writer"
    assert gated.index("plan ") < gated.index("ok ") < gated.index("build ")
    assert not (flows / ".nightherd").exists()


def test_disabled_workflow_starts_nothing_until_it_is_enabled_or_reset(
    cli: Cli, flows: Path
) -> None:
    assert cli("workflow", "disable", "simple", "--json").data["is_enabled"] is False
    for arguments in ([], ["--detach"], ["--dry-run"]):
        refused = cli("workflow", "run", "simple", *arguments)
        assert refused.code == 5
        assert "nightherd workflow enable simple" in refused.err
    assert cli("runs", "list", "--json").data == []
    assert cli("workflow", "enable", "simple", "--json").data["is_overridden"] is True
    assert cli("workflow", "run", "simple", "--wait").code == 0
    assert cli("workflow", "disable", "simple").out == "disabled simple\n"
    assert cli("workflow", "reset", "simple", "--json").data["is_overridden"] is False
    assert cli("workflow", "run", "simple", "--wait").code == 0


def test_workflow_that_is_not_started_by_hand_is_refused(cli: Cli, flows: Path) -> None:
    changed = FLOWS.replace("  slow:\n", "  slow:\n    on: {api: false}\n")
    (flows / "nightherd.yaml").write_text(changed)

    result = cli("workflow", "run", "slow")

    assert result.code == 5
    assert "api: false" in result.err


def test_workflow_of_an_unknown_name_cannot_be_switched(cli: Cli, flows: Path) -> None:
    assert cli("workflow", "disable", "nothing").code == 3
