"""The end of a loop: what follows when an iteration has ended.

`until` is evaluated first, then `until_command` runs; the loop ends when one of them says so. A body that failed ends
the loop failed. After the last iteration `on_exhausted` decides.
"""

from __future__ import annotations

from nightherd.model.workflows.begin import CannotBeginError, condition, run_until
from nightherd.model.workflows.definition import Loop, OnExhausted, UntilCommand
from nightherd.model.workflows.instance import Instance
from nightherd.model.workflows.node import Node, NodeStatus
from nightherd.model.workflows.progress import Progress
from nightherd.model.workflows.scope import At


def after_iteration(
    progress: Progress, instance: Instance, current: Instance, body: Node, loop: Loop
) -> Node | None:
    """Return the node of the loop, ended or still waiting for its command; None for one more iteration."""
    number = current.iteration
    match body.status:
        case NodeStatus.CANCELLED:
            return progress.cancel(instance, f"iteration {number} was cancelled")
        case NodeStatus.FAILED:
            return progress.fail(instance, f"iteration {number} failed: {body.error}")
        case _:
            pass
    if loop.until is not None:
        try:
            is_met = condition(progress.context, current, At.UNTIL, "until", loop.until)
        except CannotBeginError as error:
            return progress.fail(instance, f"iteration {number}: {error}")
        if is_met:
            return progress.succeed(instance)
    if loop.until_command is not None:
        end = _ask(progress, instance, current, loop.until_command)
        if end is not None:
            return end
    if number < loop.max_iterations:
        return None
    if loop.on_exhausted is OnExhausted.CONTINUE:
        return progress.succeed(instance)
    return progress.fail(instance, f"its condition is not met after {number} iterations")


def _ask(
    progress: Progress, instance: Instance, current: Instance, command: UntilCommand
) -> Node | None:
    """Return the node of the loop, ended by its command or waiting for it; None when the command said no."""
    nodes = progress.records.nodes
    answer = nodes.get(current.until_key)
    if answer is None:
        answer = progress.take(run_until(progress.context, current, command))
    progress.noted(answer)
    match answer.status:
        case NodeStatus.SUCCEEDED:
            return progress.succeed(instance) if answer.exit_code == 0 else None
        case NodeStatus.FAILED:
            return progress.fail(instance, f"until_command failed: {answer.error}")
        case NodeStatus.CANCELLED:
            return progress.cancel(instance, "its until_command was cancelled")
        case _:
            return nodes[instance.key()]
