"""Known faults of phase-by-phase runners, by number, each shown absent.

1 to 25 are here, the others in `test_workflow_faults_continued`. What no workflow can have is in `ELSEWHERE`.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from crash.run_herds import THREE, RunHerd
from nightherd.db.ledger import read_ledger
from nightherd.model.change import Applied, Refused, Why
from nightherd.model.inbox.item import InboxQuery, Verdict
from nightherd.model.jobs.job import TriggerType
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
from nightherd.testing.contracts.run import SCHEMA
from nightherd.testing.fork_server import ForkServer
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
from nightherd.wiring.running import open_worker, rescuer
from surfaces import test_workflow_faults_continued as continued
from surfaces.workflow_farm import Farm, Field

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


def test_every_fault_is_shown_absent_or_has_a_reason() -> None:
    tested = {
        int(number)
        for name in (*globals(), *vars(continued))
        if name.startswith("test_")
        for number in re.findall(r"_(\d\d)(?=b?_)", name)
    }

    assert tested | set(ELSEWHERE) == set(range(1, 56))
    assert not tested & set(ELSEWHERE)
