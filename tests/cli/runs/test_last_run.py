"""`@last` and `@last-failed` mean the run that was started, not a run of a sub-workflow below it."""

from __future__ import annotations

from pathlib import Path

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: any
    runtime: scripted
    script: [{say: hello}]
workflows:
  inner:
    inputs: {status: number}
    phases:
      - {name: work, bash: 'exit "$STATUS"', env: {STATUS: "${inputs.status}"}}
  strict:
    phases:
      - {name: below, workflow: inner, inputs: {status: 1}}
  tolerant:
    phases:
      - {name: below, workflow: inner, inputs: {status: 1}, on_failure: continue}
"""


def test_the_run_above_a_sub_workflow_is_the_last_one(cli: Cli, nowhere: Path) -> None:
    (nowhere / "nightherd.yaml").write_text(FLEET)
    started = cli("workflow", "run", "strict", "--json").data["id"]

    assert len(cli("runs", "--json").data) == 2
    assert cli("runs", "show", "@last", "--json").data["id"] == started
    assert cli("runs", "show", "@last-failed", "--json").data["id"] == started


def test_a_sub_workflow_whose_failure_is_tolerated_is_the_last_failed_one(
    cli: Cli, nowhere: Path
) -> None:
    (nowhere / "nightherd.yaml").write_text(FLEET)
    started = cli("workflow", "run", "tolerant", "--json").data["id"]

    assert cli("runs", "show", "@last", "--json").data["id"] == started
    assert cli("runs", "show", "@last-failed", "--json").data["workflow"] == "inner"
