"""The nodes of a run as a tree in the order of its definition, with jobs, times, costs and what each waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.units import FREE, MicroUsd
from nightherd.model.workflows.definition import (
    AgentAction,
    BlockAction,
    CommandAction,
    GateAction,
    Phase,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.instance import Instance, top_level
from nightherd.model.workflows.node import (
    NO_ITEM,
    NO_ITERATION,
    UNTIL,
    NodeKind,
    NodeStatus,
    brackets,
)
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.ports import StateReader
from nightherd.views.jobs.jobs import IsAtWork, observe_jobs
from nightherd.views.runs.waits import Wait, wait_of

PENDING = "pending"
"""A phase that has not begun."""
NOT_RUN = "not_run"
"""A phase that had not begun when its run ended."""
ACTION_KINDS = {
    AgentAction: "agent",
    CommandAction: "command",
    WorkflowAction: "workflow",
    GateAction: "gate",
    WaitAction: "wait",
    BlockAction: "block",
}


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A phase of a run, or one item, iteration or command of it."""

    path: str
    """With its item and iteration in brackets: `fix_loop[2]/review`."""
    status: str
    kind: str
    """`agent`, `command`, `workflow`, `gate`, `wait`, `block` or `until`."""
    does: str = ""
    """The agent, language, workflow or event."""
    phase: Phase | None = None
    """None where the definition is not on record."""
    is_group: bool = False
    """Whether it has items or iterations."""
    total: int | None = None
    """How many items it has, or iterations at most; None when that is not known yet."""
    node: WorkflowNode | None = None
    """The latest attempt; None before the first."""
    attempts: tuple[WorkflowNode, ...] = ()
    job: ObservedJob | None = None
    item: InboxItem | None = None
    child: WorkflowRun | None = None
    took: timedelta | None = None
    cost: MicroUsd = FREE
    """Of all its attempts and everything inside it; nothing for what an earlier run did."""
    wait: Wait | None = None
    inside: tuple[NodeView, ...] = ()

    def everything(self) -> Iterator[NodeView]:
        """Yield this node and all nodes inside it, in order."""
        yield self
        for inner in self.inside:
            yield from inner.everything()


def node_tree(
    reader: StateReader,
    run: WorkflowRun,
    definition: WorkflowDefinition | None,
    is_at_work: IsAtWork,
    now: datetime,
    agents: Collection[str] | None = None,
) -> tuple[NodeView, ...]:
    """Return the phases of the run; without a definition, its nodes in the order of beginning."""
    nodes = reader.nodes_of_run(run.id)
    tree = _Tree(reader, run, nodes, is_at_work, now, agents)
    if definition is None:
        return tuple(tree.bare(node) for node in nodes)
    return tuple(tree.view(instance) for instance in top_level(definition.phases))


def cost_of_run(reader: StateReader, run_id: RunId) -> MicroUsd:
    """Return what all jobs of a run have cost, running ones, child jobs and runs below it included."""
    jobs = reader.jobs_of_run(run_id)
    own = sum(_cost_of_job(reader, job) for job in jobs)
    return MicroUsd(own + sum(cost_of_run(reader, run.id) for run in reader.runs_of_parent(run_id)))


def _cost_of_job(reader: StateReader, job: Job) -> int:
    below = reader.jobs_below(job.id)
    return job.cost_microusd + sum(one.cost_microusd for one in below)


class _Tree:
    """The rows of one run, read once."""

    def __init__(
        self,
        reader: StateReader,
        run: WorkflowRun,
        nodes: Sequence[WorkflowNode],
        is_at_work: IsAtWork,
        now: datetime,
        agents: Collection[str] | None = None,
    ) -> None:
        self._reader = reader
        self._run = run
        self._agents = agents
        self._now = now
        self._nodes: dict[tuple[str, int, int], list[WorkflowNode]] = {}
        for node in nodes:
            place = (node.path, node.item, node.iteration)
            self._nodes.setdefault(place, []).append(node)
        self._items = {item.id: item for item in reader.items_of_run(run.id)}
        jobs = self._jobs(nodes)
        self._observed: Mapping[JobId, ObservedJob] = {
            job.id: job for job in observe_jobs(reader, jobs, is_at_work, now)
        }

    def _jobs(self, nodes: Sequence[WorkflowNode]) -> list[Job]:
        """The jobs of the run, and those of an earlier run whose work it keeps."""
        jobs = {job.id: job for job in self._reader.jobs_of_run(self._run.id)}
        for node in nodes:
            if node.job_id is not None and node.job_id not in jobs:
                kept = self._reader.find_job(node.job_id)
                if kept is not None:
                    jobs[kept.id] = kept
        return list(jobs.values())

    def view(self, instance: Instance, *, is_over: bool = False) -> NodeView:
        """Return one place of the run; `is_over` where the block around it has ended."""
        is_over = is_over or self._run.is_terminal
        phase = instance.phase
        attempts = self._attempts(instance.path, instance.item, instance.iteration)
        node = attempts[-1] if attempts else None
        has_ended = node is not None and node.has_ended
        inside = tuple(self._inside(instance, is_over=is_over or has_ended))
        absent = NOT_RUN if is_over else PENDING
        is_each = phase.for_each is not None and instance.item == NO_ITEM
        is_loop = phase.loop is not None and instance.iteration == NO_ITERATION
        return self._filled(
            NodeView(
                path=instance.path + brackets(instance.iteration, instance.item),
                status=absent,
                kind=ACTION_KINDS[type(phase.action)],
                does=_does(phase),
                phase=phase,
                is_group=is_each or is_loop,
                total=self._total(phase, node, is_each=is_each, is_loop=is_loop),
                attempts=attempts,
                inside=inside,
            )
        )

    def bare(self, node: WorkflowNode) -> NodeView:
        """Return a node of which no definition is known."""
        path = node.path + brackets(node.iteration, node.item)
        kind = node.kind.value
        return self._filled(NodeView(path=path, status=PENDING, kind=kind, attempts=(node,)))

    def _filled(self, view: NodeView) -> NodeView:
        """Return the view with what is on record about its latest attempt."""
        node = view.attempts[-1] if view.attempts else None
        if node is None:
            return replace(view, cost=self._cost(view))
        job = self._observed.get(node.job_id) if node.job_id is not None else None
        item = self._items.get(node.item_id) if node.item_id is not None else None
        child = self._reader.find_run(node.child_run_id) if node.child_run_id is not None else None
        wait = None
        if not node.has_ended:
            wait = wait_of(self._reader, self._run, node, job, item, child, self._agents)
        return replace(
            view,
            status=node.status.value,
            node=node,
            job=job,
            item=item,
            child=child,
            took=self._took(node, job),
            cost=self._cost(view),
            wait=wait,
        )

    def _total(
        self, phase: Phase, node: WorkflowNode | None, *, is_each: bool, is_loop: bool
    ) -> int | None:
        if is_each:
            texts = self._reader.find_node_texts(node.id) if node is not None else None
            return None if texts is None else len(texts.content.get("items", ()))
        return phase.loop.max_iterations if is_loop and phase.loop is not None else None

    def _attempts(self, path: str, item: int, iteration: int) -> tuple[WorkflowNode, ...]:
        found = self._nodes.get((path, item, iteration), ())
        return tuple(sorted(found, key=lambda node: node.attempt))

    def _inside(self, instance: Instance, *, is_over: bool) -> Iterator[NodeView]:
        phase = instance.phase
        if phase.for_each is not None and instance.item == NO_ITEM:
            places = {item for path, item, _ in self._nodes if path == instance.path}
            for item in sorted(places - {NO_ITEM}):
                yield self.view(instance.of_item(item), is_over=is_over)
        elif phase.loop is not None and instance.iteration == NO_ITERATION:
            for iteration in self._iterations(instance):
                yield self.view(instance.of_iteration(iteration), is_over=is_over)
                yield from self._until(instance.of_iteration(iteration))
        elif isinstance(phase.action, BlockAction):
            has_run = bool(self._attempts(instance.path, instance.item, instance.iteration))
            for inner in instance.inside() if has_run or not is_over else ():
                shown = self.view(inner, is_over=is_over)
                if shown.node is not None or not is_over:
                    yield shown

    def _iterations(self, instance: Instance) -> list[int]:
        found = {
            iteration
            for path, item, iteration in self._nodes
            if path == instance.path and item == instance.item
        }
        return sorted(found - {NO_ITERATION})

    def _until(self, instance: Instance) -> Iterator[NodeView]:
        path = f"{instance.path}{UNTIL}"
        attempts = self._attempts(path, instance.item, instance.iteration)
        if attempts:
            shown = path + brackets(instance.iteration, instance.item)
            yield self._filled(
                NodeView(path=shown, status=PENDING, kind="until", attempts=attempts)
            )

    def _took(self, node: WorkflowNode, job: ObservedJob | None) -> timedelta | None:
        """How long a job was worked on, or anything else was open."""
        if node.status is NodeStatus.SKIPPED:
            return None
        if job is not None:
            return job.worked
        if node.kept_from is not None and node.ended_at is None:
            return None
        return max((node.ended_at or self._now) - node.created_at, timedelta())

    def _cost(self, view: NodeView) -> MicroUsd:
        cost: int = sum(inner.cost for inner in view.inside)
        for node in view.attempts:
            if node.kept_from is not None:
                continue
            job = self._observed.get(node.job_id) if node.job_id is not None else None
            if job is not None:
                cost += _cost_of_job(self._reader, job)
            if node.kind is NodeKind.CHILD and node.child_run_id is not None:
                cost += cost_of_run(self._reader, node.child_run_id)
        return MicroUsd(cost)


def _does(phase: Phase) -> str:
    match phase.action:
        case AgentAction(agent=agent):
            return agent
        case CommandAction(language=language):
            return language.value
        case WorkflowAction(workflow=workflow):
            return workflow
        case GateAction(gate=gate):
            return gate.value
        case WaitAction(event=event):
            return event or ""
        case _:
            return ""
