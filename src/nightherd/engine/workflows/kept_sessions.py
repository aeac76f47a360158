"""Kept sessions: what a retried or forked run hands on of the conversations of phases that it keeps.

A phase that is done again continues the conversation as it was after the last phase that is kept, in a fork of its own:
it hears neither what the earlier run said afterwards nor what other forks of that run say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext
from nightherd.engine.operations.fork import AtEvent, AtMessage, find_point, forked
from nightherd.model.ids import SessionId, generate_session_id
from nightherd.model.jobs.job import Job
from nightherd.model.sessions.changes import ForkSession
from nightherd.model.sessions.session import Session, SessionMode
from nightherd.model.workflows.definition import AgentAction, WorkflowDefinition, every_phase
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.rows import WorkflowNode


def hand_on(
    nodes: Sequence[WorkflowNode],
    definition: WorkflowDefinition,
    at: datetime,
    context: FleetContext,
) -> tuple[tuple[WorkflowNode, ...], tuple[ForkSession, ...]]:
    """Return the kept nodes of a new run, and the forks of the sessions that its other phases continue."""
    owners = set(_continued(nodes, definition))
    jobs = {node.id: _job_of(node, context) for node in nodes if node.kind is NodeKind.JOB}
    sessions = {node.id: _session_id(node, jobs.get(node.id)) for node in nodes}
    wanted = {
        session_id
        for node in nodes
        if node.kind is NodeKind.JOB and locate(definition.phases, node.key).phase.name in owners
        if (session_id := sessions[node.id]) is not None
    }
    forks: dict[SessionId, Session] = {}
    for session_id in sorted(wanted):
        kept = [job for node in nodes if sessions[node.id] == session_id and (job := jobs[node.id])]
        fork = _fork(session_id, kept, at, context)
        if fork is not None:
            forks[session_id] = fork
    handed_on = tuple(
        replace(node, session_id=forks[known].id)
        if (known := sessions[node.id]) is not None and known in forks
        else node
        for node in nodes
    )
    return handed_on, tuple(ForkSession(session=fork) for fork in forks.values())


def _continued(nodes: Sequence[WorkflowNode], definition: WorkflowDefinition) -> Iterator[str]:
    """The phases whose session is continued by a phase that is not kept as a whole: also by itself, in a loop."""
    whole = {node.path for node in nodes if node.is_top_level and node.has_ended}
    left = tuple(phase for phase in definition.phases if phase.name not in whole)
    for phase in every_phase(left):
        if isinstance(phase.action, AgentAction):
            yield phase.action.session or phase.name


def _job_of(node: WorkflowNode, context: FleetContext) -> Job | None:
    return context.reader.find_job(node.job_id) if node.job_id is not None else None


def _session_id(node: WorkflowNode, job: Job | None) -> SessionId | None:
    return node.session_id or (job.session_id if job is not None else None)


def _fork(
    session_id: SessionId, kept: Sequence[Job], at: datetime, context: FleetContext
) -> Session | None:
    """A fork of the session after the last of the kept jobs; None for a session that nothing continues."""
    reader = context.reader
    session = reader.find_session(session_id)
    if session is None or session.mode is not SessionMode.PER_CHANNEL:
        return None
    places = {job_id: place for place, job_id in enumerate(reader.session_job_ids(session.id))}
    own = [job for job in kept if job.id in places]
    if own:
        last = max(own, key=lambda job: places[job.id])
        point = AtEvent(seq=last.last_seq, job_id=last.id)
        found = find_point(reader, context.journals, session, point)
    else:
        # It was forked for the run whose work is kept: what was said before is where it began.
        beginning = AtMessage(number=session.base_messages)
        found = find_point(reader, context.journals, session, beginning)
    return forked(session, found, session_id=generate_session_id(context.random_text), at=at)
