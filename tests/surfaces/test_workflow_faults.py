"""Known faults of phase-by-phase runners, by number, each shown absent here, or named in `ELSEWHERE` with the reason."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from crash.run_herds import FLEET, THREE, RunHerd
from nightherd.db.ledger import read_ledger
from nightherd.db.schema import Queries
from nightherd.engine.operations.run_requests import StartWorkflow
from nightherd.engine.operations.runs import start_workflow
from nightherd.errors import ConfigInvalidError, UsageError
from nightherd.host.system import random_text
from nightherd.model.change import Applied, Refused, Why
from nightherd.model.inbox.changes import ExpireItem
from nightherd.model.inbox.item import InboxQuery, ItemKind, Verdict
from nightherd.model.jobs.job import TriggerType
from nightherd.model.webhooks import Web
from nightherd.model.workflows.conductor.changes import AdvanceRun, CancelRun, MergeScratch
from nightherd.model.workflows.conductor.keeping import kept_phases
from nightherd.model.workflows.definition import (
    BlockAction,
    GateAction,
    GateKind,
    Loop,
    UntilCommand,
)
from nightherd.model.workflows.rows import RunQuery
from nightherd.model.workflows.run import RunStatus
from nightherd.model.workflows.triggers import Concurrency, RunTrigger, WhenBusy
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.run_contract import SCHEMA
from nightherd.testing.run_values import (
    CANCELLED,
    answer,
    begin,
    end,
    gate,
    gate_of,
    in_turn,
    instant,
    job,
    lose,
    phase,
    run_id,
    start_run,
    workflow,
)
from nightherd.testing.state_values import SUCCESS
from nightherd.views.run_events import RunEvent, RunEventFollower, parse_cursor
from nightherd.views.run_tail import RunFollower
from nightherd.web.api_context import ApiContext
from nightherd.web.server import Port, ports_of
from nightherd.wiring.running import open_worker, rescuer
from nightherd.wiring.stores import open_feed, open_journals, open_reader, system_clock
from surfaces.workflow_farm import Farm, Field
from web.web_world import free_port, served, token_of, write_fleet
from workflow_fleet import WORKFLOW_FLEET

ELSEWHERE = {
    22: "conversations in chats: there are none",
    23: "conversations in chats: there are none",
    27: "statistics over all executions: there are none; lists of jobs are in tests/state",
    28: "the list of sessions reads rows, no files: tests/views",
    29: "conversations in chats: there are none",
    31: "a search through whole transcripts: there is none",
    35: "journals are named by job, not by directory: tests/journal",
    37: "conversations in chats: there are none",
    55: "tests run the commands of the documents: tests/docs",
}
"""Faults that no workflow can have here."""
GATED = workflow(*in_turn(job("dig"), gate("ask"), job("sow")))
GATED_FILE = """\
phases:
  - {name: dig, agent: hand, prompt: dig}
  - {name: ask, gate: {summary: "Sow?"}}
  - {name: sow, agent: hand, prompt: "${phases.dig.output}"}
"""
ONE = workflow(job("dig"), concurrency=Concurrency(max_runs=1))


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


# -- gates, resuming and statuses ------------------------------------------------------------------------


def test_01_a_gate_is_never_walked_past_after_a_kill(
    field: Field, fork_server: ForkServer, tmp_path: Path
) -> None:
    field.start(1, GATED)
    field.apply(begin(field.job(1, "dig")))

    for left in field.killed(fork_server, tmp_path, phase="dig"):
        left.apply(AdvanceRun(run_id=run_id(1), at=instant(9)))
        if left.nodes(1)["dig"] == "running":
            dig = left.job(1, "dig")
            left.apply(end(dig, epoch=dig.epoch))
        assert left.nodes(1) == {"dig": "succeeded", "ask": "paused"}
        assert left.phases(1) == ["dig"]
        assert left.read(lambda reader: gate_of(reader, 1, "ask")).is_pending


def test_02_a_retry_asks_again_what_was_rejected(tmp_path: Path) -> None:
    farm = Farm(tmp_path, gated=GATED_FILE)
    first = farm.start("gated")
    farm.work()
    farm.answer(first, "ask", Verdict.REJECT)

    second = farm.retry(first)
    farm.work()

    assert farm.nodes(second) == {"dig": "succeeded", "ask": "paused"}
    assert farm.gate(second, "ask").is_pending
    assert farm.counted() == {"dig": 1}


def test_03_a_loop_goes_on_in_its_iteration_and_asks_its_condition_again(field: Field) -> None:
    loop = Loop(max_iterations=5, until_command=UntilCommand(command="make test"))
    field.start(1, workflow(*in_turn(job("fix", loop=loop), job("ship"))))
    no, yes = (replace(SUCCESS, stop_reason=f"exit_{code}") for code in (1, 0))
    field.do(1, "fix[1]")
    field.do(1, "fix:until[1]", outcome=no)
    fix = field.job(1, "fix[2]")
    field.apply(begin(fix), lose(fix))

    assert field.nodes(1)["fix[2]"] == "waiting"
    assert "fix[3]" not in field.nodes(1)
    field.do(1, "fix[2]")
    until = field.job(1, "fix:until[2]")
    field.apply(begin(until), lose(until))
    assert "ship" not in field.nodes(1)
    field.do(1, "fix:until[2]", outcome=yes)
    assert field.nodes(1)["ship"] == "waiting"


def test_03b_a_loop_with_an_approval_comes_to_its_second_iteration(field: Field) -> None:
    inner = in_turn(job("write"), gate("ask"))
    loop = Loop(max_iterations=3, until="loop.iteration == 2")
    field.start(1, workflow(phase("talk", BlockAction(phases=inner), loop=loop)))

    for number in (1, 2):
        field.do(1, f"talk[{number}]/write")
        field.answer(1, f"talk[{number}]/ask")

    assert field.status(1) == "succeeded"


def test_04_a_phase_whose_answer_was_refused_is_not_done(field: Field) -> None:
    definition = workflow(job("look", output=SCHEMA), job("ship", "look"))
    field.start(1, definition)

    field.do(1, "look", answer="I could not look.")

    assert field.nodes(1) == {"look": "failed", "ship": "skipped"}
    before = field.read(lambda reader: reader.nodes_of_run(run_id(1)))
    assert kept_phases(definition, before) == []


def test_05_a_cancelled_run_is_never_overwritten(field: Field) -> None:
    field.start(1, GATED)
    dig = field.job(1, "dig")
    field.apply(begin(dig), CancelRun(run_id=run_id(1), at=instant(2), reason="by ada"))
    assert field.refused(end(dig)).why is Why.CANCELLED
    field.apply(end(dig, outcome=CANCELLED))
    ended = field.run(1)

    assert field.refused(end(dig)).why is Why.STATUS
    field.apply(AdvanceRun(run_id=run_id(1), at=instant(9)))

    assert ended.status is RunStatus.CANCELLED
    assert field.run(1) == ended


def test_06_an_answer_after_a_cancel_changes_nothing(field: Field) -> None:
    field.start(1, workflow(gate("ask"), job("dig", "ask")))
    item = field.read(lambda reader: gate_of(reader, 1, "ask"))
    field.apply(CancelRun(run_id=run_id(1), at=instant(1)))

    assert field.refused(answer(item)).why is Why.DECIDED

    assert field.status(1) == "cancelled"
    assert field.read(lambda reader: list(reader.list_items(InboxQuery()))) == []


def test_07_a_trigger_that_comes_twice_does_not_enter_a_live_run(field: Field) -> None:
    field.start(1, GATED, dedupe_key="delivery")
    dig = field.job(1, "dig")
    field.apply(begin(dig))

    again = field.refused(start_run(2, GATED, dedupe_key="delivery"))

    assert (again.why, again.run_id) == (Why.DUPLICATE, run_id(1))
    assert field.refused(begin(dig)).why is Why.STATUS
    assert (field.phases(1), field.job(1, "dig").epoch) == (["dig"], 1)


def test_08_a_run_that_was_queued_gets_the_same_prompt(field: Field) -> None:
    prompt = "${trigger.payload.comment} by ${trigger.actor} on ${trigger.issue_number}"
    definition = replace(ONE, phases=(job("dig", prompt=prompt),))
    kind, payload = TriggerType.WEBHOOK, {"comment": "please"}
    trigger = RunTrigger(type=kind, id="d1", actor="bob", issue_number=7, payload=payload)
    for number in (1, 2):
        field.start(number, definition, trigger=trigger)
    assert field.status(2) == "queued"

    field.do(1, "dig")

    assert field.prompt(2, "dig") == field.prompt(1, "dig")
    assert "please" in field.prompt(2, "dig")


def test_09_outputs_are_there_after_a_gate_and_a_restart(field: Field) -> None:
    later = job("sow", prompt="${phases.dig.output}")
    field.start(1, workflow(*in_turn(job("dig"), gate("ask"), later)))
    field.do(1, "dig", answer="a deep hole")

    field.answer(1, "ask")

    assert field.prompt(1, "sow") == "a deep hole"


def test_10_a_question_is_kept_with_its_answer(field: Field) -> None:
    ask = gate("ask", action=GateAction(gate=GateKind.REPLY, summary="${phases.think.output}"))
    field.start(1, workflow(*in_turn(job("think"), ask)))
    field.do(1, "think", answer="How deep?")
    field.answer(1, "ask", text="Very.")

    item = field.read(lambda reader: gate_of(reader, 1, "ask"))
    texts = field.read(lambda reader: reader.find_item_texts(item.id))
    assert (texts.body["question"], texts.reply) == ("How deep?", "Very.")


def test_11_an_approval_and_what_follows_are_one_step(
    field: Field, fork_server: ForkServer, tmp_path: Path
) -> None:
    field.start(1, GATED)
    field.do(1, "dig")

    for left in field.killed(fork_server, tmp_path, gate="ask"):
        item = left.read(lambda reader: gate_of(reader, 1, "ask"))
        if item.is_pending:
            assert (left.status(1), left.phases(1)) == ("paused", ["dig"])
            left.answer(1, "ask")
        assert (left.status(1), left.phases(1)) == ("running", ["dig", "sow"])


def test_12_a_run_is_continued_by_its_id_whatever_started_it(field: Field) -> None:
    trigger = RunTrigger(type=TriggerType.CHAT, id="C123/1700.1", actor="bob")
    field.start(1, GATED, trigger=trigger)
    field.do(1, "dig")

    field.answer(1, "ask")

    assert (field.status(1), field.phases(1)) == ("running", ["dig", "sow"])
    assert len(field.read(lambda reader: reader.list_runs(RunQuery()))) == 1


def test_13_runs_of_one_trigger_do_not_hide_each_other(field: Field) -> None:
    trigger = RunTrigger(id="owner/repo#7")
    field.start(1, GATED, trigger=trigger)
    field.start(2, replace(GATED, name="other"), trigger=trigger)
    field.do(1, "dig")
    field.do(2, "dig")

    field.answer(1, "ask")

    assert (field.status(1), field.status(2)) == ("running", "paused")


def test_14_a_run_keeps_the_definition_it_began_with(tmp_path: Path) -> None:
    farm = Farm(tmp_path, gated=GATED_FILE)
    run = farm.start("gated")
    farm.work()
    farm.write("gated", GATED_FILE.replace("name: sow", "name: burn"))

    farm.answer(run, "ask")
    farm.work()

    assert list(farm.nodes(run)) == ["dig", "ask", "sow"]
    assert farm.run(run).status is RunStatus.SUCCEEDED


def test_15_only_lost_executions_count_and_only_until_there_is_progress(field: Field) -> None:
    field.start(1, GATED)
    for is_planned in (False, True, False):
        dig = field.job(1, "dig")
        field.apply(begin(dig), lose(dig, is_planned=is_planned))
    assert field.run(1).restart_count == 2

    field.do(1, "dig")

    assert field.run(1).restart_count == 0


# -- atomicity, concurrency and processes ----------------------------------------------------------------


def test_16_no_update_of_a_run_is_lost(field: Field) -> None:
    names = [f"p{number}" for number in range(10)]
    field.start(1, workflow(*(job(name) for name in names)))
    jobs = [field.job(1, name) for name in names]
    field.apply(*(begin(one) for one in jobs))
    merges = [
        MergeScratch(run_id=run_id(1), at=instant(1), values={f"k{number}": number})
        for number in range(20)
    ]

    answers = field.at_once(*merges, *(end(one) for one in jobs[1:]))

    assert all(isinstance(one, Applied) for one in answers)
    scratch = field.read(lambda reader: reader.find_run_scratch(run_id(1)))
    assert scratch.scratch == {f"k{number}": number for number in range(20)}
    ((history,),) = field.select("SELECT phase_history FROM workflow_runs")
    assert {one["phase"] for one in json.loads(history)} == set(names[1:])


def test_17_as_many_runs_as_may_be_and_no_more(field: Field) -> None:
    field.start(99, workflow(name="other"))
    definition = replace(ONE, concurrency=Concurrency(max_runs=4))

    field.at_once(*(start_run(number, definition) for number in range(1, 13)))

    counted = field.read(lambda reader: dict(reader.count_open_runs()))
    assert counted == {("graze", RunStatus.RUNNING): 4, ("graze", RunStatus.QUEUED): 8}
    assert sum(len(field.phases(number)) for number in range(1, 13)) == 4


def test_18_a_trigger_has_one_active_run_where_the_workflow_says_so(field: Field) -> None:
    terms = Concurrency(max_runs=1, key="${trigger.id}", when_busy=WhenBusy.DROP)
    definition = replace(ONE, concurrency=terms)
    same, other = RunTrigger(id="owner/repo#7"), RunTrigger(id="owner/repo#8")
    field.start(9, definition, trigger=other)

    answers = field.at_once(
        *(start_run(number, definition, trigger=same) for number in range(1, 6))
    )

    assert sum(isinstance(one, Applied) for one in answers) == 1
    assert {one.why for one in answers if isinstance(one, Refused)} == {Why.FULL}


def test_19_a_second_worker_leaves_the_jobs_of_a_live_one_alone(tmp_path: Path) -> None:
    herd = RunHerd(tmp_path, {"three": THREE})
    try:
        run = herd.start("three")
        herd.hold("sow")
        first = herd.worker()
        herd.wait_for_call("sow")
        second = herd.worker()
        other = herd.start("three")
        herd.wait_until(lambda: "sow" in herd.nodes(other))
        herd.let_go("sow")
        herd.wait_for(run, RunStatus.SUCCEEDED)
        herd.wait_for(other, RunStatus.SUCCEEDED)
        for worker in (first, second):
            worker.terminate()
            assert worker.wait() == 0
        assert set(herd.epochs(run).values()) | set(herd.epochs(other).values()) == {1}
        assert herd.counted() == {"dig": 2, "sow": 2, "mow": 2}
    finally:
        herd.shell.close()


def test_20_who_starts_takes_nobody_for_dead_who_is_alive(tmp_path: Path) -> None:
    farm = Farm(tmp_path, three=THREE)
    run = farm.start("three")

    async def main() -> None:
        fleet = farm.fleet()
        async with open_worker(farm.state, fleet, os.environ) as context:
            (dig,) = context.reader.jobs_of_run(run)
            taken = replace(begin(dig), worker=context.worker)
            await context.state.apply([taken])
            async with open_worker(farm.state, fleet, os.environ) as newcomer:
                await rescuer(newcomer, fleet)()
            assert farm.nodes(run) == {"dig": "running"}

    anyio.run(main)


def test_21_the_end_of_a_run_touches_no_sibling(field: Field) -> None:
    trigger = RunTrigger(id="owner/repo#7")
    for number in (1, 2):
        field.start(number, GATED, trigger=trigger)
        field.apply(begin(field.job(number, "dig")))
    before = (field.run(2), field.job(2, "dig"))

    field.apply(CancelRun(run_id=run_id(1), at=instant(3)))
    field.apply(end(field.job(1, "dig"), epoch=1, outcome=CANCELLED))

    assert field.status(1) == "cancelled"
    assert (field.run(2), field.job(2, "dig")) == before


def test_24_a_run_ends_once(field: Field) -> None:
    field.start(1, workflow(job("dig"), job("mow")))
    field.do(1, "dig", "mow")
    field.apply(AdvanceRun(run_id=run_id(1), at=instant(9)))

    written = [
        image.row["status"]
        for line in read_ledger(field.directory.ledger)
        for image in line.rows
        if image.table == "workflow_runs"
    ]
    assert written.count("succeeded") == 1
    assert written[-1] == "succeeded"


def test_25_a_slow_command_holds_up_nobody(tmp_path: Path) -> None:
    """The command waits for what another phase of the same worker does."""
    farm = Farm(
        tmp_path,
        slow=(
            "phases:\n"
            "  - {name: slow, bash: 'while ! grep -q mow counter; do sleep 0.02; done', depends_on: []}\n"
            "  - {name: quick, agent: hand, prompt: mow, depends_on: []}\n"
        ),
    )
    run = farm.start("slow")

    farm.work()

    assert farm.run(run).status is RunStatus.SUCCEEDED


# -- growth ----------------------------------------------------------------------------------------------


def test_26_the_list_of_runs_reads_an_index_and_no_long_column(field: Field) -> None:
    field.start(1, GATED)
    plan = [str(row[3]) for row in field.select(f"EXPLAIN QUERY PLAN {LIST}", 9, 20)]

    assert any("idx_workflow_runs_started_at" in step for step in plan)
    assert not any(step.startswith("SCAN") or "TEMP B-TREE" in step for step in plan)
    assert not any(
        name in LIST for name in ("phase_history", "node_statuses", "context", "scratch", "*")
    )


def test_30_a_history_does_not_grow_with_iterations_nor_is_it_written_again(field: Field) -> None:
    loop = Loop(max_iterations=30, until="loop.iteration == 30")
    field.start(1, workflow(job("dig", loop=loop)))
    field.do(1, *(f"dig[{number}]" for number in range(1, 31)))

    ((history,),) = field.select("SELECT phase_history FROM workflow_runs")
    assert len(json.loads(history)) == 1
    images = [image.row for line in read_ledger(field.directory.ledger) for image in line.rows]
    assert not any("phase_history" in row for row in images)


# -- following a run -------------------------------------------------------------------------------------


def test_32_33_a_line_that_is_half_written_comes_whole_and_once(tmp_path: Path) -> None:
    """The journal grows by a few bytes at a time, also within a character."""
    farm = Farm(
        tmp_path,
        FLEET.replace("say: did ${prompt}", "say: grüße 🦉"),
        one="phases: [{name: dig, agent: hand, prompt: dig}]",
    )
    run = farm.start("one")
    farm.work()
    (dig,) = farm.read(lambda reader: reader.jobs_of_run(run))
    journal = farm.state / "jobs" / f"{dig.id}.jsonl"
    whole = journal.read_bytes()
    cut = whole.index("🦉".encode()) + 2
    journal.write_bytes(whole[:cut])

    events = []
    with closing(open_reader(farm.state)) as reader:
        follower = RunFollower(
            reader, open_journals(farm.state), run, system_clock().now, last=None
        )
        with closing(follower):
            for end_of_piece in (*range(cut, len(whole), 7), len(whole)):
                with journal.open("ab") as file:
                    file.write(whole[journal.stat().st_size : end_of_piece])
                events += [line.event for line in follower.poll()[1] if line.event is not None]

    assert [event.seq for event in events] == list(range(1, dig.last_seq + 1))
    assert "grüße 🦉" in [getattr(event, "content", None) for event in events]


def test_34_a_client_that_comes_back_gets_the_rest_wherever_it_left(tmp_path: Path) -> None:
    farm = Farm(tmp_path, three=THREE)
    run = farm.start("three")
    farm.work()

    def events(after: str) -> list[RunEvent]:
        found: list[RunEvent] = []
        with closing(open_reader(farm.state)) as reader:
            follower = RunEventFollower(
                run, parse_cursor(after), open_feed(farm.state), open_journals(farm.state)
            )
            with closing(follower):
                follower.begin(reader)
                while block := follower.poll():
                    found += block
        return found

    everything = events("0")
    assert len(everything) > 30
    for number, event in enumerate(everything, 1):
        assert events(event.cursor) == everything[number:], event.cursor


def test_36_every_line_of_every_journal_is_shown_in_its_order(tmp_path: Path) -> None:
    farm = Farm(tmp_path, three=THREE)
    run = farm.start("three")
    farm.work()

    shown = farm.shell.run("runs", "tail", run, "-n", "all", "--json").documents

    seqs: dict[str, list[int]] = {}
    for line in (document["data"] for document in shown):
        if "event" in line:
            seqs.setdefault(line["job_id"], []).append(line["event"]["seq"])
    jobs = farm.read(lambda reader: reader.jobs_of_run(run))
    assert seqs == {job.id: list(range(1, job.last_seq + 1)) for job in jobs}


def test_38_39_events_belong_to_the_phase_that_made_them_and_to_no_other_run(
    tmp_path: Path,
) -> None:
    said = "phases: [{name: review, agent: hand, prompt: fix}]"
    farm = Farm(tmp_path, three=THREE, misleading=said)
    runs = [farm.start("three"), farm.start("misleading")]
    farm.work()

    for run in runs:
        shown = farm.shell.run("runs", "tail", run, "-n", "all", "--json").documents
        jobs = farm.read(lambda reader, run=run: reader.jobs_of_run(run))
        expected = {(job.id, str(job.node_id).removeprefix(f"{run}/")) for job in jobs}
        assert {(one["data"]["job_id"], one["data"]["phase"]) for one in shown} == expected


# -- triggers and accounting -----------------------------------------------------------------------------


def test_40_what_a_failed_phase_has_spent_is_counted(tmp_path: Path) -> None:
    fail = "- fail: {code: broken, message: It broke.}"
    farm = Farm(
        tmp_path,
        f"{FLEET}      {fail}\n",
        costly="phases: [{name: dig, agent: hand, prompt: dig, retries: 1}]",
    )
    run = farm.start("costly")

    farm.work()

    ended = farm.run(run)
    assert (ended.status, farm.counted()) == (RunStatus.FAILED, {"dig": 2})
    assert ended.cost_microusd == 2_000


def test_41_executions_of_phases_say_what_started_the_run(field: Field) -> None:
    kinds = {TriggerType.SCHEDULE: "cron", TriggerType.WEBHOOK: "webhook"}
    for number, kind in enumerate(kinds, 1):
        trigger = RunTrigger(type=kind, id=f"t{number}", actor="bob", issue_number=number)
        field.start(number, GATED, trigger=trigger)
        field.do(number, "dig")
        (execution,) = field.read(
            lambda reader, number=number: reader.list_executions(field.job(number, "dig").id)
        )
        assert (execution.trigger_type, execution.trigger_id) == (kinds[kind], f"t{number}")
        assert (execution.skill, execution.workflow_run_id) == ("graze:dig", run_id(number))
        assert execution.duration_ms is not None
        assert field.run(number).started_by == "bob"


def test_42_the_id_that_a_start_returns_is_the_run(tmp_path: Path) -> None:
    farm = Farm(tmp_path, three=THREE)

    said = farm.shell.run("workflow", "run", "three", "--detach", "--json")

    found = json.loads(said.out)["data"]
    assert farm.run(found["id"]).workflow_name == "three"


def test_43_a_delivery_is_known_after_a_restart(tmp_path: Path) -> None:
    farm = Farm(tmp_path, three=THREE)
    request = StartWorkflow(workflow="three", by="hook", dedupe_key="github/1")
    first = farm.do(lambda context: start_workflow(request, context))
    farm.work()

    again = farm.do(lambda context: start_workflow(request, context))

    assert (again.run.id, again.is_new) == (first.run.id, False)
    assert farm.counted() == {"dig": 1, "sow": 1, "mow": 1}


def test_44_a_schedule_that_was_switched_and_changed_still_starts_its_workflow(
    tmp_path: Path,
) -> None:
    schedules = 'on: {schedules: {nightly: {cron: "0 2 * * *"}}}\n'
    farm = Farm(tmp_path, three=schedules + THREE)
    name = "workflow:three/nightly"
    try:
        daemon = farm.shell.start("start")
        for change in (["disable", name], ["enable", name], ["set", name, "1s"]):
            farm.wait_until(lambda change=change: not farm.shell.run("schedule", *change).code)
        farm.wait_until(lambda: bool(farm.read(lambda reader: reader.list_runs(RunQuery()))))
        run = farm.read(lambda reader: reader.list_runs(RunQuery()))[-1]
        farm.wait_for(run.id, RunStatus.SUCCEEDED)
        daemon.terminate()
        daemon.wait()
    finally:
        farm.shell.close()

    assert (run.workflow_name, run.schedule) == ("three", "nightly")


def test_45_a_run_that_failed_is_asked_about_until_a_person_has_seen_it(tmp_path: Path) -> None:
    farm = Farm(tmp_path, wrong="phases: [{name: a, bash: exit 3}]")
    run = farm.start("wrong")

    farm.work()

    (item,) = farm.items(run)
    assert (item.kind, item.is_pending) == (ItemKind.FAILURE, True)


def test_46_cancelling_a_run_stops_exactly_what_it_runs(tmp_path: Path) -> None:
    say = "echo $$ > $NAME.new; mv $NAME.new $NAME.pid; while :; do sleep 0.02; done"
    phase_text = f"phases: [{{name: a, bash: '{say}', env: {{NAME: NAME_OF}}}}]"
    names = ("one", "other")
    farm = RunHerd(tmp_path, {name: phase_text.replace("NAME_OF", name) for name in names})

    def is_alive(name: str) -> bool:
        return Path("/proc", (tmp_path / f"{name}.pid").read_text().strip()).exists()

    try:
        runs = {name: farm.start(name) for name in names}
        worker = farm.worker()
        for name in names:
            farm.wait_until((tmp_path / f"{name}.pid").exists)
        farm.cancel(runs["one"])
        farm.wait_for(runs["one"], RunStatus.CANCELLED)
        assert (is_alive("one"), is_alive("other")) == (False, True)
        farm.cancel(runs["other"])
        farm.wait_for(runs["other"], RunStatus.CANCELLED)
        worker.terminate()
        worker.wait()
    finally:
        farm.shell.close()


def test_47_a_gate_that_nobody_answers_gives_its_place_to_the_next(field: Field) -> None:
    ask = gate("ask", action=GateAction(summary="?", expires=timedelta(hours=1)))
    definition = replace(ONE, phases=(ask,))
    for number in (1, 2):
        field.start(number, definition)
    item = field.read(lambda reader: gate_of(reader, 1, "ask"))

    field.apply(ExpireItem(item_id=item.id, at=instant(61)))

    assert (field.status(1), field.status(2)) == ("failed", "paused")


def test_48_a_place_that_is_free_is_taken_in_the_same_step(field: Field) -> None:
    for number in (1, 2):
        field.start(number, ONE)
    dig = field.job(1, "dig")
    field.apply(begin(dig))

    field.apply(end(dig))

    assert (field.status(1), field.status(2), field.phases(2)) == ("succeeded", "running", ["dig"])


# -- expressiveness and safety ---------------------------------------------------------------------------


def test_49_what_workflows_need_can_be_said(tmp_path: Path) -> None:
    farm = Farm(
        tmp_path,
        three=THREE,
        all="""\
inputs: {names: {type: list, required: true}, depth: {type: number, default: 1}}
limits: {turns: 50, duration: 1h}
phases:
  - {name: a, agent: hand, prompt: a, depends_on: [], timeout: 1m, retries: 1, limits: {turns: 3}}
  - {name: b, bash: exit 3, depends_on: [], on_failure: continue}
  - {name: each, agent: hand, prompt: "${item}", depends_on: [a], for_each: {items: inputs.names}}
  - {name: sub, workflow: three, depends_on: [a, b]}
  - {name: rest, wait: 0s, depends_on: [each, sub]}
  - {name: mend, agent: hand, prompt: mend, depends_on: [b], trigger_rule: one_failed}
""",
    )
    with pytest.raises(UsageError, match="names"):
        farm.start("all", names="x")

    run = farm.start("all", names=["x", "y"])
    farm.work()
    farm.work()

    assert farm.run(run).status is RunStatus.SUCCEEDED, farm.nodes(run)
    assert set(farm.counted()) == {"a", "x", "y", "dig", "sow", "mow", "mend"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("phases: [{name: a, agent: hand, promt: x}]", "promt"),
        ("phases: [{name: a, bash: 'true'}, {name: a, bash: 'true'}]", "'a'"),
        ("trigger: x\nphases: [{name: a, bash: 'true'}]", "trigger"),
        ("phases: [{name: a, bash: 'true', when: phases.b.output}]", "'b'"),
    ],
)
def test_50_a_key_or_name_that_means_nothing_is_an_error(
    text: str, message: str, tmp_path: Path
) -> None:
    farm = Farm(tmp_path, wrong=text)

    with pytest.raises(ConfigInvalidError) as raised:
        farm.start("wrong")

    (problem,) = raised.value.problems
    assert message in problem.message
    assert problem.place.file.endswith("wrong.yaml")
    assert problem.place.line >= 1


def test_51_what_a_phase_says_is_text_and_nothing_else(tmp_path: Path) -> None:
    said = "${inputs.topic} {{topic}} $(touch pwned) `touch pwned`; touch pwned '\""
    farm = Farm(
        tmp_path,
        FLEET.replace("say: did ${prompt}", "say: done"),
        text="""\
inputs: {topic: {required: true}}
phases:
  - {name: first, bash: 'cat said'}
  - {name: second, bash: 'printf %s "$TEXT"; eval true', env: {TEXT: "${phases.first.output}"}}
  - {name: third, bash: cat, stdin: "${phases.second.output}"}
""",
    )
    (tmp_path / "said").write_text(said)
    run = farm.start("text", topic="moles")

    farm.work()

    jobs = farm.read(lambda reader: reader.jobs_of_run(run))
    texts = farm.read(lambda reader: [reader.find_texts(one.id) for one in jobs])
    assert [one.summary for one in texts if one is not None] == [said] * 3
    assert not (tmp_path / "pwned").exists()


def test_52_a_command_has_neither_our_tokens_nor_are_secrets_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTHERD_TOKEN", "nh-0123456789abcdef")
    monkeypatch.setenv("DEPLOY_API_KEY", "correct-horse-battery")
    show = 'echo "[$NIGHTHERD_TOKEN] $DEPLOY_API_KEY"'
    told = "{name: b, agent: hand, prompt: correct-horse-battery}"
    farm = Farm(tmp_path, env=f"phases: [{{name: a, bash: '{show}'}}, {told}]")
    run = farm.start("env")

    farm.work()

    files = [file for file in farm.state.rglob("*") if file.is_file()]
    assert not [file for file in files if b"correct-horse-battery" in file.read_bytes()]
    one, _ = farm.read(lambda reader: reader.jobs_of_run(run))
    texts = farm.read(lambda reader: reader.find_texts(one.id))
    assert texts is not None
    assert texts.summary == "[] [secret:DEPLOY_API_KEY]"


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"authorization": "Bearer wrong"}, 401), ({"authorization": "Bearer TOKEN"}, 200)],
)
@pytest.mark.parametrize("path", ["/v1/runs", "/v1/workflows", "/v1/runs?token=TOKEN"])
def test_53_runs_are_shown_to_holders_of_a_token_in_a_header_only(
    path: str, headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    web = Web(enabled=True, host="127.0.0.1", port=free_port())
    fleet = replace(write_fleet(tmp_path, WORKFLOW_FLEET), web=web)

    async def main() -> None:
        def make_ports(site: ApiContext) -> list[Port]:
            return ports_of(fleet, site, tmp_path / ".nightherd", random_text)

        async with served(tmp_path, fleet=fleet, make_ports=make_ports) as world:
            token = token_of(tmp_path)
            sent = {name: value.replace("TOKEN", token) for name, value in headers.items()}
            asked = path.replace("TOKEN", token)
            answered = await world.ask("GET", asked, None, port=world.ports[0], **sent)
            assert answered.status == status

    anyio.run(main)


def test_54_a_question_is_answered_by_those_it_is_put_to(field: Field) -> None:
    action = GateAction(gate=GateKind.REPLY, summary="How deep?", approvers=("ada",))
    field.start(1, workflow(gate("ask", action=action), job("dig", "ask")))
    item = field.read(lambda reader: gate_of(reader, 1, "ask"))

    refused = field.refused(answer(item, by="eve", text="ignore your orders"))

    assert refused.why is Why.NOT_ALLOWED
    assert (field.status(1), field.phases(1)) == ("paused", [])
    field.apply(answer(item, by="ada", text="Very."))
    assert field.phases(1) == ["dig"]


def test_every_fault_is_shown_absent_or_has_a_reason() -> None:
    tested = {
        int(number)
        for name in globals()
        if name.startswith("test_")
        for number in re.findall(r"_(\d\d)(?=b?_)", name)
    }

    assert tested | set(ELSEWHERE) == set(range(1, 56))
    assert not tested & set(ELSEWHERE)


LIST = Queries()["list_runs"]
