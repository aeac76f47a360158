"""Advancing a run: its open nodes get their outcomes, what follows begins, and the run its status, all at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from nightherd.model.change import Applied, Change, Row
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.changes import AskPerson
from nightherd.model.inbox.item import InboxItem, ItemStatus
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import Job, row_text
from nightherd.model.schedules.schedule import ScheduleState, ScheduleStatus, schedule_id
from nightherd.model.units import MicroUsd
from nightherd.model.workflows.advance import Decision, advance, end_message
from nightherd.model.workflows.conductor.beginnings import Beginnings
from nightherd.model.workflows.conductor.changes import AdvanceRun, CancelRun
from nightherd.model.workflows.conductor.failed_runs import asked_about, was_rejected
from nightherd.model.workflows.conductor.outcomes import moved, outcome_of
from nightherd.model.workflows.conductor.pinned import PinnedBody
from nightherd.model.workflows.conductor.run_records import (
    RunRecords,
    facts_of,
    open_nodes,
    pinned_of,
    read_context,
)
from nightherd.model.workflows.conductor.run_usage import used_by
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.node import NO_ITEM, NO_ITERATION, Node, NodeKind, NodeStatus
from nightherd.model.workflows.rows import (
    SCRATCH_LIMIT,
    WorkflowNode,
    WorkflowNodeTexts,
    WorkflowRun,
    WorkflowScratch,
    node_id,
    scratch_size,
)
from nightherd.model.workflows.run import RUN_LIFECYCLE, RunStatus
from nightherd.model.workflows.steps import Step, effect_of
from nightherd.model.workflows.triggers import RunTrigger

MOST_RESTARTS = 100
"""Executions lost without any phase succeeding, after which a run fails."""
CRASHING = "its jobs were lost {count} times without any phase succeeding"


def advance_run(
    run: WorkflowRun, at: datetime, rows: Rows, node_ids: Collection[str] | None = None
) -> Applied:
    """Return everything that follows for a run that is not over; `node_ids` are those to be looked at, None for all."""
    return Advancing(run, at, rows, node_ids).decide()


class Advancing:
    """One decision about one run."""

    def __init__(
        self, run: WorkflowRun, at: datetime, rows: Rows, node_ids: Collection[str] | None
    ) -> None:
        self.node_ids = node_ids
        self.run = run
        self.at = at
        self.rows = rows
        self.body: PinnedBody = pinned_of(run, rows)
        self.definition: WorkflowDefinition = self.body.definition
        self.records = RunRecords(run, self.definition, rows)
        self.written: dict[str, Row] = {}
        self.then: list[Change] = []
        self.is_moved = False
        """Whether a whole phase of the workflow began, ended or moved."""
        self.next_number = max((node.number for node in self.records.nodes.values()), default=0) + 1

    def decide(self) -> Applied:
        """Give open nodes their outcomes, begin what follows, and set the run's status."""
        if self.run.restart_count > MOST_RESTARTS and self.run.stopping is None:
            reason = CRASHING.format(count=self.run.restart_count)
            self.run = replace(self.run, stopping=reason, is_failing=True)
        ended = [node for node in self._settle() if node.has_ended]
        if self.run.stopping is not None:
            self._stop()
        inputs, trigger = read_context(self.run, self.rows)
        facts = facts_of(self.run)
        decision = advance(
            self.definition,
            inputs,
            trigger,
            facts,
            self.records.as_nodes,
            self.records.output,
        )
        self._tell(ended, inputs, trigger)
        self._carry_out(decision, trigger)
        return self._conclude(decision)

    # -- what has become of open nodes -----------------------------------------------------------

    def _settle(self) -> Iterator[WorkflowNode]:
        for node in open_nodes(filter(self._is_concerned, self.records.nodes.values())):
            if self.records.nodes[node.key].has_ended:
                continue  # a block around it timed out just now
            outcome = outcome_of(node, self.definition, self.at, self.rows, self.written)
            if outcome is None:
                self._overdue(node)
                self._resume_deadline(node)
                continue
            self._write(outcome.node, outcome.texts)
            if outcome.event is not None:
                self.written[outcome.event.id] = outcome.event
            if outcome.node.has_ended:
                self._count(outcome.node)
                if node.kind is NodeKind.GROUP:
                    self._end_inside(outcome.node, "the block around it timed out")
            yield outcome.node

    def _is_concerned(self, node: WorkflowNode) -> bool:
        """Whether something may have become of the node."""
        if self.node_ids is None or node.id in self.node_ids:
            return True
        return node.due_at is not None and node.due_at <= self.at

    def _overdue(self, node: WorkflowNode) -> None:
        """A sub-workflow that takes too long is ended; the node follows when it has."""
        is_late = node.due_at is not None and node.due_at <= self.at
        if node.kind is NodeKind.CHILD and is_late and node.child_run_id is not None:
            self.then.append(
                CancelRun(run_id=node.child_run_id, at=self.at, reason="timed out", is_failure=True)
            )

    def _resume_deadline(self, node: WorkflowNode) -> None:
        """A list that a new run keeps in part has its whole time again, from the run's first step on."""
        if node.kind is not NodeKind.GROUP or node.due_at is not None:
            return
        instance = locate(self.definition.phases, node.key)
        if instance.is_phase and instance.phase.timeout is not None:
            self._write(replace(node, due_at=self.at + instance.phase.timeout))

    def _count(self, node: WorkflowNode) -> None:
        """Add what the node's job or sub-workflow used; a phase that succeeded is progress."""
        run = self.run
        used = used_by(node, self.rows)
        if used is not None:
            cost, worked_ms = used
            total = MicroUsd(run.cost_microusd + cost)
            run = replace(run, cost_microusd=total, worked_ms=run.worked_ms + worked_ms)
        if node.status is NodeStatus.SUCCEEDED:
            run = replace(run, restart_count=0)
        self.run = run

    def _end_inside(self, group: WorkflowNode, reason: str) -> None:
        """End every open node inside a block, and what it waits for."""
        inside = group.key.inside
        prefixes = (inside, f"{group.path}[")
        for node in open_nodes(self.records.nodes.values()):
            is_part = node.path == group.path and node.id != group.id
            if node.path.startswith(prefixes) or is_part:
                self._end_node(node, reason)

    def _end_node(self, node: WorkflowNode, reason: str) -> None:
        self._withdraw(node)
        self._write(moved(node, NodeStatus.CANCELLED, self.at, error=reason, is_final=True))

    def _withdraw(self, node: WorkflowNode) -> None:
        """End what a node waits for: its job, its sub-workflow, its question."""
        if node.job_id is not None:
            job = self.rows.get(Job, node.job_id)
            if job is not None and not job.is_terminal and job.cancel_requested_at is None:
                self.then.append(CancelJob(job_id=job.id, at=self.at))
        if node.child_run_id is not None:
            child = self.rows.get(WorkflowRun, node.child_run_id)
            if child is not None and not child.is_terminal and child.stopping is None:
                reason = self.run.stopping or "the run above it ended"
                self.then.append(CancelRun(run_id=child.id, at=self.at, reason=reason))
        if node.item_id is not None:
            item = self.rows.get(InboxItem, node.item_id)
            if item is not None and item.is_pending:
                over = replace(item, status=ItemStatus.CANCELLED, decided_at=self.at)
                self.written[item.id] = over

    def _stop(self) -> None:
        """Ask everything that is open in the run to end."""
        for node in open_nodes(self.records.nodes.values()):
            self._withdraw(node)

    # -- what follows ----------------------------------------------------------------------------

    def _tell(self, ended: list[WorkflowNode], inputs: dict[str, Any], trigger: RunTrigger) -> None:
        """Keep what people are told about phases that have ended."""
        facts = facts_of(self.run)
        for node in ended:
            if node.kind is NodeKind.UNTIL:
                continue
            told = end_message(
                self.definition,
                inputs,
                trigger,
                facts,
                self.records.as_nodes,
                self.records.output,
                node.key,
            )
            # What was said when it began is over.
            if (message := row_text(told)) != node.message:
                self._write(replace(node, message=message))

    def _carry_out(self, decision: Decision, trigger: RunTrigger) -> None:
        beginnings = Beginnings(
            run=self.run,
            body=self.body,
            trigger=trigger,
            records=self.records,
            rows=self.rows,
            at=self.at,
        )
        for step in decision.steps:
            effect = effect_of(step, self.records.as_nodes, self.at)
            row = self._row(effect, step)
            if row.has_ended:
                self._withdraw(row)
                self._write(row)
                continue
            begun = beginnings.begin(step, row)
            self._write(begun.node, begun.texts)
            if begun.then is not None:
                self.then.append(begun.then)
            if begun.node.kind is NodeKind.WAIT and self._is_over(begun.node):
                self.then.append(AdvanceRun(run_id=self.run.id, at=self.at))

    def _is_over(self, wait: WorkflowNode) -> bool:
        """Whether a wait that begins now need not wait: its event came before, or its time."""
        outcome = outcome_of(wait, self.definition, self.at, self.rows, self.written)
        return outcome is not None

    def _row(self, effect: Node, step: Step) -> WorkflowNode:
        """The row of a node as a step leaves it."""
        known = self.records.nodes.get(effect.key)
        message = row_text(getattr(step, "message", None))
        ended_at = self.at if effect.has_ended else None
        if known is not None:
            return replace(
                known,
                status=effect.status,
                kind=effect.kind if known.kind is NodeKind.NONE else known.kind,
                ended_at=ended_at,
                error=row_text(effect.error),
                cause=effect.cause,
                is_final=effect.is_final,
                message=message if effect.has_ended else message or known.message,
            )
        number = self.next_number
        self.next_number += 1
        key = effect.key
        return WorkflowNode(
            id=node_id(self.run.id, key),
            run_id=self.run.id,
            path=key.path,
            iteration=key.iteration,
            item=key.item,
            attempt=key.attempt,
            status=effect.status,
            kind=effect.kind,
            created_at=self.at,
            ended_at=ended_at,
            error=row_text(effect.error),
            cause=effect.cause,
            is_final=effect.is_final,
            message=message,
            number=number,
        )

    def _write(self, node: WorkflowNode, texts: WorkflowNodeTexts | None = None) -> None:
        self.records.put(node, texts)
        self.written[node.id] = node
        if texts is not None:
            self.written[f"{node.id} texts"] = texts
        if node.is_top_level:
            self.is_moved = True
            # A skipped phase is none that the run came to: after a failure, the one that failed is shown.
            is_reached = node.status is not NodeStatus.SKIPPED or not self.run.current_phase
            if is_reached and self.run.current_phase != node.path:
                self.run = replace(self.run, current_phase=node.path)

    # -- the run ---------------------------------------------------------------------------------

    def _conclude(self, decision: Decision) -> Applied:
        scratch = self._scratch()
        if scratch is not None:
            self.written["scratch"] = scratch
        status, error = decision.run_status, decision.error
        if status is RunStatus.CANCELLED and self.run.is_failing:
            status = RunStatus.FAILED
        if status in (RunStatus.FAILED, RunStatus.CANCELLED) and self.run.stopping is not None:
            error = self.run.stopping
        if RUN_LIFECYCLE.is_terminal(status):
            ended = ended_run(self.run, status, error, self.at, self.rows)
            rows = (*self.written.values(), *ended.rows)
            return replace(ended, rows=rows, then=(*self.then, *ended.then))
        run = self.run
        if status is not run.status:
            run = replace(run, status=RUN_LIFECYCLE.check(run.status, status))
        then = self.then
        if self.is_moved or run != self.rows.get(WorkflowRun, run.id):
            self.written["run"] = replace(run, updated_at=self.at)
            then = [*self.then, *_above(run, self.rows, self.at)]
        return Applied(rows=tuple(self.written.values()), run_id=run.id, then=tuple(then))

    def _scratch(self) -> WorkflowScratch | None:
        """The scratch with the place of every loop whose iteration has just ended, as far as there is room."""
        ended = [
            row
            for row in self.written.values()
            if isinstance(row, WorkflowNode)
            and row.has_ended
            and row.iteration != NO_ITERATION
            and row.kind is not NodeKind.UNTIL
        ]
        if not ended:
            return None
        known = self.rows.get(WorkflowScratch, self.run.id)
        scratch = dict(known.scratch) if known is not None else {}
        for node in ended:
            place: dict[str, Any] = {"iteration": node.iteration}
            job = self.rows.get(Job, node.job_id) if node.job_id is not None else None
            if job is not None:
                place["lastOutputExecutionId"] = f"{job.id}.{job.epoch}"
            name = node.path if node.item == NO_ITEM else f"{node.path}[{node.item}]"
            scratch[name] = place
            if scratch_size(scratch) > SCRATCH_LIMIT:
                del scratch[name]  # the nodes say it too; no job may fail to end because of a note
        return WorkflowScratch(run_id=self.run.id, scratch=scratch)


def _above(run: WorkflowRun, rows: Rows, at: datetime) -> Iterator[Change]:
    """The run above looks again when this one ended, paused or continued."""
    if run.parent_run_id is None:
        return
    before = rows.get(WorkflowRun, run.id)
    if before is None or before.status is not run.status:
        yield AdvanceRun(run_id=run.parent_run_id, at=at)


def ended_run(
    run: WorkflowRun, status: RunStatus, error: str | None, at: datetime, rows: Rows
) -> Applied:
    """Return a run that is over: it, what it makes room for, and whom it concerns."""
    over = replace(
        run,
        status=RUN_LIFECYCLE.check(run.status, status),
        error=row_text(error),
        finished_at=at,
        updated_at=at,
    )
    then: list[Change] = []
    if run.parent_run_id is not None:
        then.append(AdvanceRun(run_id=run.parent_run_id, at=at))
    if run.concurrency_key is not None and run.status is not RunStatus.QUEUED:
        queued = rows.queued_runs_of_key(run.concurrency_key, 1)
        then += (AdvanceRun(run_id=one.id, at=at) for one in queued)
    asked = asked_about(over, at)
    if asked is not None and not was_rejected(over, rows):
        then.append(AskPerson(asked=(asked,)))
    return Applied(rows=(over, *_schedule(over, at, rows)), run_id=over.id, then=tuple(then))


def _schedule(run: WorkflowRun, at: datetime, rows: Rows) -> Iterator[Row]:
    """The schedule that started the run, once it is over."""
    if run.schedule is None or run.parent_run_id is not None:
        return
    state = rows.get(ScheduleState, schedule_id(f"workflow:{run.workflow_name}", run.schedule))
    if state is None:
        return
    failed = run.status is RunStatus.FAILED
    rests = state.status is ScheduleStatus.RUNNING
    after = replace(
        state,
        status=ScheduleStatus.IDLE if rests else state.status,
        last_run_at=at,
        last_error=(run.error or "failed") if failed else None,
        consecutive_failures=state.consecutive_failures + 1 if failed else 0,
    )
    if after.is_paused:
        after = replace(after, status=ScheduleStatus.DISABLED, next_run_at=None, next_due_at=None)
    yield after
