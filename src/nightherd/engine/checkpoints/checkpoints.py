"""Checkpoints: bookmarks in a job's record, put at the places of a run that the project wants them at.

A bookmark is one line of the journal, whatever the length of the conversation. The first of an execution, and
those that must be saved, are rows too: a row says what the job may use, for all lines that follow it. Two
bookmarks that would fall on the same line are one, named by the higher priority.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from nightherd.engine.checkpoints.state_files import StateFile
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.recorder import Recorder
from nightherd.errors import FencedError, StateError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Applied, Refused, SaveCheckpoint, Why
from nightherd.model.checkpoints.checkpoint import (
    HEADER_LIMIT,
    Checkpoint,
    TriggerPoint,
    checkpoint_id,
)
from nightherd.model.checkpoints.journal_checkpoints import last_number
from nightherd.model.checkpoints.persistence import MUST_SAVE
from nightherd.model.hooks import AgentSubmission, HookPoint
from nightherd.model.jobs.job import Job, JobStatus
from nightherd.model.jobs.outcome import Outcome, Tally
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import CheckpointSaved, Suspension
from nightherd.model.limits.limits import LimitName, Limits, OnLimit, limits_document
from nightherd.model.units import MicroUsd

LONGEST_SYSTEM_PROMPT = 2_000


class Bookmarks:
    """Puts the bookmarks of one execution."""

    def __init__(
        self, job: Job, agent: Agent, limits: Limits, recorder: Recorder, context: WorkerContext
    ) -> None:
        self._job = job
        self._recorder = recorder
        self._context = context
        self._agent = agent
        self._limits = limits
        self._last: CheckpointSaved | None = None
        """The last one of this execution."""
        self._has_row = False
        self._behind = 0
        """The line after which nothing has been said since the last bookmark."""
        self._priority = 0
        self.state_file = StateFile(job.id, context)

    @cached_property
    def _header(self) -> dict[str, Any]:
        """What all of them say; most runs put none."""
        return header_of(self._agent, self._limits)

    def know(self, limits: Limits) -> None:
        """What the job may use from now on."""
        if limits != self._limits:
            self._limits = limits
            self.__dict__.pop("_header", None)

    async def at(self, point: TriggerPoint, running_ms: int) -> None:
        """Put one at `point`, unless it is switched off or the line has one that counts more."""
        if not self._is_due(point):
            return
        mark = self._mark(point, running_ms)
        has_row = self._needs_row(point)
        if has_row:
            row = await self._save(self._row(mark), point)
            mark = msgspec.structs.replace(mark, number=row.number, seq=row.seq)
        self._recorder.record(describe(mark))
        self._last, self._has_row = mark, has_row
        self._behind = self._recorder.last_seq
        self._priority = self._context.persistence.priority(point)
        if self.state_file.follows_checkpoints:
            await self.state_file.follow(self._row(mark))

    async def close(
        self,
        point: TriggerPoint,
        end: Suspension | Outcome,
        running_ms: int,
        *,
        outcome: OnLimit | None = None,
    ) -> None:
        """Put the last one, which says how the run ended. It has no line: the end itself is the next."""
        if not self._is_due(point):
            return
        checkpoint = self._row(self._mark(point, running_ms))
        if isinstance(end, Suspension):
            checkpoint = replace(
                checkpoint,
                status=JobStatus.SUSPENDED.value,
                suspend_reason=end.reason.value,
                header={**checkpoint.header, "suspension": suspension_document(end, outcome)},
            )
        else:
            checkpoint = replace(checkpoint, status=end.status.value)
        await self._save(checkpoint, point)

    def _needs_row(self, point: TriggerPoint) -> bool:
        """The first of an execution, one that must be saved, and one that takes the place of such a one."""
        is_first = self._last is None
        is_must = self._context.persistence.priority(point) >= MUST_SAVE
        return is_first or is_must or (self._is_same_line and self._has_row)

    async def _save(self, checkpoint: Checkpoint, point: TriggerPoint) -> Checkpoint:
        """As a row; the checkpoint as it is there. One that must be saved is so after the lines before it."""
        if self._last is None and self._job.epoch > 1:
            checkpoint = replace(checkpoint, number=await self._number_on_record() + 1)
        is_synced = self._context.persistence.priority(point) >= MUST_SAVE
        if is_synced:
            await self._recorder.sync(self._context.sync)
        change = SaveCheckpoint(epoch=self._job.epoch, checkpoint=checkpoint, is_synced=is_synced)
        (answer,) = await self._context.state.apply([change])
        return saved_by(answer)

    async def _number_on_record(self) -> int:
        """The highest number that earlier executions have given. In a thread: the whole record is read."""
        context, job_id = self._context, self._job.id
        rows = context.reader.list_checkpoints(job_id)
        return await to_thread.run_sync(
            lambda: last_number(rows, context.journals.read(job_id, load_blobs=False))
        )

    @property
    def _is_same_line(self) -> bool:
        return self._last is not None and self._recorder.last_seq == self._behind

    def _is_due(self, point: TriggerPoint) -> bool:
        persistence = self._context.persistence
        if not persistence.is_enabled(point):
            return False
        return not self._is_same_line or persistence.priority(point) > self._priority

    def _mark(self, point: TriggerPoint, running_ms: int) -> CheckpointSaved:
        """The next one, as its line says it; it takes the number of the last one if it takes its place."""
        last, tally = self._last, self._recorder.tally
        number, seq = 0, self._recorder.last_seq
        if last is not None:
            is_same = self._is_same_line
            number, seq = (last.number, last.seq) if is_same else (last.number + 1, seq)
        usage = tally.usage
        return CheckpointSaved(
            number=number,
            trigger=point.value,
            seq=seq,
            turn=tally.turns,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_creation_input_tokens=usage.cache_creation_input_tokens,
            cache_read_input_tokens=usage.cache_read_input_tokens,
            cost_microusd=usage.cost_microusd,
            duration_ms=running_ms,
        )

    def _row(self, mark: CheckpointSaved) -> Checkpoint:
        """The same with what its line does not say: what the job may use."""
        return Checkpoint(
            id=checkpoint_id(self._job.id, mark.number),
            job_id=self._job.id,
            number=mark.number,
            epoch=self._job.epoch,
            seq=mark.seq,
            trigger=mark.trigger,
            status=JobStatus.RUNNING.value,
            created_at=self._context.clock.now(),
            turn=mark.turn,
            input_tokens=mark.input_tokens,
            output_tokens=mark.output_tokens,
            cache_creation_input_tokens=mark.cache_creation_input_tokens,
            cache_read_input_tokens=mark.cache_read_input_tokens,
            cost_microusd=MicroUsd(mark.cost_microusd),
            duration_ms=mark.duration_ms,
            header=self._header,
        )


def saved_by(answer: Applied | Refused) -> Checkpoint:
    """The bookmark as it was saved, or what its refusal means as an error."""
    if isinstance(answer, Refused):
        if answer.why in (Why.FENCED, Why.STATUS):
            raise FencedError(answer.message)
        raise StateError(answer.message)
    return next(row for row in answer.rows if isinstance(row, Checkpoint))


def end_point(end: Suspension | Outcome) -> TriggerPoint | None:
    """Which place of a run its end is; None for one that succeeds."""
    if isinstance(end, Suspension):
        return TriggerPoint.ON_SUSPEND
    match end.status:
        case JobStatus.CANCELLED:
            return TriggerPoint.ON_CANCEL
        case JobStatus.FAILED:
            return TriggerPoint.ON_ERROR
        case _:
            return None


def point_of(event: Event, tally: Tally) -> TriggerPoint | None:
    """Which place of a run an event shows, for runtimes that do not say so themselves."""
    match event:
        case ToolResultEvent() if not tally.open_calls:
            return TriggerPoint.POST_TOOLS
        case ToolUseEvent(end=True) | AssistantEvent(end=True, partial=None | False):
            return TriggerPoint.POST_LLM
        case _:
            return None


def suspension_document(why: Suspension, outcome: OnLimit | None) -> dict[str, Any]:
    """Why the job waits, as a header has it."""
    return {
        "code": why.code,
        "current_value": why.current_value,
        "current_max": why.current_max,
        "until": None if why.until is None else why.until.isoformat(),
        "on_reached": None if outcome is None else outcome.value,
        **({"owner": why.owner, "is_ahead": why.is_ahead} if why.owner is not None else {}),
    }


def header_of(agent: Agent, limits: Limits) -> dict[str, Any]:
    """What a bookmark says besides where and how much, bounded; what does not fit is named and left out."""
    header: dict[str, Any] = {"limits": limits_document(limits)}
    answers = {name: limits.outcome(LimitName(name)).value for name in header["limits"]}
    optional: dict[str, Any] = {
        "on_reached": {
            name: word for name, word in answers.items() if word != OnLimit.SUSPEND.value
        }
        or None,
        "required_caps": list(agent.required_caps) if agent.required_caps is not None else None,
        "hooks": hook_documents(agent) or None,
        "system_prompt": agent.system_prompt,
    }
    for name, value in optional.items():
        if value is None:
            continue
        is_long = name == "system_prompt" and len(value) > LONGEST_SYSTEM_PROMPT
        if is_long or len(json.dumps({**header, name: value}).encode()) > HEADER_LIMIT // 2:
            header.setdefault("left_out", []).append(name)
        else:
            header[name] = value
    return header


def hook_documents(agent: Agent) -> list[dict[str, Any]]:
    """The agents that are submitted when something happens to the job."""
    return [
        {"event": event, "directive": hook.action.agent, "inputs": dict(hook.action.inputs)}
        for hook in agent.hooks
        if hook.point is HookPoint.LIMITS and isinstance(hook.action, AgentSubmission)
        for event in sorted(hook.on)
    ]
