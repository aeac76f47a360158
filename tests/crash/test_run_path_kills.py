"""Workers killed anywhere on their way through a run: every gate is asked once, and nothing is walked past."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crash.ground import Ground, check_doctor_leaves_nothing, is_killed, places
from crash.run_herds import FLEET, RunHerd
from nightherd.model.inbox.item import ItemKind
from nightherd.model.workflows.run import RunId, RunStatus
from soak import often

PATH = """\
phases:
  - {name: dig, agent: hand, prompt: dig}
  - name: polish
    agent: hand
    prompt: polish
    loop: {max_iterations: 9, fresh_context: true, until_command: {bash: 'test "$(grep -c polish counter)" -ge 2'}}
  - {name: ask, gate: {summary: "Sow?"}}
  - {name: sow, agent: hand, prompt: sow}
"""
KILLS = often(8, soak=400)
POINTS = ("db.", "ledger.", "journal.", "outbox.")
"""How the points begin at which something is on record, or not yet."""
MakeGround = Callable[[str], Ground]


@pytest.fixture
def ground(make_ground: MakeGround) -> Ground:
    return make_ground(FLEET)


def herd_in(ground: Ground) -> RunHerd:
    return RunHerd(ground.folder, {"path": PATH})


def work(ground: Ground) -> None:
    ended = ground.command("worker", "--until-idle")
    assert ended.status == 0, ground.shown()


def test_run_comes_to_its_gate_wherever_its_worker_was_killed(ground: Ground) -> None:
    with ground.copied() as trial:
        run = herd_in(trial).start("path")
        said = trial.command("worker", "--until-idle").said
        check_waits_at_the_gate(herd_in(trial), run)
    ways = [place for place in places(said) if place.point.startswith(POINTS)]
    assert len(ways) > 3 * KILLS or len(ways) >= KILLS
    for number in range(KILLS):
        place = ways[number * len(ways) // KILLS]
        with ground.copied() as trial:
            run = herd_in(trial).start("path")
            ended = trial.command("worker", "--until-idle", place=place)
            assert is_killed(ended), (place, ended)
            herd = herd_in(trial)
            assert "sow" not in herd.counted(), place

            work(trial)

            check_waits_at_the_gate(herd, run)
            if number % 4 == 3:
                check_goes_on_after_the_answer(trial, herd, run)


def check_waits_at_the_gate(herd: RunHerd, run: RunId) -> None:
    """Everything before the gate was done, nothing behind it, and one person is asked once."""
    nodes = herd.nodes(run)
    assert herd.run(run).status is RunStatus.PAUSED, nodes
    rounds = herd.counted()["polish"]
    assert rounds == 2
    assert (nodes.pop("dig"), nodes.pop("polish"), nodes.pop("ask")) == (
        "succeeded",
        "succeeded",
        "paused",
    )
    assert set(nodes.values()) == {"succeeded"}
    iterations = {name for name in nodes if name.startswith("polish[")}
    assert {f"polish:until{name.removeprefix('polish')}" for name in iterations} == (
        set(nodes) - iterations
    )
    assert herd.counted()["dig"] <= 1
    assert all(epoch <= 2 for epoch in herd.epochs(run).values())
    (item,) = herd.items(run)
    assert (item.kind, item.is_pending) == (ItemKind.APPROVAL, True)


def check_goes_on_after_the_answer(ground: Ground, herd: RunHerd, run: RunId) -> None:
    herd.answer(run, "ask")
    work(ground)
    assert herd.run(run).status is RunStatus.SUCCEEDED
    assert herd.counted()["sow"] == 1
    check_doctor_leaves_nothing(ground)
