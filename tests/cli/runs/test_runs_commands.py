"""`nightherd runs`: lists, one run drawn and as a document, and the commands that change a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.runs.flows import by_path
from surfaces.drivers import Cli


def test_list_shows_runs_newest_first_in_pages(cli: Cli, flows: Path) -> None:
    ids = [cli("workflow", "run", "simple", "--json").data["id"] for _ in range(3)]
    first = cli("runs", "list", "--limit", "2", "--json").document
    rest = cli("runs", "list", "--before", str(first["next_before"]), "--json").document

    assert [run["id"] for run in (*first["data"], *rest["data"])] == ids[::-1]
    assert rest["next_before"] is None
    assert "more: nightherd runs list --limit 2 --before" in cli("runs", "--limit", "2").err
    assert "✔ succeeded" in cli("runs").out


def test_list_is_narrowed_by_workflow_and_status(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "simple", "--wait")
    gated = cli("workflow", "run", "gated", "--json").data["id"]

    assert [run["id"] for run in cli("runs", "--status", "paused", "--json").data] == [gated]
    assert [run["id"] for run in cli("runs", "--workflow", "gated", "--json").data] == [gated]
    assert cli("runs", "--workflow", "gated", "--status", "failed", "--json").data == []
    assert "no such runs" in cli("runs", "--workflow", "none").err


def test_empty_list_says_how_to_start_one(cli: Cli, flows: Path) -> None:
    assert cli("runs").err == "no runs yet\n  try: nightherd workflow run NAME\n"


def test_run_is_found_by_prefix_end_and_word(cli: Cli, flows: Path) -> None:
    older = cli("workflow", "run", "simple", "--json").data["id"]
    newer = cli("workflow", "run", "broken", "--json").data["id"]

    def found(reference: str) -> str:
        return str(cli("runs", "show", reference, "--json").data["id"])

    assert found(older[:-1]) == found(older.removeprefix("run-")) == found(older[-6:]) == older
    assert found("@last") == found("@last-failed") == newer
    ambiguous = cli("runs", "show", "run-2")
    assert ambiguous.code == 3
    assert "could be" in ambiguous.err
    for missing in ("run-1999-01-01-aaaaaa", "zzzz", "@first", ""):
        result = cli("runs", "show", missing)
        assert result.code == 3
        assert "nightherd runs list" in result.err


def test_id_without_a_verb_suggests_to_show_it(cli: Cli, flows: Path) -> None:
    assert "nightherd runs show run-2026" in cli("runs", "run-2026").err


def test_phases_that_have_not_begun_are_pending_and_the_answering_command_is_named(
    cli: Cli, flows: Path
) -> None:
    data = cli("workflow", "run", "gated", "--json").data
    text = cli("runs", "show", data["id"]).out
    nodes = by_path(data)

    assert list(nodes) == ["plan", "ok", "build"]
    assert [node["status"] for node in nodes.values()] == ["succeeded", "paused", "pending"]
    (wait,) = data["waits_for"]
    assert wait["phase"] == "ok"
    assert wait["item_id"] == nodes["ok"]["inbox_item_id"]
    assert wait["next"].startswith(f"nightherd inbox approve {wait['item_id']}")
    assert "‖ ok     gate approve" in text
    assert "○ build  agent writer  pending, after ok" in text
    assert wait["next"] in text


def test_items_and_iterations_are_summarised_and_all_of_them_shown_on_demand(
    cli: Cli, flows: Path
) -> None:
    cli("workflow", "run", "many", "--wait")
    short = cli("runs", "show", "@last").out
    whole = cli("runs", "show", "@last", "--all").out
    nodes = by_path(cli("runs", "show", "@last", "--json").data)

    assert "agent writer, 3 items: 3 succeeded" in short
    assert "block, iteration 2 of at most 5" in short
    assert "each[1]" not in short
    assert "again[1]" not in short
    for path in ("each[0]", "each[2]", "again[1]", "again[2]"):
        assert f"✔ {path}" in whole
    assert list(nodes) == [
        "each", "each[0]", "each[1]", "each[2]", "again", "again[1]", "again[1]/look", "again[2]", "again[2]/look",
    ]  # fmt: skip
    assert nodes["each"]["cost_usd"] == pytest.approx(0.0036)
    assert (nodes["each[2]"]["item"], nodes["again[2]"]["iteration"]) == (2, 2)
    assert nodes["again"]["total"] == 5


def test_output_of_a_phase_is_printed(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "many", "--wait")

    def output(phase: str) -> object:
        return cli("runs", "show", "@last", "--output", phase, "--json").data["output"]

    assert output("each") == ["wrote do a", "wrote do b", "wrote do c"]
    assert output("each[1]") == "wrote do b"
    assert output("again") == {"look": "wrote look 2"}
    assert output("again[1]/look") == "wrote look 1"
    assert cli("runs", "show", "@last", "--output", "each[1]").out == "wrote do b\n"
    assert cli("runs", "show", "@last", "--output", "none").code == 3
    assert cli("runs", "show", "@last", "--output", "each[1][2]").code == 3


def test_output_of_a_phase_that_has_not_ended_is_refused(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "gated", "--wait")

    waiting = cli("runs", "show", "@last", "--output", "ok")
    absent = cli("runs", "show", "@last", "--output", "build")

    assert (waiting.code, absent.code) == (5, 5)
    assert "is paused" in waiting.err
    assert "has not begun" in absent.err


def test_cancelled_run_has_no_pending_phases(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "gated", "--wait")

    result = cli("runs", "cancel", "@last")

    assert result.out.startswith("cancelled run-")
    data = cli("runs", "show", "@last", "--json").data
    assert (data["status"], data["waits_for"]) == ("cancelled", [])
    statuses = {path: node["status"] for path, node in by_path(data).items()}
    assert statuses["ok"] == "cancelled"
    assert statuses["build"] not in ("pending", "succeeded")
    assert cli("inbox", "list", "--json").data == []
    assert cli("runs", "cancel", "@last").code == 5


def test_retry_keeps_what_is_done(cli: Cli, flows: Path) -> None:
    failed = cli("workflow", "run", "broken", "--json").data["id"]

    retried = cli("runs", "retry", failed, "--json").data

    assert (retried["retried_from"], retried["attempt"], retried["is_new"]) == (failed, 2, True)
    nodes = by_path(cli("runs", "show", retried["id"], "--json").data)
    assert (nodes["plan"]["kept_from"], nodes["plan"]["cost_usd"]) == (failed, 0)
    assert nodes["work"]["kept_from"] is None
    assert nodes["rest"]["status"] == "pending"
    assert f"kept from {failed}" in cli("runs", "show", retried["id"]).out


def test_retry_of_a_run_that_succeeded_or_is_open_is_refused(cli: Cli, flows: Path) -> None:
    done = cli("workflow", "run", "simple", "--json").data["id"]
    open_ = cli("workflow", "run", "gated", "--json").data["id"]

    assert cli("runs", "retry", done).code == 5
    assert f"run {done} has succeeded" in cli("runs", "cancel", done).err
    refused = cli("runs", "retry", open_)
    assert refused.code == 5
    assert f"nightherd runs cancel {open_}" in refused.err


def test_fork_runs_a_phase_anew_with_other_inputs(cli: Cli, flows: Path) -> None:
    first = cli("workflow", "run", "simple", "--json").data["id"]

    forked = cli("runs", "fork", first, "--at", "check", "--input", "topic=docs", "--json").data

    assert forked["forked_from"] == first
    data = cli("runs", "show", forked["id"], "--json").data
    nodes = by_path(data)
    assert data["inputs"] == {"topic": "docs"}
    assert (nodes["plan"]["kept_from"], nodes["check"]["status"]) == (first, "skipped")
    unknown = cli("runs", "fork", first, "--at", "none")
    assert unknown.code == 2
    assert "its phases are plan, check" in unknown.err


def test_event_continues_the_run_that_waits_for_it(cli: Cli, flows: Path) -> None:
    started = cli("workflow", "run", "waiting", "--json")
    command = started.data["waits_for"][0]["next"]

    assert started.code == 8
    assert command == f"nightherd runs signal {started.data['id']} deployed"
    assert cli("runs", "signal", "@last", "deployed", "--payload", "{").code == 2
    sent = cli("runs", "signal", "@last", "deployed", "--payload", '"v2"', "--json")
    assert (sent.code, sent.data["status"]) == (0, "running")
    cli("worker", "--until-idle")
    assert cli("runs", "show", "@last", "--output", "after").out == "wrote after v2\n"


def test_event_that_no_phase_waits_for_is_refused_with_those_that_are(
    cli: Cli, flows: Path
) -> None:
    cli("workflow", "run", "waiting", "--wait")

    sent = cli("runs", "signal", "@last", "deploid")

    assert sent.code == 2
    assert "no phase of waiting waits for the event 'deploid'; its events are deployed" in sent.err


def test_list_names_the_phase_that_failed_not_those_skipped_after_it(
    cli: Cli, nowhere: Path
) -> None:
    (nowhere / "nightherd.yaml").write_text(
        "agents: []\nworkflows:\n  push:\n    phases:\n"
        "      - {name: test, bash: 'exit 3'}\n      - {name: ship, bash: 'true'}\n"
    )

    cli("workflow", "run", "push", "--wait")

    (row,) = cli("runs", "list", "--json").data
    assert row["current_phase"] == "test"


def test_phase_that_waits_for_a_worker_says_so_once(cli: Cli, flows: Path) -> None:
    cli("workflow", "run", "gated", "--detach")

    assert "plan: waits for a worker\n" in cli("runs", "show", "@last").out


def test_resume_of_a_run_without_suspended_jobs_says_what_continues_it(
    cli: Cli, flows: Path
) -> None:
    cli("workflow", "run", "gated", "--wait")

    waiting = cli("runs", "resume", "@last")
    cli("runs", "cancel", "@last")
    over = cli("runs", "resume", "@last")

    assert (waiting.code, over.code) == (5, 5)
    assert "nightherd inbox approve ask-" in waiting.err
    assert "nightherd runs retry run-" in over.err
