"""Hooks on memory stores: a carrier that plays results, and a bench whose jobs have hooks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import anyio
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.engine.hooks import JobHooks
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.agents.agent import Agent
from nightherd.model.hooks import Action, Hook, HookPoint, HttpRequest, ShellCommand
from nightherd.model.ids import JobId
from nightherd.model.journal.event import SystemEvent, payload_of
from nightherd.model.journal.system import HookRan
from nightherd.ports import HookCall, HookResult
from nightherd.views.jobs.jobs import job_row

FINE = HookResult(success=True, output="fine")
BROKEN = HookResult(success=False, error="exit code 1")
NOTE = ShellCommand(command="note", timeout=timedelta(seconds=30))


def hook(point: HookPoint = HookPoint.AFTER_RUN, place: int = 0, **more: Any) -> Hook:
    """A hook of one list; a command that only takes note unless it says otherwise."""
    action: Action = more.pop("action", NOTE)
    return Hook(id=f"{point}[{place}]", point=point, action=action, **more)


@dataclass
class PlayedCarrier:
    """Answers every hook by its id, remembers what it was given, and may look around before."""

    results: Mapping[str, HookResult] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[HookCall], None] = lambda call: None
    calls: list[HookCall] = field(default_factory=list)

    async def run_command(self, command: ShellCommand, call: HookCall) -> HookResult:
        return self._answer(call)

    async def send(self, request: HttpRequest, call: HookCall) -> HookResult:
        return self._answer(call)

    async def read_metadata(self, agent: Agent) -> Mapping[str, Any]:
        return self.metadata

    @property
    def contexts(self) -> list[dict[str, Any]]:
        """What each hook was told."""
        return [json.loads(call.body) for call in self.calls]

    @property
    def ran(self) -> list[str]:
        """The hooks that were carried out, in order, each with its event."""
        return ["/".join(call.id.split("/")[1:]) for call in self.calls]

    def _answer(self, call: HookCall) -> HookResult:
        self.calls.append(call)
        self.before(call)
        return self.results.get(call.id.split("/")[-1], FINE)


def with_hooks(
    bench: Bench, carrier: PlayedCarrier, *hooks: Hook, others: tuple[Agent, ...] = ()
) -> Bench:
    """The bench, its agent with these hooks, in a fleet with `others`."""
    bench.agent = replace(bench.agent, hooks=hooks)
    agents = {agent.name: agent for agent in (bench.agent, *others)}
    engine = JobHooks(carrier=carrier, describe_job=job_row)
    bench.context = replace(bench.context, agents=agents, hooks=engine)
    return bench


def hook_lines(bench: Bench, job_id: JobId) -> list[HookRan]:
    """What the job's journal says about hooks."""
    payloads = [
        payload_of(event) for event in bench.journal(job_id) if isinstance(event, SystemEvent)
    ]
    return [payload for payload in payloads if isinstance(payload, HookRan)]


def submit_to(bench: Bench, agent: Agent, **more: Any) -> JobId:
    """A job for another agent."""
    request = JobDraft(agent=agent, prompt="Go", **more)
    return anyio.run(record_job, request, bench.context).job.id


OTHER = replace(AGENT, name="other", default_prompt="About ${inputs.job}: ${inputs.event}")
