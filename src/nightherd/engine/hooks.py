"""Hooks: what an agent's settings want done when one of its jobs has ended, or waits.

Run by the worker that settles the job, for every trigger alike, after the runtime's last word and before the
job's end is written. A hook's beginning is on record before it is begun, so that none takes effect twice for
one end of a job. One that was cut off with its worker is reported as interrupted, and begun again only where
its settings say `retry`; but an agent is submitted in any case, for that makes the same job again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from nightherd.engine.contexts import FleetContext, Stores
from nightherd.engine.notifications.hook_messages import queue_hook_message
from nightherd.engine.operations.requests import Submit
from nightherd.engine.operations.submit import submit
from nightherd.errors import FencedError, NightherdError
from nightherd.model.agents.agent import Agent, get_agent
from nightherd.model.hooks import (
    HOOK_FAILED,
    AgentSubmission,
    ChatMessage,
    Hook,
    HookEvent,
    HookPoint,
    HttpRequest,
    ShellCommand,
    asked_about,
    event_of,
    fill_body,
    is_due,
)
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.job import ExitReason, Job, JobStatus, TriggerType, row_text
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.event import ErrorEvent, Event, describe
from nightherd.model.journal.recollection import Remembered, remembered
from nightherd.model.journal.system import HookRan, Warned
from nightherd.ports import CommandContainer, HookCall, HookCarrier, HookResult
from nightherd.views.jobs.jobs import own_job

SCHEMA = "nightherd/v1/hook"
MOST_GENERATIONS = 8
"""How many jobs may descend from one another by hooks: two agents that submit each other come to an end."""
CUT_OFF = "interrupted: the worker was lost while this ran, its progress is unknown"

RecordEvent = Callable[[Event], Event]
DescribeJob = Callable[[ObservedJob], Mapping[str, Any]]
"""A job as every surface shows it."""


class JobHooks(msgspec.Struct, frozen=True, kw_only=True):
    """Runs the hooks of jobs."""

    carrier: HookCarrier
    describe_job: DescribeJob

    async def after(
        self,
        job: Job,
        agent: Agent,
        context: FleetContext,
        *,
        record: RecordEvent,
        answer: str | None = None,
        container: CommandContainer | None = None,
    ) -> Outcome | None:
        """Run what is due now that `job` has come to stand so; it is given as it will be settled.

        Another outcome than the one the job has when a hook that must succeed did not: then the error is
        on record already. Raises only what `record` raises. `container` is where commands run, if that is known better
        than the agent says.
        """
        event = event_of(job)
        if event is None or not agent.hooks:
            return None
        occasion = _Occasion(
            job=job,
            agent=agent,
            event=event,
            payload=await self._payload(job, agent, event, answer, context),
            context=context,
            record=record,
            container=container,
        )
        known = await to_thread.run_sync(_known, job, event, context)
        failed = await self._run_all(_due(occasion), occasion, known)
        if failed is None or event is not HookEvent.COMPLETED:
            return None
        return await self._turn_to_failure(failed, occasion, known)

    async def _turn_to_failure(
        self, failed: HookRan, occasion: _Occasion, known: Mapping[str, Remembered]
    ) -> Outcome:
        """The job is done and fails all the same; what is due for failed jobs is due now."""
        message = f"the hook {failed.name} failed: {failed.error or 'no reason given'}"
        occasion.record(ErrorEvent(message=message, code=HOOK_FAILED))
        outcome = Outcome(exit_reason=ExitReason.ERROR, error=message, error_code=HOOK_FAILED)
        job = replace(
            occasion.job,
            status=JobStatus.FAILED,
            exit_reason=ExitReason.ERROR,
            error=row_text(message),
            error_code=HOOK_FAILED,
        )
        payload = await self._payload(
            job,
            occasion.agent,
            HookEvent.FAILED,
            occasion.payload["result"]["output"],
            occasion.context,
        )
        after = replace(occasion, job=job, event=HookEvent.FAILED, payload=payload)
        late = [hook for hook in _due(after) if hook.point is not HookPoint.AFTER_RUN]
        await self._run_all(late, after, known)
        return outcome

    async def _run_all(
        self, hooks: Sequence[Hook], occasion: _Occasion, known: Mapping[str, Remembered]
    ) -> HookRan | None:
        """One after another; the one that failed and must not, after which none is begun."""
        for hook in hooks:
            ran = await self._run(hook, occasion, known.get(hook.id))
            if ran.success is False and not hook.continue_on_error:
                return ran
        return None

    async def _run(self, hook: Hook, occasion: _Occasion, known: Remembered | None) -> HookRan:
        name = hook.name or hook.id
        begun = HookRan(name=name, id=hook.id, event=occasion.event.value)
        if known is not None and known.ran.success is not None:
            return known.ran
        is_repeatable = hook.retry or isinstance(hook.action, AgentSubmission | ChatMessage)
        if known is not None and not is_repeatable:
            cut = msgspec.structs.replace(begun, success=False, error=CUT_OFF, is_interrupted=True)
            occasion.record(describe(cut))
            return cut
        occasion.record(describe(begun))
        clock = occasion.context.clock
        started = clock.monotonic()
        result = await self._carry_out(hook, occasion, known)
        for notice in result.notices:
            occasion.record(describe(Warned(code="egress_refused"), notice))
        ended = msgspec.structs.replace(
            begun,
            success=result.success,
            duration_ms=round((clock.monotonic() - started) * 1_000),
            output=result.output or None,
            error=None if result.success else result.error or "it failed",
            job_id=result.job_id,
        )
        occasion.record(describe(ended))
        return ended

    async def _carry_out(
        self, hook: Hook, occasion: _Occasion, known: Remembered | None
    ) -> HookResult:
        try:
            match hook.action:
                case ShellCommand() as command:
                    return await self.carrier.run_command(command, occasion.call(hook))
                case HttpRequest() as request:
                    return await self.carrier.send(request, occasion.request_call(hook, request))
                case ChatMessage() as message:
                    return await queue_hook_message(
                        hook, message, occasion.job, occasion.payload, occasion.context
                    )
                case AgentSubmission() as submission:
                    return await self._submit(hook, submission, occasion, known)
        except FencedError:
            raise
        except NightherdError as error:
            return HookResult(success=False, error=error.message)
        except Exception as error:  # noqa: BLE001 (an edge: a hook never takes the worker with it)
            return HookResult(success=False, error=f"{type(error).__name__}: {error}")

    async def _submit(
        self,
        hook: Hook,
        submission: AgentSubmission,
        occasion: _Occasion,
        known: Remembered | None,
    ) -> HookResult:
        """A job for another agent; the same end of the same job never makes two, `known` from its first try."""
        job, event, context = occasion.job, occasion.event, occasion.context
        agent = get_agent(context.agents, submission.agent, context.withheld)
        if _generation(job, context) >= MOST_GENERATIONS:
            return HookResult(
                success=False,
                error=f"{MOST_GENERATIONS} jobs descend from one another by hooks already",
            )
        prompt = (
            None
            if agent.default_prompt is not None
            else _prompt_about(job, event, occasion.payload)
        )
        which = event.value if known is None else known.ran.event
        if event is HookEvent.SUSPENDED:
            which = f"{event}-{job.epoch if known is None else known.epoch}"
        request = Submit(
            agent=agent.name,
            prompt=prompt,
            inputs={
                "event": event.value,
                "job": job.id,
                "agent": job.agent,
                "code": job.error_code or "",
                **submission.inputs,
            },
            trigger_type=TriggerType.SPAWNED,
            trigger_id=job.id,
            dedupe_key=f"hook:{job.id}:{hook.id}:{which}",
            has_own_key=True,
            asked_about=job.id if hook.point is HookPoint.LIMITS else None,
        )
        submitted = await submit(request, context)
        return HookResult(success=True, job_id=submitted.job.id)

    async def _payload(
        self,
        job: Job,
        agent: Agent,
        event: HookEvent,
        answer: str | None,
        context: Stores,
    ) -> dict[str, Any]:
        """The payload of hooks and of their conditions."""
        identity = agent.identity
        metadata = await self.carrier.read_metadata(agent)
        if answer is not None:
            job = replace(job, summary=row_text(answer))
        return {
            "schema": SCHEMA,
            "event": event.value,
            "job": dict(self.describe_job(own_job(context.reader, job, context.clock.now()))),
            "result": {
                "success": job.status is JobStatus.COMPLETED,
                "output": answer,
                "error": job.error,
            },
            "agent": {
                "name": agent.name,
                "description": agent.description,
                "repo": agent.repo,
                "working_directory": agent.working_directory,
                "identity": {
                    "name": identity.name,
                    "role": identity.role,
                    "personality": identity.personality,
                }
                if identity is not None
                else None,
            },
            "metadata": context.secrets.mask(metadata),
        }


class _Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """One end of one job, and what its hooks are told."""

    job: Job
    agent: Agent
    event: HookEvent
    payload: Mapping[str, Any]
    context: FleetContext
    record: RecordEvent
    container: CommandContainer | None = None

    def call(self, hook: Hook) -> HookCall:
        """What an adapter needs to carry one hook out."""
        payload = {**self.payload, "hook": {"id": hook.id, "name": hook.name}}
        return HookCall(
            id=f"{self.job.id}/{self.event}/{hook.id}",
            execution=generate_execution_id(self.job.id, self.job.epoch),
            event=self.event.value,
            job_id=self.job.id,
            body=msgspec.json.encode(payload),
            working_directory=self.agent.working_directory,
            environment=self.context.environment,
            secrets=self.context.secrets,
            container=self._where(),
        )

    def _where(self) -> CommandContainer | None:
        """Commands of an agent with a container run in it: on the host, they would run what the agent wrote."""
        if self.agent.container is None or self.container is not None:
            return self.container
        return CommandContainer(
            agent=self.agent,
            session_id=self.job.session_id,
            protected=self.context.protected,
        )

    def request_call(self, hook: Hook, request: HttpRequest) -> HookCall:
        """The same for a request, with the body that it names."""
        call = self.call(hook)
        if request.body is None:
            return call
        about = {"id": hook.id, "name": hook.name, "event": self.event.value}
        body = fill_body(request.body, {**self.payload, "hook": about})
        if isinstance(request.body, str):
            text = body if isinstance(body, str) else msgspec.json.encode(body).decode()
            return dataclasses.replace(
                call, body=text.encode(), content_type="text/plain; charset=utf-8"
            )
        return dataclasses.replace(call, body=msgspec.json.encode(body))


def _due(occasion: _Occasion) -> list[Hook]:
    """The hooks for this, those for every job first, each list in its order.

    A job that was asked about a limit and is suspended itself asks no other: that one would only wait too.
    """
    order = list(HookPoint)
    is_alone = occasion.event is HookEvent.SUSPENDED and asked_about(occasion.job) is not None
    due = [
        hook
        for hook in occasion.agent.hooks
        if is_due(hook, occasion.event, occasion.job, occasion.payload)
        and not (is_alone and hook.point is HookPoint.LIMITS)
    ]
    return sorted(due, key=lambda hook: order.index(hook.point))


def _known(job: Job, event: HookEvent, context: Stores) -> dict[str, Remembered]:
    """What earlier executions have begun; the first one has no earlier."""
    if job.epoch <= 1:
        return {}
    return remembered(context.journals.read(job.id, load_blobs=False), event)


def _generation(job: Job, context: Stores) -> int:
    """How many jobs before this one were submitted by each other's hooks."""
    count = 0
    found: Job | None = job
    while found is not None and found.trigger_type is TriggerType.SPAWNED and found.trigger_id:
        count += 1
        if count >= MOST_GENERATIONS:
            break
        found = context.reader.find_job(JobId(found.trigger_id))
    return count


def _prompt_about(job: Job, event: HookEvent, payload: Mapping[str, Any]) -> str:
    """The prompt of an agent that has none of its own."""
    result = payload["result"]
    said = result["error"] or result["output"] or ""
    return f"Job {job.id} of {job.agent}: {event}.\n\n{said}".strip()
