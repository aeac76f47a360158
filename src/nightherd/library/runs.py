"""WorkflowRuns: workflows and their runs, for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.operations import resume_run, run_again, runs
from nightherd.engine.operations.resume import Rescue
from nightherd.engine.operations.resume_run import ResumedRun
from nightherd.engine.operations.run_requests import (
    CancelRun,
    ForkRun,
    RaiseRunLimits,
    ResumeRun,
    RetryRun,
    RunRequest,
    SendRunEvent,
    SetRunScratch,
    SetWorkflow,
    StartWorkflow,
    run_gives_more,
)
from nightherd.engine.operations.wait_run import wait_for_run
from nightherd.engine.workers.run_worker import RunWorker
from nightherd.engine.workers.worker import WorkerLoop, WorkerReports
from nightherd.errors import unwrapped
from nightherd.library.cancel import Cancel
from nightherd.model.agents.agent import Fleet
from nightherd.model.limits.limits import kept_limits
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.rows import RunQuery, WorkflowRun
from nightherd.views.runs.document import RunView, run_document, show_run
from nightherd.views.runs.outputs import output_of
from nightherd.views.runs.runs import find_run, find_run_id
from nightherd.wiring.machine import is_at_work, refuse_agents, user_name
from nightherd.wiring.running import make_worker_loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A workflow of the fleet, and whether it starts runs."""

    name: str
    definition: WorkflowDefinition
    is_enabled: bool = True
    switched_by: str | None = None
    """Who switched it on or off beside its file; None when its file decides."""


class WorkflowRuns:
    """What a program can do with the workflows of an open fleet.

    A run is named by its id, a unique prefix of one, `@last` or `@last-failed`. What a program does is recorded under
    the name of the user that runs it. A program that an agent started cannot give a run more: `RefusedError`.
    """

    def __init__(
        self, fleet: Fleet, state_dir: Path, context: WorkerContext, rescue: Rescue
    ) -> None:
        self.fleet = fleet
        self.state_dir = state_dir
        self._context = context
        self._rescue = rescue

    def workflows(self) -> Sequence[Workflow]:
        """Return the workflows of the fleet."""
        switches = {one.name: one for one in self._context.reader.list_workflow_overrides()}
        found = []
        for name, definition in self.fleet.workflows.items():
            switch = switches.get(name)
            found.append(
                Workflow(
                    name=name,
                    definition=definition,
                    is_enabled=switch is None or switch.enabled,
                    switched_by=None if switch is None else switch.updated_by,
                )
            )
        return found

    async def set_workflow(self, name: str, *, enabled: bool | None) -> None:
        """Switch a workflow off or on beside its file; with None, its file decides again."""
        request = SetWorkflow(workflow=name, by=user_name(), enabled=enabled)
        self._refuse_agents(request)
        await runs.set_workflow(request, self._context)

    async def run_workflow(
        self,
        name: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        wait: bool = True,
        dedupe_key: str | None = None,
        cancel: Cancel | None = None,
    ) -> RunView:
        """Start a run and return it once it has ended or waits; without `wait`, once nothing can lose it.

        The same `dedupe_key` never starts a second run. `InvalidInputsError` for inputs that the workflow does not
        take, `RefusedError` when it is switched off or drops a further run.
        """
        request = StartWorkflow(
            workflow=name, inputs=dict(inputs or {}), by=user_name(), dedupe_key=dedupe_key
        )
        started = await runs.start_workflow(request, self._context)
        return await self._wait(started.run, cancel) if wait else self.run(started.run.id)

    async def wait_for_run(self, run: str, *, cancel: Cancel | None = None) -> RunView:
        """Work on a run until it has ended, or waits for a person, an event or a later time; return it as it is then.

        Jobs that other workers have are waited for.
        """
        return await self._wait(self._find(run), cancel)

    def runs(self, query: RunQuery | None = None) -> Sequence[WorkflowRun]:
        """Return runs, newest first."""
        return self._context.reader.list_runs(query or RunQuery())

    def run(self, run: str) -> RunView:
        """Return one run with its phases, inputs, scratch, limits and what it waits for."""
        context = self._context
        return show_run(context.reader, self._find(run).id, context.clock.now(), is_at_work)

    def run_document(self, run: str) -> dict[str, Any]:
        """Return one run as `runs show --json` and the API have it."""
        return dict(run_document(self.run(run), self._context.clock.now()))

    def run_output(self, run: str, phase: str) -> Any:
        """Return the output of a phase, such as `plan` or `fix_loop[2]/review`: text, or a JSON value."""
        return output_of(self._context.reader, self._find(run), phase)

    async def cancel_run(self, run: str) -> WorkflowRun:
        """End a run: what waits in it ends at once, what runs is stopped by its workers."""
        request = CancelRun(run_id=self._find(run).id, by=user_name())
        cancelled = await runs.cancel_run(request, self._context)
        await self._rescue()  # a worker that is gone stops nothing
        return find_run(self._context.reader, cancelled.id)

    async def retry_run(self, run: str, *, dedupe_key: str | None = None) -> WorkflowRun:
        """Start a new run that keeps what an ended run has done and does the rest again."""
        request = RetryRun(run_id=self._find(run).id, by=user_name(), dedupe_key=dedupe_key)
        return (await run_again.retry_run(request, self._context)).run

    async def resume_run(self, run: str) -> ResumedRun:
        """Let the suspended jobs of a run continue; `RefusedError` when none can."""
        request = ResumeRun(run_id=self._find(run).id)
        return await resume_run.resume_run(request, self._context, rescue=self._rescue)

    async def fork_run(
        self,
        run: str,
        *,
        at: str,
        inputs: Mapping[str, Any] | None = None,
        dedupe_key: str | None = None,
    ) -> WorkflowRun:
        """Start a new run that keeps what is done, except the phase `at` and all that depends on it."""
        request = ForkRun(
            run_id=self._find(run).id,
            at_phase=at,
            by=user_name(),
            inputs=None if inputs is None else dict(inputs),
            dedupe_key=dedupe_key,
        )
        self._refuse_agents(request)
        return (await run_again.fork_run(request, self._context)).run

    async def signal_run(
        self, run: str, event: str, *, payload: Any = None, key: str | None = None
    ) -> WorkflowRun:
        """Send an event to a run; the same `key` sends one. The phase that waits for it, or will, takes it."""
        request = SendRunEvent(
            run_id=self._find(run).id, name=event, by=user_name(), payload=payload, key=key
        )
        return await runs.send_event(request, self._context)

    async def set_scratch(self, run: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Set values of the run's scratch, each key on its own (None removes one), and return all of it."""
        request = SetRunScratch(run_id=self._find(run).id, values=dict(values))
        return await runs.set_scratch(request, self._context)

    async def raise_run_limits(self, run: str, limits: Mapping[str, str]) -> WorkflowRun:
        """Raise limits of a run to new maxima, such as `{"spend": "5"}`; jobs that wait for them continue."""
        request = RaiseRunLimits(run_id=self._find(run).id, limits=kept_limits(limits))
        self._refuse_agents(request)
        return await runs.raise_run_limits(request, self._context)

    def _find(self, run: str) -> WorkflowRun:
        reader = self._context.reader
        return find_run(reader, find_run_id(reader, run))

    def _refuse_agents(self, request: RunRequest) -> None:
        more = run_gives_more(request)
        if more is not None:
            refuse_agents(self.state_dir, more)

    async def _wait(self, run: WorkflowRun, cancel: Cancel | None) -> RunView:
        worker = RunWorker(partial(self._make_loop, run), self._context, SILENT)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(worker.work)
                ended = await wait_for_run(
                    run.id,
                    self._context,
                    by=user_name(),
                    stopper=(cancel or Cancel()).stopper,
                    on_look=_ignore,
                )
                worker.stop()
        except ExceptionGroup as group:
            raise unwrapped(group) from None
        return self.run(ended.id)

    def _make_loop(
        self, run: WorkflowRun, context: WorkerContext, reports: WorkerReports
    ) -> WorkerLoop:
        loop = make_worker_loop(self.fleet, context, reports, leaves_when_idle=False)
        loop.take_only(run.root)
        return loop


def _ignore(*_: object) -> None:
    """A caller that waits is shown nothing; it asks for events."""


SILENT = WorkerReports(
    on_start=_ignore, on_event=_ignore, on_end=_ignore, on_rescue=_ignore, on_trouble=_ignore
)
