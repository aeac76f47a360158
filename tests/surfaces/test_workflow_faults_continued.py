"""Known faults of phase-by-phase runners from 26 on, by number; see `test_workflow_faults`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
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
from nightherd.model.access.web import Web
from nightherd.model.change import Why
from nightherd.model.inbox.changes import ExpireItem
from nightherd.model.inbox.item import ItemKind
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.workflows.definition import (
    GateAction,
    GateKind,
    Loop,
)
from nightherd.model.workflows.rows import RunQuery
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.model.workflows.triggers import Concurrency, RunTrigger
from nightherd.testing.run_values import (
    answer,
    begin,
    end,
    gate,
    gate_of,
    in_turn,
    instant,
    job,
    run_id,
    workflow,
)
from nightherd.views.runs.events import RunEvent, RunEventFollower, parse_cursor
from nightherd.views.runs.tail import RunFollower
from nightherd.web.api_context import ApiContext
from nightherd.web.ports import Port, ports_of
from nightherd.wiring.stores import open_feed, open_journals, open_reader, system_clock
from surfaces.workflow_farm import Farm, Field
from web.web_world import free_port, served, token_of, write_fleet
from workflow_fleet import WORKFLOW_FLEET

GATED = workflow(*in_turn(job("dig"), gate("ask"), job("sow")))
ONE = workflow(job("dig"), concurrency=Concurrency(max_runs=1))
LIST = Queries()["list_runs"]


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


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


def jobs_of(farm: Farm, run: RunId) -> Sequence[Job]:
    return farm.read(lambda reader: list(reader.jobs_of_run(run)))


def test_38_39_events_belong_to_the_phase_that_made_them_and_to_no_other_run(
    tmp_path: Path,
) -> None:
    said = "phases: [{name: review, agent: hand, prompt: fix}]"
    farm = Farm(tmp_path, three=THREE, misleading=said)
    runs = [farm.start("three"), farm.start("misleading")]
    farm.work()

    for run in runs:
        shown = farm.shell.run("runs", "tail", run, "-n", "all", "--json").documents
        jobs = jobs_of(farm, run)
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


def is_changed(farm: Farm, *change: str) -> bool:
    return farm.shell.run("schedule", *change).code == 0


def test_44_a_schedule_that_was_switched_and_changed_still_starts_its_workflow(
    tmp_path: Path,
) -> None:
    schedules = 'on: {schedules: {nightly: {cron: "0 2 * * *"}}}\n'
    farm = Farm(tmp_path, three=schedules + THREE)
    name = "workflow:three/nightly"
    try:
        daemon = farm.shell.start("start")
        for change in (["disable", name], ["enable", name], ["set", name, "1s"]):
            farm.wait_until(partial(is_changed, farm, *change))
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
