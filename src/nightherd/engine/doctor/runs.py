"""Workflow runs that wait for something that is over, or whose definition cannot be read, as a check of the doctor.

What ends a phase also advances its run, in one transaction; so nothing is found here unless rows were lost, restored or
changed by hand. Advancing a run again is harmless.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial

from nightherd.engine.doctor.doctor import Check
from nightherd.engine.doctor.record import RepairContext, apply_changes
from nightherd.errors import NightherdError
from nightherd.model.doctor import Finding, Level
from nightherd.model.workflows.conductor.changes import AdvanceRun
from nightherd.model.workflows.conductor.outcomes import STATUS_OF_JOB
from nightherd.model.workflows.conductor.pinned import read_pinned
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import RunQuery, WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.next_step import Action, NextStep
from nightherd.ports import StateReader

NAME = "runs"
TABLE = "workflow_runs"
PAGE = 500
NAMED = 3
OPEN = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.PAUSED)


def run_check(record: RepairContext) -> Check:
    """The check of workflow runs."""
    return Check(NAME, "workflow runs", partial(stalled_runs, record), partial(advance, record))


def stalled_runs(record: RepairContext) -> Iterator[Finding]:
    """Report runs that do not continue by themselves although nothing is left to wait for."""
    reader = record.reader
    unreadable = yield from _unreadable_definitions(reader)
    runs = [run for status in OPEN for run in every_run(reader, RunQuery(status=status))]
    busy = {run.concurrency_key for run in runs if run.status is not RunStatus.QUEUED}
    for run in runs:
        if run.definition_hash in unreadable:
            continue  # advancing it would only fail it
        if run.status is RunStatus.QUEUED:
            if run.concurrency_key not in busy and _is_still(run, reader):
                yield _stalled(run, "it is queued, and nothing runs before it")
            continue
        yield from _of_open_run(run, reader)


def every_run(reader: StateReader, query: RunQuery) -> Iterator[WorkflowRun]:
    """Yield the runs that `query` asks for, newest first, page by page."""
    before = query.before
    while True:
        page = reader.list_runs(
            RunQuery(workflow=query.workflow, status=query.status, before=before, limit=PAGE)
        )
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1].number


def _unreadable_definitions(reader: StateReader) -> Generator[Finding, None, set[str]]:
    """Report definitions that are missing or cannot be read, with the runs that need them; return their hashes."""
    users: dict[str, list[WorkflowRun]] = {}
    for run in every_run(reader, RunQuery()):
        if run.definition_hash:
            users.setdefault(run.definition_hash, []).append(run)
    unreadable: set[str] = set()
    for hash, runs in users.items():
        problem = _definition_problem(hash, reader)
        if problem is None:
            continue
        unreadable.add(hash)
        open_runs = [run for run in runs if not run.is_terminal]
        named = _few([run.id for run in open_runs or runs])
        what = "cannot continue" if open_runs else "cannot be retried"
        yield Finding(
            check=NAME,
            level=Level.PROBLEM if open_runs else Level.WARNING,
            message=f"the definition of workflow {runs[0].workflow_name} {problem}: {named} {what}",
            row=("workflow_definitions", hash),
            remedy="the ledger may have it: compare it with the database",
            next_step=NextStep(Action.VERIFY_STATE),
        )
    return unreadable


def _definition_problem(hash: str, reader: StateReader) -> str | None:
    """Why the definition cannot be used; None when it can."""
    try:
        pinned = reader.find_pinned(hash)
        if pinned is None:
            return "is missing"
        read_pinned(pinned.body)
    except (NightherdError, ValueError) as error:
        return f"cannot be read ({str(error)[:80]})"
    return None


def _of_open_run(run: WorkflowRun, reader: StateReader) -> Iterator[Finding]:
    open_nodes = [node for node in reader.nodes_of_run(run.id) if not node.has_ended]
    if not open_nodes:
        if _is_still(run, reader) and all(node.has_ended for node in reader.nodes_of_run(run.id)):
            yield _stalled(run, "no phase of it is open")
        return
    missing: dict[str, str] = {}
    over: dict[str, str] = {}
    for node in open_nodes:
        text, is_missing = _over(node, reader)
        # Both change in one transaction: a node that has moved since was only read too early.
        if text is not None and reader.find_node(node.id) == node:
            (missing if is_missing else over)[_phase(node)] = text
    if over:
        yield _stalled(run, _texts(over))
    if missing:
        yield Finding(
            check=NAME,
            level=Level.PROBLEM,
            message=f"run {run.id} of workflow {run.workflow_name} cannot continue: {_texts(missing)}",
            row=(TABLE, run.id),
            remedy="the ledger may have it: compare it with the database; else cancel the run and retry it",
            next_step=NextStep(Action.VERIFY_STATE),
        )


def _over(node: WorkflowNode, reader: StateReader) -> tuple[str | None, bool]:
    """What the node waits for although it is over, or stands otherwise; and whether it is not there at all."""
    match node.kind:
        case NodeKind.JOB | NodeKind.UNTIL if node.job_id is not None:
            job = reader.find_job(node.job_id)
            if job is None:
                return f"job {node.job_id} is missing", True
            is_same = STATUS_OF_JOB[job.status] is node.status
            return None if is_same else f"job {job.id} is {job.status.value}", False
        case NodeKind.GATE if node.item_id is not None:
            item = reader.find_item(node.item_id)
            if item is None:
                return f"inbox item {node.item_id} is missing", True
            return None if item.is_pending else f"{item.id} is {item.status.value}", False
        case NodeKind.CHILD if node.child_run_id is not None:
            child = reader.find_run(node.child_run_id)
            if child is None:
                return f"run {node.child_run_id} is missing", True
            return f"run {child.id} is {child.status.value}" if child.is_terminal else None, False
        case _:
            return None, False


def _is_still(run: WorkflowRun, reader: StateReader) -> bool:
    """Whether the run is as it was listed: nothing has moved it since."""
    return reader.find_run(run.id) == run


def _phase(node: WorkflowNode) -> str:
    return node.id.removeprefix(f"{node.run_id}/")


def _texts(found: Mapping[str, str]) -> str:
    return _few([f"{phase}: {text}" for phase, text in found.items()])


def _few(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return ", ".join(texts[:NAMED]) + more


def _stalled(run: WorkflowRun, why: str) -> Finding:
    return Finding(
        check=NAME,
        level=Level.PROBLEM,
        message=f"run {run.id} of workflow {run.workflow_name} does not continue: {why}",
        row=(TABLE, run.id),
        remedy="it is advanced",
        is_fixable=True,
    )


async def advance(record: RepairContext, finding: Finding) -> None:
    """Advance the run that a finding is about."""
    _, key = finding.row or ("", "")
    await apply_changes(record, [AdvanceRun(run_id=RunId(key), at=record.clock.now())])
