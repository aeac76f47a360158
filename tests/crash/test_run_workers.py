"""Runs and real workers: killed, several at once, cancelled, and with files that are edited meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from crash.run_herds import FLEET, THREE, RunHerd
from crash.run_trials import MERGE, START
from nightherd.errors import RefusedError
from nightherd.model.change import Applied
from nightherd.model.inbox.item import ItemStatus, Verdict
from nightherd.model.jobs.job import JobQuery
from nightherd.model.workflows.rows import RunQuery
from nightherd.model.workflows.run import RunStatus
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.run_values import gate, in_turn, job, run_id, start_run, workflow
from nightherd.wiring.stores import open_repair

MakeHerd = Callable[..., RunHerd]
EACH = """\
inputs: {names: {type: list, required: true}}
phases:
  - {name: each, agent: hand, prompt: "${item}", for_each: {items: inputs.names, max_parallel: 4}}
  - {name: last, agent: hand, prompt: last}
"""
GATED = """\
phases:
  - {name: dig, agent: hand, prompt: dig}
  - {name: ask, gate: {summary: "Sow?"}}
  - {name: sow, agent: hand, prompt: sow}
"""
PARENT = """\
phases:
  - {name: sub, workflow: three}
  - {name: eat, agent: hand, prompt: eat}
"""
PICKY = """\
phases:
  - name: look
    bash: |
      echo x >> tries
      if [ "$(wc -l < tries)" -gt 1 ]; then echo '{"ok": true}'; else echo 'no idea'; fi
    output: {type: object, properties: {ok: {type: boolean}}, required: [ok]}
    retries: 2
  - {name: sow, agent: hand, prompt: sow, when: phases.look.output.ok}
"""
PAUSED = 1_000
JOBS = JobQuery(limit=100)


@pytest.fixture
def make_herd(tmp_path: Path) -> Iterator[MakeHerd]:
    made: list[RunHerd] = []

    def make(fleet: str = FLEET, **workflows: str) -> RunHerd:
        made.append(RunHerd(tmp_path, workflows, fleet))
        return made[-1]

    yield make
    for herd in made:
        herd.shell.close()


def test_run_of_a_killed_worker_goes_on_in_the_phase_it_was_in(make_herd: MakeHerd) -> None:
    herd = make_herd(three=THREE)
    run = herd.start("three")

    herd.kill_in("sow")
    assert herd.nodes(run) == {"dig": "succeeded", "sow": "running"}
    herd.work()

    assert herd.run(run).status is RunStatus.SUCCEEDED
    assert herd.counted() == {"dig": 1, "sow": 1, "mow": 1}
    assert herd.epochs(run) == {"dig": 1, "sow": 2, "mow": 1}
    assert herd.run(run).cost_microusd == 3_000


def test_two_workers_do_every_phase_of_a_run_once(make_herd: MakeHerd) -> None:
    herd = make_herd(each=EACH)
    names = [f"n{number}" for number in range(12)]
    run = herd.start("each", names=names)

    herd.work(2)
    herd.work()

    assert herd.run(run).status is RunStatus.SUCCEEDED
    assert herd.counted() == dict.fromkeys([*names, "last"], 1)
    assert set(herd.epochs(run).values()) == {1}


def test_cancelling_and_completing_at_once_leave_one_of_them(make_herd: MakeHerd) -> None:
    herd = make_herd(three=THREE)
    worker = herd.worker()
    seen = set()
    for number in range(6):
        herd.hold("mow")
        run = herd.start("three")
        herd.wait_until(lambda done=number: herd.counted()["mow"] > done)  # type: ignore[misc]
        # The order of these two is the race.
        if number % 2:
            herd.let_go("mow")
        with suppress(RefusedError):  # it was done before
            herd.cancel(run)
        if not number % 2:
            herd.let_go("mow")
        herd.wait_until(lambda run=run: herd.run(run).is_terminal)  # type: ignore[misc]
        ended = herd.run(run)
        seen.add(ended.status)
        is_cancelled = ended.stopping is not None
        assert ended.status is (RunStatus.CANCELLED if is_cancelled else RunStatus.SUCCEEDED)
        last = herd.nodes(run)["mow"]
        assert last == ("cancelled" if is_cancelled else "succeeded")
        assert herd.run(run) == ended
    worker.terminate()
    assert worker.wait() == 0
    assert RunStatus.CANCELLED in seen


def test_scratch_keeps_what_twenty_processes_write_at_once(
    make_herd: MakeHerd, fork_server: ForkServer
) -> None:
    herd = make_herd(three=THREE)
    run = herd.start("three")
    orders = [{"state": str(herd.state), "run": run, "key": f"k{n}"} for n in range(20)]

    ended = fork_server.run_all(MERGE, orders)

    assert [one.status for one in ended] == [0] * 20, ended
    scratch = herd.read(lambda reader: reader.find_run_scratch(run))
    assert scratch is not None
    assert scratch.scratch == {f"k{n}": n * [n] for n in range(20)}


def test_request_that_comes_from_eight_processes_at_once_starts_one_run(
    make_herd: MakeHerd, fork_server: ForkServer
) -> None:
    herd = make_herd(three=THREE)
    order = {"folder": str(herd.folder), "workflow": "three", "key": "delivery-1"}

    ended = fork_server.run_all(START, [order] * 8)

    assert [one.status for one in ended] == [0] * 8, ended
    said = [one.said[0].split() for one in ended]
    assert len({name for name, _ in said}) == 1
    assert sorted(is_new for _, is_new in said) == ["False"] * 7 + ["True"]
    assert len(herd.read(lambda reader: reader.list_runs(RunQuery()))) == 1
    assert len(herd.read(lambda reader: reader.list_jobs(JOBS))) == 1


def test_gate_waits_for_people_whoever_dies_and_is_asked_again_after_a_rejection(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd(gated=GATED)
    first = herd.start("gated")
    herd.kill_in("dig")
    herd.work()
    assert herd.run(first).status is RunStatus.PAUSED
    assert herd.gate(first, "ask").is_pending

    herd.answer(first, "ask", Verdict.REJECT, "too wet")
    assert herd.run(first).status is RunStatus.FAILED
    second = herd.retry(first)
    herd.work()

    assert herd.run(second).status is RunStatus.PAUSED
    assert herd.nodes(second) == {"dig": "succeeded", "ask": "paused"}
    assert herd.gate(first, "ask").status is ItemStatus.REJECTED
    herd.answer(second, "ask")
    herd.work()
    assert herd.run(second).status is RunStatus.SUCCEEDED
    assert herd.counted() == {"dig": 1, "sow": 1}


def test_answer_that_does_not_fit_its_schema_is_asked_for_again(make_herd: MakeHerd) -> None:
    herd = make_herd(picky=PICKY)
    run = herd.start("picky")

    herd.work()

    assert herd.nodes(run) == {"look": "failed", "look#2": "succeeded", "sow": "succeeded"}
    assert herd.run(run).status is RunStatus.SUCCEEDED
    assert herd.counted("tries") == {"x": 2}


def test_run_keeps_the_files_it_began_with(make_herd: MakeHerd) -> None:
    herd = make_herd(three=THREE, parent=PARENT)
    run, above = herd.start("three"), herd.start("parent")
    herd.write("three", THREE.replace("prompt: mow", "prompt: burn"))
    edited = FLEET.replace("say: did ${prompt}", "say: burned ${prompt}")
    (herd.folder / "nightherd.yaml").write_text(edited)
    herd.kill_in("sow")
    for file in (herd.folder / "workflows").iterdir():
        file.unlink()

    herd.work()

    assert herd.run(run).status is RunStatus.SUCCEEDED
    assert herd.run(above).status is RunStatus.SUCCEEDED
    assert set(herd.counted()) == {"dig", "sow", "mow", "eat"}
    (job,) = [one for one in herd.read(lambda r: r.jobs_of_run(run)) if "mow" in str(one.node_id)]
    texts = herd.read(lambda reader: reader.find_texts(job.id))
    assert texts is not None
    assert texts.summary == "did mow"


def test_permission_that_an_agent_loses_is_lost_to_runs_that_have_begun(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd(gated=GATED)
    run = herd.start("gated")
    herd.work()
    narrowed = FLEET.replace("allowed_tools: [Bash]", "denied_tools: [Bash]")
    (herd.folder / "nightherd.yaml").write_text(narrowed)

    herd.answer(run, "ask")
    herd.work()

    assert herd.counted() == {"dig": 1}


def test_cancelled_run_stops_the_worker_in_the_run_below_it(make_herd: MakeHerd) -> None:
    herd = make_herd(three=THREE, parent=PARENT)
    above = herd.start("parent")
    (below,) = herd.read(lambda reader: reader.runs_of_parent(above))
    herd.hold("sow")
    worker = herd.worker()
    herd.wait_for_call("sow")

    herd.cancel(above)

    herd.wait_for(above, RunStatus.CANCELLED)
    worker.terminate()
    assert worker.wait() == 0
    assert herd.run(below.id).status is RunStatus.CANCELLED
    assert herd.nodes(below.id) == {"dig": "succeeded", "sow": "cancelled"}
    assert herd.nodes(above) == {"sub": "cancelled"}
    assert herd.counted() == {"dig": 1, "sow": 1}


def test_thousand_paused_runs_wait_through_a_restart_and_take_no_worker(
    make_herd: MakeHerd,
) -> None:
    herd = make_herd(gated=GATED)
    definition = workflow(*in_turn(gate("ask"), job("dig")), name="gated")

    async def start() -> None:
        async with open_repair(herd.state) as record:
            changes = [start_run(number, definition) for number in range(1, PAUSED + 1)]
            answers = await record.state.apply(changes)
            assert all(isinstance(one, Applied) for one in answers)

    herd.do(lambda context: anyio.lowlevel.checkpoint())
    anyio.run(start)
    herd.work()

    counted = herd.read(lambda reader: dict(reader.count_open_runs()))
    assert counted == {("gated", RunStatus.PAUSED): PAUSED}
    assert herd.read(lambda reader: reader.list_jobs(JOBS)) == []
    herd.answer(run_id(500), "ask")
    assert herd.nodes(run_id(500)) == {"ask": "succeeded", "dig": "waiting"}
    counted = herd.read(lambda reader: dict(reader.count_open_runs()))
    assert counted[("gated", RunStatus.PAUSED)] == PAUSED - 1
