"""Commands that are killed with their worker: what `on_interrupt` says is obeyed, whatever else the phase says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.run_herds import RunHerd, agents_of
from nightherd.engine.operations.inbox import answer_item
from nightherd.engine.operations.requests import Answer
from nightherd.model.inbox.item import InboxQuery, Verdict
from nightherd.model.workflows.rows import WorkflowNode
from nightherd.model.workflows.run import RunId, RunStatus

COMMAND = """\
phases:
  - name: pay
    retries: 2
    on_interrupt: {on_interrupt}
    bash: echo pay >> counter; while [ -e hold-pay ]; do sleep 0.02; done
  - {{name: ship, bash: "echo ship >> counter"}}
"""


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[RunHerd]:
    names = ("ask", "rerun", "fail")
    made = RunHerd(tmp_path, {name: COMMAND.format(on_interrupt=name) for name in names})
    yield made
    made.shell.close()


def reject(herd: RunHerd) -> None:
    """A person who knows that the command did its work does not want it again."""
    (item,) = herd.read(lambda reader: reader.list_items(InboxQuery()))
    request = Answer(
        item_id=item.id, verdict=Verdict.REJECT, by="ada", via="test", text="it is paid"
    )
    herd.do(lambda context: answer_item(request, agents_of(context), context))


def node(herd: RunHerd, run: RunId, path: str) -> WorkflowNode:
    (found,) = (
        one for one in herd.read(lambda reader: reader.nodes_of_run(run)) if one.path == path
    )
    assert isinstance(found, WorkflowNode)
    return found


def test_rejected_command_is_not_repeated_by_retries(herd: RunHerd) -> None:
    run = herd.start("ask")
    herd.kill_in("pay")
    herd.work()
    assert herd.run(run).status is RunStatus.PAUSED

    reject(herd)
    herd.work()

    assert herd.counted() == {"pay": 1}
    assert herd.run(run).status is RunStatus.FAILED
    assert "it is paid" in str(node(herd, run, "pay").error)


def test_command_that_may_not_run_again_is_not_repeated_by_retries(herd: RunHerd) -> None:
    run = herd.start("fail")
    herd.kill_in("pay")
    herd.work()

    assert herd.counted() == {"pay": 1}
    assert herd.run(run).status is RunStatus.FAILED


def test_command_that_may_run_again_takes_no_retry(herd: RunHerd) -> None:
    run = herd.start("rerun")
    herd.kill_in("pay")
    herd.work()

    assert herd.counted() == {"pay": 2, "ship": 1}
    assert herd.run(run).status is RunStatus.SUCCEEDED
    assert node(herd, run, "pay").attempt == 1
