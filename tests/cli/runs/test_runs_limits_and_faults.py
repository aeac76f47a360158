"""Runs that were stopped by a limit, retried a phase, lost their worker, or came without a definition."""

from __future__ import annotations

import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cli.runs.flows import by_path
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.ports import StateReader
from nightherd.views.runs.document import run_document, show_run
from nightherd.views.runs.runs import find_run_id, list_run_page
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_reader, system_clock
from surfaces.drivers import Cli, Shell

LIMITED = """\
agents:
  - name: spender
    runtime: scripted
    default_prompt: go
    script:
      - say: first
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.03}
      - say: second
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.03}
      - say: done
  - name: failing
    runtime: scripted
    default_prompt: go
    script:
      - fail: {code: bad_luck, message: No luck today.}

workflows:
  own:
    phases:
      - {name: spend, agent: spender, prompt: go, limits: {spend: 0.02}}
  whole:
    limits: {spend: 0.04}
    phases:
      - {name: spend, agent: spender, prompt: go}
  tries:
    phases:
      - {name: work, agent: failing, prompt: go, retries: 2}
"""


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a fleet whose workflows meet limits; the test stands in it."""
    (tmp_path / "nightherd.yaml").write_text(LIMITED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_that_only_a_limit_stops_ends_with_6_and_names_the_command(
    cli: Cli, limited: Path
) -> None:
    result = cli("workflow", "run", "own", "--json")

    assert (result.code, result.data["status"]) == (6, "paused")
    (wait,) = result.data["waits_for"]
    assert (wait["phase"], wait["for"]) == ("spend", "person")
    assert wait["next"].startswith("nightherd inbox raise ask-")
    assert by_path(result.data)["spend"]["job_status"] == "suspended"


def test_limit_of_the_whole_run_is_raised_and_its_jobs_continue(cli: Cli, limited: Path) -> None:
    result = cli("workflow", "run", "whole", "--json")
    shown = cli("runs", "show", "@last")

    assert (result.code, result.data["status"]) == (6, "paused")
    (limit,) = result.data["limits"]
    assert (limit["name"], limit["maximum"], limit["used"]) == ("spend", 40_000, 30_000)
    assert f"nightherd runs raise {result.data['id']} spend=0.12" in shown.out
    (job,) = cli("jobs", "list", "--json").data
    assert f"nightherd runs raise {result.data['id']}" in cli("jobs", "show", job["id"]).out
    assert cli("runs", "raise", "@last", "spend=cheap").code == 2
    raised = cli("runs", "raise", "@last", "spend=5", "--json")
    assert (raised.code, raised.data["status"]) == (0, "running")
    cli("worker", "--until-idle")
    data = cli("runs", "show", "@last", "--json").data
    assert (data["status"], data["cost_usd"]) == ("succeeded", pytest.approx(0.06))


def test_limit_of_a_run_is_not_lowered_nor_set_to_what_is_used(cli: Cli, limited: Path) -> None:
    cli("workflow", "run", "whole", "--wait")

    lower = cli("runs", "raise", "@last", "spend=0.035")
    used = cli("runs", "raise", "@last", "turns=1")

    assert (lower.code, used.code) == (5, 5)
    assert "$0.035 is less than its limit of $0.04" in lower.err
    assert "has used" in used.err
    assert cli("runs", "show", "@last", "--json").data["status"] == "paused"
    (limit,) = cli("runs", "show", "@last", "--json").data["limits"]
    assert limit["maximum"] == 40_000


def test_run_that_succeeded_is_not_resumed_nor_is_a_retry_named(cli: Cli, limited: Path) -> None:
    cli("workflow", "run", "whole", "--wait")
    cli("runs", "raise", "@last", "spend=5")
    cli("worker", "--until-idle")

    refused = cli("runs", "resume", "@last")

    assert "has succeeded" in refused.err
    assert "nightherd runs retry" not in refused.err


def test_resume_continues_suspended_jobs(cli: Cli, limited: Path) -> None:
    cli("workflow", "run", "own", "--wait")

    resumed = cli("runs", "resume", "@last", "--json")

    assert resumed.code == 0
    (job,) = resumed.data["resumed_jobs"]
    assert cli("jobs", "show", job, "--json").data["status"] == "pending"


def test_every_attempt_of_a_phase_is_listed(cli: Cli, limited: Path) -> None:
    data = cli("workflow", "run", "tries", "--json").data
    node = by_path(data)["work"]

    assert (data["status"], node["attempt"]) == ("failed", 3)
    assert [one["status"] for one in node["attempts"]] == ["failed"] * 3
    assert len({one["job_id"] for one in node["attempts"]}) == 3
    assert "attempt 3" in cli("runs", "show", "@last").out


def test_run_whose_worker_was_killed_says_so_and_can_be_cancelled(flows: Path) -> None:
    shell = Shell(flows)
    started = shell.start("workflow", "run", "slow", stdout=subprocess.PIPE)
    assert started.stdout is not None
    while b"working" not in started.stdout.readline():
        assert started.poll() is None
    started.send_signal(signal.SIGKILL)
    started.communicate()

    shown = shell.run("runs", "show", "@last").out
    cancelled = shell.run("runs", "cancel", "@last")
    after = shell.run("runs", "list").out

    assert "lost its worker" in shown
    assert cancelled.code == 0
    assert "⊘ cancelled" in after
    shell.close()


def test_cost_of_a_shown_run_includes_the_runs_below_it(cli: Cli, flows: Path) -> None:
    shown = cli("workflow", "run", "outer", "--json").data
    listed = cli("runs", "list", "--json").data
    outer = next(run for run in listed if run["id"] == shown["id"])
    inner = next(run for run in listed if run["id"] != shown["id"])

    assert (shown["cost_usd"], outer["cost_usd"], inner["cost_usd"]) == (0.0012,) * 3
    assert shown["child_runs"] == [inner["id"]]
    assert by_path(shown)["inner"]["child_run_id"] == inner["id"]
    assert (inner["parent_run_id"], inner["root_run_id"]) == (shown["id"], shown["id"])


class RowsOnly:
    """A reader that can list runs and nothing else."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader

    def list_runs(self, query: RunQuery) -> Any:
        return self._reader.list_runs(query)


def test_list_reads_rows_of_runs_and_nothing_else(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "simple", "--wait")

    with closing(open_reader(flows / ".nightherd")) as reader:
        page = list_run_page(RowsOnly(reader), RunQuery(limit=5))  # type: ignore[arg-type]

    assert [run.workflow_name for run in page.runs] == ["simple"]


class WithoutDefinition:
    """A reader of runs whose definitions are not on record, as imported ones are."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader

    def find_run(self, run_id: Any) -> WorkflowRun | None:
        run = self._reader.find_run(run_id)
        return None if run is None else replace(run, definition_hash="")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


def test_run_without_a_definition_shows_the_nodes_it_has(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "gated", "--wait")

    with closing(open_reader(flows / ".nightherd")) as reader:
        now = system_clock().now()
        bare: Any = WithoutDefinition(reader)
        view = show_run(bare, find_run_id(reader, "@last"), now, is_at_work)

    document = run_document(view, now)
    assert [node["path"] for node in document["nodes"]] == ["plan", "ok"]
    assert [node["status"] for node in document["nodes"]] == ["succeeded", "paused"]
    assert document["limits"] == []
