"""The jobs of phases: what is submitted for an agent or a command, in which session, with which limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from nightherd.model.change import Change
from nightherd.model.decisions.rows import Rows
from nightherd.model.ids import ALPHABET, JobId, SessionId, generate_job_id, generate_session_id
from nightherd.model.jobs.changes import SubmitJob
from nightherd.model.jobs.job import Job, JobStatus, JobTexts
from nightherd.model.jobs.options import JobOptions, ParentLimits
from nightherd.model.limits.limits import COUNTED, LimitName, Limits, OnLimit, limits_document
from nightherd.model.sessions.session import (
    SESSION_LIFECYCLE,
    Session,
    SessionMode,
    SessionStatus,
)
from nightherd.model.workflows.command import COMMANDS_AGENT, COMMANDS_RUNTIME, CommandSpec
from nightherd.model.workflows.conductor.pinned import PinnedAgent, PinnedBody
from nightherd.model.workflows.conductor.run_records import RunRecords
from nightherd.model.workflows.conductor.run_usage import (
    run_limits,
    time_left_ms,
    upwards,
)
from nightherd.model.workflows.definition import (
    AgentAction,
    CommandAction,
    OnInterrupt,
    Phase,
)
from nightherd.model.workflows.node import NodeKey
from nightherd.model.workflows.rows import WorkflowNode, WorkflowNodeTexts, WorkflowRun
from nightherd.model.workflows.shared_sessions import keeps_session
from nightherd.model.workflows.steps import (
    RunUntilCommand,
    SubmitPhase,
)
from nightherd.model.workflows.triggers import RunTrigger

IdT = TypeVar("IdT", bound=str)
SHARED_LIMITS = (*COUNTED, LimitName.SPAWNS, LimitName.DEPTH)
"""Limits that all jobs of a run share; its time is counted by the run itself."""
JSON_ONLY = "Answer with one JSON value and nothing else. It must match this JSON Schema:"


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """A node that begins, and the change that makes what it waits for."""

    node: WorkflowNode
    texts: WorkflowNodeTexts | None = None
    then: Change | None = None


class PhaseJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Makes the jobs of one decision about one run."""

    run: WorkflowRun
    body: PinnedBody
    trigger: RunTrigger
    records: RunRecords
    rows: Rows
    at: datetime
    taken: set[str] = msgspec.field(default_factory=set)
    """Ids that this decision has given away."""

    def submit(self, step: SubmitPhase, node: WorkflowNode) -> Beginning:
        action = step.phase.action
        if isinstance(action, CommandAction):
            spec = CommandSpec(
                language=action.language,
                command=action.command,
                env=step.env,
                stdin=step.stdin,
                on_interrupt=action.on_interrupt,
            )
            return self._command(node, spec, self._timeout(step.phase))
        if not isinstance(action, AgentAction):
            raise TypeError(f"{node.id} is submitted without an agent or a command")
        agent = self.body.agents.get(action.agent) or PinnedAgent(runtime="", working_directory="")
        prompt = self._prompt(step, action, node)
        options = JobOptions(
            model=action.model,
            job_timeout=self._timeout(step.phase),
            limits=self._limits(action.limits, agent) or None,
            within=self._within(),
        )
        session = self._session(step, action, agent, node)
        into = self._continued(step.session_of)
        return self._job(node, action.agent, prompt, {}, options, session, into)

    def _prompt(self, step: SubmitPhase, action: AgentAction, node: WorkflowNode) -> str:
        parts = [step.prompt]
        if action.output is not None:
            schema = json.dumps(action.output, ensure_ascii=False)
            parts.append(f"{JSON_ONLY}\n{schema}")
        if node.attempt > 1:
            before = self.records.nodes.get(replace_attempt(node.key, node.attempt - 1))
            if before is not None and before.error and action.output is not None:
                parts.append(f"An earlier answer was refused: {before.error}")
        return "\n\n".join(parts)

    def ask_command(self, step: RunUntilCommand, node: WorkflowNode) -> Beginning:
        command = step.command
        spec = CommandSpec(
            language=command.language,
            command=command.command,
            env=step.env,
            on_interrupt=OnInterrupt.RERUN,
            is_condition=True,
        )
        return self._command(node, spec, command.timeout)

    def _command(
        self, node: WorkflowNode, spec: CommandSpec, timeout: timedelta | None
    ) -> Beginning:
        options = JobOptions(
            job_timeout=timeout, limits=self._limits(Limits()) or None, within=self._within()
        )
        directory = self.body.commands_directory
        agent = PinnedAgent(runtime=COMMANDS_RUNTIME, working_directory=directory)
        session = self._new_session(COMMANDS_AGENT, agent, node, None)
        return self._job(
            node, COMMANDS_AGENT, spec.command, spec.to_inputs(), options, session, None
        )

    def _job(
        self,
        node: WorkflowNode,
        agent: str,
        prompt: str,
        inputs: Mapping[str, Any],
        options: JobOptions,
        session: Session,
        into: SessionId | None,
    ) -> Beginning:
        job_id = self.free_id(Job, node, partial(generate_job_id, self.at))
        job = Job(
            id=job_id,
            agent=agent,
            trigger_type=self.run.trigger_type,
            trigger_id=self.run.trigger_id,
            status=JobStatus.PENDING,
            created_at=self.at,
            session_id=session.id,
            dedupe_key=f"node:{node.id}",
            workflow_run_id=self.run.id,
            node_id=node.id,
        )
        texts = JobTexts(job_id=job_id, prompt=prompt, inputs=inputs, overrides=options)
        change = SubmitJob(job=job, texts=texts, session=session, into=into)
        return Beginning(node=replace(node, job_id=job_id), then=change)

    def _timeout(self, phase: Phase) -> timedelta | None:
        """The timeout of a single job; one with items or iterations has its phase's deadline."""
        return None if phase.loop is not None or phase.for_each is not None else phase.timeout

    def _limits(self, limits: Limits, agent: PinnedAgent | None = None) -> dict[str, int]:
        """The maxima of one job: of its phase, and what the run has left to work if its agent may work as long."""
        maxima = dict(limits_document(limits))
        left = time_left_ms(upwards(self.run, self.rows))
        if left is not None:
            own = limits.over(Limits() if agent is None else agent.limits).maximum(
                LimitName.DURATION
            )
            maxima[LimitName.DURATION.value] = left if own is None else min(left, own)
        return maxima

    def _within(self) -> tuple[ParentLimits, ...]:
        """The limits of the run, and of the runs above it, that its jobs share."""
        above = (limits_kept(run, limits) for run, limits in upwards(self.run, self.rows))
        return tuple(reversed([limits for limits in above if limits is not None]))

    def _session(
        self, step: SubmitPhase, action: AgentAction, agent: PinnedAgent, node: WorkflowNode
    ) -> Session:
        is_kept = keeps_session(self.body.definition, node.key)
        return self._new_session(action.agent, agent, node, node.id if is_kept else None)

    def _new_session(
        self, name: str, agent: PinnedAgent, node: WorkflowNode, channel: str | None
    ) -> Session:
        return Session(
            id=self.free_id(Session, node, generate_session_id),
            agent=name,
            mode=SessionMode.FRESH_PER_JOB if channel is None else SessionMode.PER_CHANNEL,
            channel_id=channel,
            status=SessionStatus.CREATED,
            runtime_type=agent.runtime,
            working_directory=self.body.definition.working_directory or agent.working_directory,
            operation=agent.operation,
            created_at=self.at,
            last_active_at=self.at,
        )

    def _continued(self, key: NodeKey | None) -> SessionId | None:
        """The session of that node, if it can be continued: or a fork of it that a person made the current one."""
        node = self.records.nodes.get(key) if key is not None else None
        job = self.rows.get(Job, node.job_id) if node is not None and node.job_id else None
        session_id = (node.session_id if node else None) or (job.session_id if job else None)
        session = self.rows.get(Session, session_id) if session_id is not None else None
        if session is not None and session.mode is SessionMode.PER_CHANNEL:
            current = self.rows.current_session(session.key)
            session = current if self._is_fork(current, session.id) else session
        if session is None or session.removed_at is not None:
            return None
        return None if session.status in SESSION_LIFECYCLE.terminal else session.id

    def _is_fork(self, session: Session | None, of: SessionId) -> bool:
        while session is not None and session.parent_session_id is not None:
            if session.parent_session_id == of:
                return True
            session = self.rows.get(Session, session.parent_session_id)
        return False

    def free_id(
        self, kind: type[msgspec.Struct], node: WorkflowNode, make: Callable[[Any], IdT]
    ) -> IdT:
        """An id made from the node's that no row has, nor anything that begins in the same decision."""
        for salt in count():
            found = make(derived(node.id, salt))
            if found not in self.taken and self.rows.get(kind, found) is None:
                self.taken.add(found)
                return found
        raise AssertionError("counting never ends")


def replace_attempt(key: NodeKey, attempt: int) -> NodeKey:
    """Return the key of another attempt."""
    return NodeKey(key.path, key.iteration, key.item, attempt)


def derived(text: str, salt: int) -> Any:
    """Return what gives the same random text for the same node: decisions roll no dice."""
    digest = sha256(f"{text}\0{salt}".encode()).digest()

    def random_text(length: int) -> str:
        return "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:length])

    return random_text


def limits_kept(run: WorkflowRun, limits: Limits) -> ParentLimits | None:
    """Return the limits that all jobs of a run share; None when it has none."""
    maxima = run_limits(run, limits)
    shared: dict[str, int] = {
        name.value: maxima[name.value] for name in SHARED_LIMITS if name.value in maxima
    }
    if not shared:
        return None
    failing = tuple(name.value for name in SHARED_LIMITS if limits.outcome(name) is OnLimit.FAIL)
    return ParentLimits(job=JobId(run.id), limits=shared, fail=failing)
