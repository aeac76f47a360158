"""Importing from Last Light: jobs with all that was said, runs that read as they did, approvals and overrides."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from imports.conftest import Importer
from imports.foreign_trees import fingerprint
from imports.lastlight_trees import LastLight, asked, at, said
from nightherd.model.inbox.item import InboxItem, ItemStatus
from nightherd.model.jobs.job import Execution, ExitReason, Job, JobStatus
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import WorkflowNode
from nightherd.model.workflows.run import RunStatus

FLEET = """\
agents:
  - name: coder
    runtime: scripted
    script: [{say: hi}]
    schedules:
      nightly: {interval: 1h, prompt: go}
      weekly: {interval: 1h, prompt: go}
      hourly: {interval: 1h, prompt: go}
workflows:
  build:
    phases:
      - {name: plan, agent: coder, prompt: go}
"""


def execution_of(importer: Importer, job: Job) -> Execution:
    reader = importer.reader
    (execution,) = reader.list_executions(job.id)
    reader.close()
    return execution


def nodes(importer: Importer) -> list[WorkflowNode]:
    reader = importer.reader
    found = reader.nodes_of_run(importer.run_row().id)
    reader.close()
    return list(found)


def items(importer: Importer) -> list[InboxItem]:
    reader = importer.reader
    found = reader.items_of_run(importer.run_row().id)
    reader.close()
    return list(found)


def history(importer: Importer) -> list[tuple[str, datetime, bool]]:
    """The history of the only run: phase, instant and success."""
    ((text,),) = importer.query("SELECT phase_history FROM workflow_runs")
    return [
        (entry["phase"], datetime.fromisoformat(entry["timestamp"]), entry["success"])
        for entry in json.loads(text)
    ]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_execution_becomes_a_job_of_its_run_with_its_execution_and_journal(
    importer: Importer, lastlight: LastLight
) -> None:
    lastlight.run()
    lastlight.execution(session_id="s1", output_text="A plan")
    lastlight.log(asked("Plan it", 1), said("A plan", 1))

    data = importer.data("lastlight", str(lastlight.root))

    assert (data["imported"]["jobs"], data["imported"]["runs"]) == (1, 1)
    assert (data["skipped"], data["unreadable"]) == ([], [])
    (job,), run = importer.jobs(), importer.run_row()
    assert (job.status, job.exit_reason) == (JobStatus.COMPLETED, ExitReason.SUCCESS)
    assert (job.workflow_run_id, job.node_id) == (run.id, f"{run.id}/architect")
    assert (job.trigger_type.value, job.trigger_id) == ("webhook", "acme/shop#7")
    assert job.cost_microusd == 123_457
    assert (job.input_tokens, job.output_tokens) == (100, 20)
    assert (job.cache_read_input_tokens, job.cache_creation_input_tokens) == (3, 4)
    assert (job.created_at, job.finished_at) == (instant(at(1)), instant(at(1, 50)))
    assert (job.turns, job.messages, job.summary) == (1, 2, "A plan")
    execution = execution_of(importer, job)
    assert (execution.skill, execution.repo, execution.issue_number) == (
        "build:architect",
        "acme/shop",
        7,
    )
    assert (execution.workflow_run_id, execution.output_text) == (run.id, "A plan")
    assert (execution.stop_reason, execution.duration_ms) == ("success", 50_000)
    assert importer.run("jobs", "show", job.id).code == 0


@pytest.mark.parametrize(
    ("word", "trigger"),
    [("cron", "schedule"), ("api", "manual"), ("webhook", "webhook"), ("chat", "chat")],
)
def test_trigger_words_are_ours_in_jobs_and_theirs_in_executions(
    word: str, trigger: str, importer: Importer, older: LastLight
) -> None:
    older.execution(trigger_type=word, workflow_run_id=None)

    importer.data("lastlight", str(older.root))

    (job,) = importer.jobs()
    assert job.trigger_type.value == trigger
    assert execution_of(importer, job).trigger_type == word


@pytest.mark.parametrize(
    ("stop_reason", "exit_reason"),
    [
        ("error_fatal", ExitReason.ERROR),
        ("error_timeout", ExitReason.TIMEOUT),
        ("error_aborted", ExitReason.CANCELLED),
        ("skipped", ExitReason.CANCELLED),
        ("condition_not_met", ExitReason.SUCCESS),
        (None, ExitReason.ERROR),
    ],
)
def test_failed_execution_ends_as_its_stop_reason_says(
    stop_reason: str | None, exit_reason: ExitReason, importer: Importer, older: LastLight
) -> None:
    older.execution(success=0, error="no luck", stop_reason=stop_reason, workflow_run_id=None)

    importer.data("lastlight", str(older.root))

    (job,) = importer.jobs()
    assert job.exit_reason is exit_reason
    assert job.cost_microusd == 123_457
    if exit_reason is not ExitReason.SUCCESS:
        assert job.error == "no luck"


def test_execution_that_was_not_over_is_interrupted(importer: Importer, older: LastLight) -> None:
    older.execution(finished_at=None, success=None, cost_usd=None, workflow_run_id=None)

    importer.data("lastlight", str(older.root))

    (job,) = importer.jobs()
    assert (job.status, job.error_code) == (JobStatus.FAILED, "interrupted")


def test_turns_of_a_chat_share_a_session_and_each_has_its_own_lines(
    importer: Importer, lastlight: LastLight
) -> None:
    chat: dict[str, Any] = {"skill": "chat", "trigger_type": "chat", "trigger_id": "m1"}
    for number, minute in ((1, 5), (2, 7), (3, 9)):
        lastlight.execution(f"e{number}", minute, session_id="s2", workflow_run_id=None, **chat)
    lastlight.log(
        asked("One?", 5),
        said("One.", 5),
        "",
        asked("Two?", 7),
        said("Two.", 7),
        session="s2",
        slug="-app",
    )

    importer.data("lastlight", str(lastlight.root))

    session = importer.session()
    assert (session.job_count, session.message_count, session.turn_count) == (3, 4, 2)
    assert (session.runtime_session_id, session.name) == ("s2", "chat")
    assert [job.summary for job in importer.jobs()] == [None, "Two.", "One."]
    shown = importer.run("session", "show", session.id, "--history", "--json")
    assert [one["text"] for one in shown.data["history"]] == ["One?", "One.", "Two?", "Two."]


def test_calls_and_results_are_in_the_history(importer: Importer, older: LastLight) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}}
    answer = said("", 1)
    answer["message"]["content"] = [{"type": "thinking", "thinking": "Hm"}, call]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "3 files", "is_error": False}
    older.execution(session_id="s1", workflow_run_id=None)
    older.log(asked("Look", 1), answer, asked([result], 1), said("Three.", 1))

    importer.data("lastlight", str(older.root))

    shown = importer.run("session", "show", "@last", "--history", "--json").data["history"]
    assert [one["speaker"] for one in shown] == ["user", "assistant", "tool", "assistant"]
    assert shown[1]["calls"] == [{"id": "t1", "tool": "bash", "input": {"command": "ls"}}]
    (job,) = importer.jobs()
    assert (job.turns, job.summary) == (2, "Three.")


def test_history_and_statuses_read_as_they_did(importer: Importer, older: LastLight) -> None:
    entries = [
        {"phase": "guardrails", "timestamp": at(1), "success": True, "summary": "fine"},
        {"phase": "architect", "timestamp": at(2), "success": False},
        {"phase": "architect", "timestamp": at(4), "success": True},
        {"phase": "reviewer", "timestamp": at(5), "success": False},
    ]
    statuses = {
        "guardrails": "succeeded",
        "architect": "succeeded",
        "reviewer": "skipped",
        "pr": "skipped",
    }
    older.run(phase_history=entries, node_statuses=statuses, status="failed")

    importer.data("lastlight", str(older.root))

    assert history(importer) == [
        (one["phase"], instant(str(one["timestamp"])), one["success"]) for one in entries
    ]
    ((found,),) = importer.query("SELECT node_statuses FROM workflow_runs")
    assert json.loads(found) == statuses
    assert [(node.path, node.attempt) for node in nodes(importer)] == [
        ("guardrails", 1),
        ("architect", 1),
        ("architect", 2),
        ("reviewer", 1),
        ("pr", 1),
    ]
    assert nodes(importer)[0].message == "fine"


def test_each_attempt_of_a_phase_has_its_own_job(importer: Importer, older: LastLight) -> None:
    older.run(
        phase_history=[
            {"phase": "architect", "timestamp": at(5), "success": False},
            {"phase": "architect", "timestamp": at(9), "success": True},
        ]
    )
    for number, minute in ((1, 1), (2, 4), (3, 7)):
        older.execution(f"e{number}", minute, success=int(number == 3))

    importer.data("lastlight", str(older.root))

    third, second, first = importer.jobs()
    run = importer.run_row()
    assert first.node_id == f"{run.id}/architect"
    assert [(node.id, node.job_id, node.kind) for node in nodes(importer)] == [
        (f"{run.id}/architect#2", second.id, NodeKind.JOB),
        (f"{run.id}/architect#3", third.id, NodeKind.JOB),
    ]
    assert [second.node_id, third.node_id] == [node.id for node in nodes(importer)]


def test_run_has_what_it_had(importer: Importer, lastlight: LastLight) -> None:
    lastlight.run(scratch={"socratic": {"iteration": 2}}, restart_count=2)
    lastlight.execution("e1", 1)
    lastlight.execution("e2", 2, skill="build:pr")

    importer.data("lastlight", str(lastlight.root))

    run = importer.run_row()
    assert (run.workflow_name, run.trigger_id, run.status) == (
        "build",
        "acme/shop#7",
        RunStatus.SUCCEEDED,
    )
    assert (run.repo, run.issue_number, run.current_phase) == ("acme/shop", 7, "architect")
    assert (run.started_at, run.finished_at) == (instant(at(0)), instant(at(3)))
    assert (run.restart_count, run.definition_hash, run.error) == (2, "", None)
    assert (run.cost_microusd, run.worked_ms) == (246_914, 100_000)
    assert run.trigger_type.value == "webhook"
    assert run.started_by == ("ada" if lastlight.is_newer else None)
    ((context, scratch),) = importer.query("SELECT context, scratch FROM workflow_runs")
    assert json.loads(context)["inputs"] == {"issueTitle": "The cart is empty"}
    assert json.loads(scratch) == {"socratic": {"iteration": 2}}


def test_a_loop_names_its_last_output_by_the_id_that_the_execution_has_here(
    importer: Importer, lastlight: LastLight
) -> None:
    last = {"lastOutputExecutionId": "e1"}
    lastlight.run(scratch={"rloop:review": last, "gone": {"lastOutputExecutionId": "e9"}})
    lastlight.execution("e1", 1, output_text="not yet")

    importer.data("lastlight", str(lastlight.root))

    (joined,) = importer.query(
        "SELECT executions.output_text FROM workflow_runs JOIN executions"
        " ON executions.id = scratch ->> '$.\"rloop:review\".lastOutputExecutionId'"
    )
    assert joined == ("not yet",)
    ((scratch,),) = importer.query("SELECT scratch FROM workflow_runs")
    assert json.loads(scratch)["gone"] == {"lastOutputExecutionId": "e9"}


def test_a_phase_began_when_its_execution_did(importer: Importer, lastlight: LastLight) -> None:
    lastlight.run()
    lastlight.execution("e1", 1)

    importer.data("lastlight", str(lastlight.root))

    (node,) = nodes(importer)
    assert (node.created_at, node.ended_at) == (instant(at(1)), instant(at(2)))
    tail = importer.run("runs", "tail", "@last").out.splitlines()
    assert [line.split()[2:4] for line in (tail[0], tail[-1])] == [
        ["-", "began"],
        ["✔", "succeeded"],
    ]


def test_an_imported_run_shows_its_outputs_and_offers_no_retry(
    importer: Importer, lastlight: LastLight
) -> None:
    (importer.state.parent / "nightherd.yaml").write_text("agents: []\n")
    lastlight.run(status="failed")
    lastlight.execution("e1", 1, output_text="the plan")

    importer.data("lastlight", str(lastlight.root))

    cli = importer.run
    assert cli("runs", "show", "@last", "--output", "architect").out == "the plan\n"
    assert cli("runs", "show", "@last", "--output", "nope").code == 3
    shown, retried = cli("runs", "show", "@last"), cli("runs", "retry", "@last")
    assert "retry" not in shown.out + shown.err
    assert retried.code == 5
    assert "was imported without its definition" in retried.err
    assert "try: nightherd workflow run build" in retried.err


@pytest.mark.parametrize("status", ["queued", "running", "paused"])
def test_run_that_was_not_over_is_cancelled_and_asks_nobody(
    status: str, importer: Importer, lastlight: LastLight
) -> None:
    lastlight.run(status=status, finished_at=None)
    lastlight.approval(status="pending", responded_by=None, response=None, responded_at=None)

    importer.data("lastlight", str(lastlight.root))

    run = importer.run_row()
    assert (run.status, run.error) == (
        RunStatus.CANCELLED,
        "it was not over when it was imported",
    )
    assert run.finished_at == instant(at(3))
    (item,) = items(importer)
    assert (item.status, item.decided_by, item.verdict) == (ItemStatus.CANCELLED, None, None)
    reader = importer.reader
    assert (reader.count_open_runs(), reader.count_pending_items()) == ({}, {})
    assert reader.runs_to_advance(datetime(2099, 1, 1, tzinfo=UTC), 10) == []
    reader.close()


def test_failed_run_says_why(importer: Importer, lastlight: LastLight) -> None:
    lastlight.run(status="failed", context={"error": "no tests"})

    importer.data("lastlight", str(lastlight.root))

    assert (importer.run_row().status, importer.run_row().error) == (RunStatus.FAILED, "no tests")


def test_approvals_are_closed_items_and_the_view_shows_them(
    importer: Importer, lastlight: LastLight
) -> None:
    waiting = {"phase": "waiting_approval", "timestamp": at(2), "success": True}
    lastlight.run(phase_history=[waiting])
    lastlight.approval("a1")
    lastlight.approval("a2", gate="socratic", kind="reply", created_at=at(4), response="blue")
    lastlight.approval("a3", gate="post_reviewer", status="rejected", created_at=at(5))

    data = importer.data("lastlight", str(lastlight.root))

    assert data["imported"]["approvals"] == 3
    run = importer.run_row()
    assert importer.query(
        "SELECT workflow_run_id, gate, summary, status, kind, requested_by, responded_by, response"
        " FROM workflow_approvals ORDER BY created_at"
    ) == [
        (
            run.id,
            "post_architect",
            "Build it like this?",
            "approved",
            "approve",
            "ada",
            "grace",
            "go",
        ),
        (run.id, "socratic", "Build it like this?", "approved", "reply", "ada", "grace", "blue"),
        (
            run.id,
            "post_reviewer",
            "Build it like this?",
            "rejected",
            "approve",
            "ada",
            "grace",
            "go",
        ),
    ]
    found = items(importer)
    assert [item.number for item in found] == [1, 2, 3]
    (gate,) = nodes(importer)
    assert (gate.kind, gate.item_id) == (NodeKind.GATE, found[0].id)
    assert importer.run("inbox", "show", found[1].id).code == 0


def test_overrides_are_imported_where_there_is_something_of_that_name(
    importer: Importer, lastlight: LastLight
) -> None:
    (importer.state.parent / "nightherd.yaml").write_text(FLEET)
    when = {"updated_at": at(1), "updated_by": "ada"}
    lastlight.insert("cron_overrides", name="nightly", enabled=0, **when)
    lastlight.insert("cron_overrides", name="weekly", schedule="0 9 * * 1", **when)
    lastlight.insert("cron_overrides", name="hourly", **when)
    lastlight.insert("cron_overrides", name="gone", enabled=0, **when)
    lastlight.insert("workflow_overrides", name="build", enabled=0, **when)
    lastlight.insert("workflow_overrides", name="explore", enabled=0, **when)

    data = importer.data("lastlight", str(lastlight.root))

    assert data["imported"]["overrides"] == 3
    assert [one["source"].rpartition(": ")[2] for one in data["skipped"]] == [
        "cron_overrides/gone",
        "cron_overrides/hourly",
        "workflow_overrides/explore",
    ]
    reader = importer.reader
    overrides = {one.id: (one.enabled, one.schedule) for one in reader.list_overrides()}
    switches = [(one.name, one.enabled, one.updated_by) for one in reader.list_workflow_overrides()]
    reader.close()
    assert overrides == {"coder/nightly": (False, None), "coder/weekly": (None, "0 9 * * 1")}
    assert switches == [("build", False, "ada")]


def test_tables_without_a_place_here_are_named(importer: Importer, lastlight: LastLight) -> None:
    lastlight.insert(
        "messaging_sessions",
        id="m1",
        platform="slack",
        channel_id="c",
        user_id="u",
        created_at=at(1),
        last_activity_at=at(1),
    )
    if lastlight.is_newer:
        lastlight.insert("cron_runs", id="c1", cron_name="nightly")

    data = importer.data("lastlight", str(lastlight.root))

    found = {one["source"].rpartition(": ")[2]: one["reason"] for one in data["skipped"]}
    assert found.pop("messaging_sessions").startswith("1 row left out: conversations")
    assert list(found) == (["cron_runs"] if lastlight.is_newer else [])


@pytest.mark.parametrize("given", [".", "lastlight.db"])
def test_database_or_its_directory_can_be_given(
    given: str, importer: Importer, older: LastLight
) -> None:
    older.run()

    assert importer.data("lastlight", str(older.root / given))["imported"]["runs"] == 1


def test_dry_run_makes_nothing_and_says_the_same(importer: Importer, lastlight: LastLight) -> None:
    lastlight.run(scratch={"large": "x" * 70_000})
    lastlight.execution(session_id="s1")
    lastlight.approval()
    lastlight.log(asked("Plan it", 1), "{torn")
    before = fingerprint(lastlight.root)

    planned = importer.data("lastlight", str(lastlight.root), "--dry-run")

    assert not importer.state.exists()
    assert fingerprint(lastlight.root) == before
    assert importer.data("lastlight", str(lastlight.root)) == planned | {"is_dry_run": False}


def test_second_import_changes_nothing_and_third_adds_only_what_is_new(
    importer: Importer, lastlight: LastLight
) -> None:
    chat: dict[str, Any] = {"skill": "chat", "trigger_type": "chat", "workflow_run_id": None}
    lastlight.run(scratch={"large": "x" * 70_000})
    lastlight.execution(session_id="s1")
    lastlight.execution("e2", 5, session_id="s2", **chat)
    lastlight.approval()
    lastlight.log(asked("Plan it", 1), "{torn")
    path = lastlight.log(asked("One?", 5), said("One.", 5), session="s2", slug="-app")
    importer.data("lastlight", str(lastlight.root))
    before = fingerprint(importer.state / "jobs"), fingerprint(importer.state / "transcripts")
    ledger = fingerprint(importer.state / "ledger")

    again = importer.data("lastlight", str(lastlight.root))

    assert (sum(again["imported"].values()), again["unchanged"]) == (0, 4)
    after = fingerprint(importer.state / "jobs"), fingerprint(importer.state / "transcripts")
    assert (after, fingerprint(importer.state / "ledger")) == (before, ledger)

    lastlight.execution("e3", 8, session_id="s2", **chat)
    lastlight.run("r2", started_at=at(20))
    with path.open("a") as log:
        log.write(json.dumps(asked("Two?", 8)) + "\n")
    third = importer.data("lastlight", str(lastlight.root))
    assert {kind: count for kind, count in third["imported"].items() if count} == {
        "jobs": 1,
        "events": 6,
        "runs": 1,
        "event_logs": 1,
    }
    grown = next(one for one in importer.sessions() if one.runtime_session_id == "s2")
    assert (grown.job_count, grown.message_count) == (2, 3)
    assert [run.number for run in importer.runs()] == [2, 1]
    assert importer.copy("lastlight/-app/s2.jsonl").read_bytes() == path.read_bytes()


def test_run_that_moved_on_since_its_import_stays_as_it_was(
    importer: Importer, older: LastLight
) -> None:
    older.run(status="running", finished_at=None)
    importer.data("lastlight", str(older.root))
    with older.open() as database:
        database.execute("UPDATE workflow_runs SET status = 'succeeded', updated_at = ?", (at(9),))

    data = importer.data("lastlight", str(older.root))

    assert "as it was when it was imported" in data["skipped"][0]["reason"]
    assert importer.run_row().status is RunStatus.CANCELLED


def test_state_is_sound_after_an_import(importer: Importer, lastlight: LastLight) -> None:
    lastlight.run(status="failed")
    lastlight.execution(session_id="s1", success=0, error="no luck")
    lastlight.approval()
    lastlight.log(asked("Plan it", 1), said("A plan", 1))
    importer.data("lastlight", str(lastlight.root))
    rows = importer.query("SELECT * FROM workflow_runs")

    assert importer.run("doctor").code == 0
    (importer.state / "nightherd.db").unlink()
    assert importer.run("doctor", "--rebuild").code == 0
    assert importer.query("SELECT * FROM workflow_runs") == rows


def test_known_secrets_are_masked_but_for_raw_copies(
    importer: Importer, lastlight: LastLight, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-hunter2")
    text = "it is hunter2-hunter2"
    entry = {"phase": "architect", "timestamp": at(2), "success": True, "summary": text}
    lastlight.run(
        phase_history=[entry], context={"error": text}, scratch={"x": text}, status="failed"
    )
    lastlight.execution(session_id="s1", output_text=text)
    lastlight.execution("e2", 3, success=0, error=text)
    lastlight.approval(summary=text, response=text)
    lastlight.log(asked(text, 1), said(text, 1), "broken hunter2-hunter2")

    importer.data("lastlight", str(lastlight.root))

    written = [path for path in importer.state.rglob("*") if path.is_file()]
    leaks = [path for path in written if b"hunter2" in path.read_bytes()]
    assert leaks == [importer.copy("lastlight/-home-agent-workspace/s1.jsonl")]


def test_people_are_shown_what_was_imported(importer: Importer, older: LastLight) -> None:
    older.run()
    older.run("r2", status="odd")

    result = importer("lastlight", str(older.root))

    assert result.out.splitlines()[0] == "imported 1 workflow run"
    assert "lastlight.db: workflow_runs/r2: status is 'odd', which is not known" in result.err
