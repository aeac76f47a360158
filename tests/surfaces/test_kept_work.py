"""Retried runs: what is done is kept inside blocks, loops and lists too, and only the rest runs again."""

from __future__ import annotations

from pathlib import Path

from nightherd.model.workflows.node import NO_ITEM
from nightherd.model.workflows.rows import WorkflowNode
from nightherd.model.workflows.run import RunId, RunStatus
from surfaces.workflow_farm import Farm

FLEET = """\
agents:
  - name: poet
    runtime: scripted
    allowed_tools: [Bash]
    script:
      - repeat: 5
        steps:
          - tool: Bash
            input: {command: "echo poem-${turn} >> counter"}
          - say: "poem ${turn}"
          - end: true
"""
BLOCK = """\
inputs: {dry: {type: boolean, default: false}}
phases:
  - name: field
    phases:
      - {name: dig, bash: "echo dig >> counter"}
      - {name: water, when: inputs.dry, bash: "echo water >> counter"}
      - {name: sow, trigger_rule: all_done, bash: "echo sow >> counter; [ -e rain ]"}
      - {name: mow, bash: "echo mow >> counter"}
  - {name: eat, bash: "echo eat >> counter"}
"""
LOOP = """\
phases:
  - name: rounds
    loop: {max_iterations: 4, until_command: "echo asked >> counter; [ -e grown ]"}
    phases:
      - {name: dig, bash: 'echo "dig-$N" >> counter', env: {N: "${loop.iteration}"}}
      - {name: write, agent: poet, prompt: "Go on: ${loop.previous.write}"}
      - {name: sow, bash: 'echo "sow-$N" >> counter; [ "$N" != 2 ] || [ -e rain ]', env: {N: "${loop.iteration}"}}
      - {name: grow, bash: '[ "$N" != 3 ] || touch grown', env: {N: "${loop.iteration}"}}
"""
ENDLESS = """\
phases:
  - {name: wait, loop: {max_iterations: 2, until_command: "[ -e rain ]"}, bash: "echo wait >> counter"}
"""
LIST = """\
phases:
  - name: each
    for_each: {items: inputs.names, max_parallel: 1}
    timeout: 1h
    phases:
      - {name: dig, bash: 'echo "dig-$NAME" >> counter', env: {NAME: "${item}"}}
      - name: sow
        bash: 'echo "$NAME" >> counter; while [ -e "hold-$NAME" ]; do sleep 0.02; done'
        env: {NAME: "${item}"}
  - {name: eat, bash: "echo eat >> counter"}
inputs: {names: {type: list, default: [a, b, c]}}
"""


def the_list(farm: Farm, run: RunId) -> WorkflowNode:
    nodes = farm.read(lambda reader: reader.nodes_of_run(run))
    found = next(node for node in nodes if node.path == "each" and node.item == NO_ITEM)
    assert isinstance(found, WorkflowNode)
    return found


def test_done_phases_of_a_failed_block_do_not_run_again(tmp_path: Path) -> None:
    farm = Farm(tmp_path, block=BLOCK)
    first = farm.start("block")
    farm.work()
    assert farm.counted() == {"dig": 1, "sow": 1}

    (tmp_path / "rain").touch()
    second = farm.retry(first)
    farm.work()

    assert farm.run(second).status is RunStatus.SUCCEEDED
    assert farm.counted() == {"dig": 1, "sow": 2, "mow": 1, "eat": 1}


def test_loop_goes_on_in_the_iteration_that_failed(tmp_path: Path) -> None:
    farm = Farm(tmp_path, FLEET, loop=LOOP)
    first = farm.start("loop")
    farm.work()
    begun = {"dig-1": 1, "poem-1": 1, "sow-1": 1, "asked": 1, "dig-2": 1, "poem-3": 1, "sow-2": 1}
    assert farm.counted() == begun

    (tmp_path / "rain").touch()
    second = farm.retry(first)
    farm.work()

    assert farm.run(second).status is RunStatus.SUCCEEDED
    again = {"sow-2": 2, "asked": 3, "dig-3": 1, "poem-5": 1, "sow-3": 1}
    assert farm.counted() == begun | again


def test_loop_that_ran_out_of_iterations_begins_anew(tmp_path: Path) -> None:
    farm = Farm(tmp_path, endless=ENDLESS)
    first = farm.start("endless")
    farm.work()
    assert farm.counted() == {"wait": 2}

    (tmp_path / "rain").touch()
    second = farm.retry(first)
    farm.work()

    assert farm.run(second).status is RunStatus.SUCCEEDED
    assert farm.counted() == {"wait": 3}


def test_items_that_are_done_are_kept_when_the_run_was_cancelled(tmp_path: Path) -> None:
    farm = Farm(tmp_path, list=LIST)
    farm.hold("b")
    first = farm.start("list")
    worker = farm.worker()
    farm.wait_for_call("b")
    farm.cancel(first)
    farm.wait_for(first, RunStatus.CANCELLED)
    worker.terminate()
    worker.communicate()
    farm.let_go("b")

    second = farm.retry(first)
    before, now = (the_list(farm, run) for run in (first, second))
    assert before.due_at is not None
    assert now.due_at is not None
    assert now.due_at > before.due_at
    farm.work()

    assert farm.run(second).status is RunStatus.SUCCEEDED
    done = {"dig-a": 1, "a": 1, "dig-b": 1, "dig-c": 1, "c": 1, "eat": 1}
    assert farm.counted() == {**done, "b": 2}
