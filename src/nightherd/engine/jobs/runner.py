"""JobRunner: one execution of a job, in four steps.

1. Take the job: its new epoch fences every earlier execution.
2. Begin: the journal says which execution this is, and what the runtime is asked.
3. Loop over the runtime's events: each is in the journal before anything else sees it (`run_loop.py`).
4. Settle: hooks, the journal's last line, then the rows that say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import msgspec
from msgspec.structs import replace

from nightherd.engine.chat.join_turn import TurnInput, input_for_turn
from nightherd.engine.chat.send_file import servers_for_turn
from nightherd.engine.children import is_unwanted
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.abandoned import finish_ending
from nightherd.engine.jobs.answer_stream import open_stream
from nightherd.engine.jobs.begin import Begun, Counted, begin, counted_now, request_for
from nightherd.engine.jobs.operator_log import log_end, log_start, logged
from nightherd.engine.jobs.oversight import Stopper, is_cancel_requested
from nightherd.engine.jobs.recorder import OnEvent, Progress, Recorder
from nightherd.engine.jobs.run_loop import RunLoop
from nightherd.engine.jobs.settings import record_settings, stages_of
from nightherd.engine.jobs.settle import (
    hand_over_change,
    job_of,
    last_line,
    run_hooks,
    settling_change,
)
from nightherd.engine.jobs.watch import Watch, make_watch
from nightherd.engine.limits.guard import Stop
from nightherd.engine.limits.logins import stopped_by, with_login_limit
from nightherd.engine.workspaces.job_workspace import JobWorkspace
from nightherd.errors import AgentBlockedError, FencedError, JobNotFoundError, StateError
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import InjectedMcpServerDef, run_elsewhere
from nightherd.model.change import Answer, Applied, Change, Refused, Why
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.changes import RecordContainer, StartExecution
from nightherd.model.jobs.job import ExitReason, Job, JobTexts
from nightherd.model.jobs.lost import FROZEN, HANDED_OVER
from nightherd.model.jobs.outcome import CANCELLED, SILENT_END, Outcome, Tally
from nightherd.model.jobs.settings import Stage
from nightherd.model.journal.event import describe
from nightherd.model.journal.settings_ref import SettingsRef
from nightherd.model.journal.system import Suspension, Warned
from nightherd.model.sessions.session import Session, move_of
from nightherd.ports import Journal, RuntimeRequest, no_input


async def run_job(
    job_id: JobId,
    agent: Agent,
    context: WorkerContext,
    *,
    on_event: OnEvent,
    stopper: Stopper | None = None,
    injected: Sequence[InjectedMcpServerDef] = (),
) -> Job:
    """Take the pending job `job_id`, run it and settle it; return it as it is then.

    Raises `NotYetError` when it has to wait, `RefusedError` when it cannot be taken, `FencedError` when
    another worker took it over, `AgentBlockedError` when no job of the agent may run.
    """
    _check_blocked(agent)
    start = StartExecution(
        job_id=job_id,
        worker=context.worker,
        at=context.clock.now(),
        repo=agent.repo,
        agent_limit=agent.max_concurrent,
        fleet_limit=context.fleet_limit,
        stopped_by=stopped_by(agent, context.environment),
    )
    (taken,) = await context.state.apply([start])
    return await run_taken_job(
        job_of(taken),
        agent,
        context,
        on_event=on_event,
        stopper=stopper,
        injected=injected,
        taken=taken,
    )


async def run_taken_job(
    job: Job,
    agent: Agent,
    context: WorkerContext,
    *,
    on_event: OnEvent,
    stopper: Stopper | None = None,
    injected: Sequence[InjectedMcpServerDef] = (),
    taken: Answer | None = None,
) -> Job:
    """Run a job that this worker has taken, and settle or suspend it; return it as it is then.

    `taken` is the answer that gave it to this worker: the rows in it are not read again.
    """
    _check_blocked(agent)
    log_start(job, context)
    session, texts = _rows_of(taken)
    texts = texts or context.reader.find_texts(job.id)
    if texts is None:
        raise JobNotFoundError(f"job {job.id} has no prompt on record")
    stages = stages_of(job, agent, texts.overrides, context)
    agent = stages[-1].agent
    if session is None and job.session_id is not None:
        session = context.reader.find_session(job.session_id)
    recorder = Recorder(
        context.secrets,
        logged(job, context, on_event),
        is_ours=lambda: context.lease.holds(context.clock.monotonic()),
    )
    watch = make_watch(job, agent, texts, recorder, context)
    stopper = stopper or Stopper()
    stopper.progress = Progress(job, recorder, context.clock, watch.is_countable)
    stopper.state_file = watch.state_file
    runner = JobRunner(
        job=job,
        agent=agent,
        texts=texts,
        session=session,
        context=context,
        recorder=recorder,
        watch=watch,
        stopper=stopper,
        injected=injected,
        stages=stages,
        workspace=JobWorkspace(job, session, agent, recorder, context),
    )
    return await runner.run()


def _check_blocked(agent: Agent) -> None:
    if agent.blocked_by:
        raise AgentBlockedError(agent.name, agent.blocked_by)


def _rows_of(taken: Answer | None) -> tuple[Session | None, JobTexts | None]:
    """Return the session and the texts of a job that was just taken, as far as the answer has them."""
    if not isinstance(taken, Applied):
        return None, None
    return next((row for row in taken.rows if isinstance(row, Session)), None), taken.texts


class JobRunner(msgspec.Struct, kw_only=True):
    """One execution of a job that has been taken, from its first line to its settled row."""

    job: Job
    agent: Agent
    texts: JobTexts
    session: Session | None
    """As it was when the job was taken."""
    context: WorkerContext
    recorder: Recorder
    watch: Watch
    stopper: Stopper
    injected: Sequence[InjectedMcpServerDef]
    stages: Sequence[Stage]
    """What made the agent what it is."""
    workspace: JobWorkspace
    before: Tally = msgspec.field(default_factory=Tally)
    """What earlier executions left on record."""
    input: TurnInput | None = None
    """What people say while the agent is at work; None for a job that answers no conversation."""
    has_requested: bool = False
    """Whether the runtime has been asked to run: from then on, the job's rows may have changed."""
    closing: Sequence[Change] = ()
    """Changes that belong into the transaction that settles."""
    noted: Sequence[Change] = ()
    """What is known of the workspace at the end; it belongs there too."""

    async def run(self) -> Job:
        """Begin, loop over the runtime's events, settle; return the job as it is then."""
        failure: StateError | None = None
        try:
            with self.recorder.into(self._open_journal()):
                try:
                    stop = await self._execute()
                except FencedError:
                    await self._hand_over_if_frozen()
                    raise
                if stop is None:
                    return await self._hand_over(HANDED_OVER)
                await self.recorder.sync(self.context.sync)
        except StateError as error:
            if error.can_pass:
                # For example a full disk: the job waits until there is room, and continues after its last line.
                await self._hand_over(error.message)
                raise
            # The journal cannot be continued; what it holds so far is what counts.
            failure = error
            stop = Outcome(
                exit_reason=ExitReason.ERROR, error=error.message, error_code="journal_failed"
            )
        settled = await self._settle(stop, failure)
        log_end(settled, self.context)
        if failure is not None:
            raise failure
        await self.watch.settled(settled)
        await self.workspace.settled()
        return settled

    async def _execute(self) -> Stop | None:
        """Begin, loop, run the hooks; how the job stands then, or None when it is to be handed over."""
        options = self.texts.overrides
        settings = await record_settings(self.job, self.stages, options, self.context)
        begun = self._begin(settings)
        await self._note_place()
        stop = await self._loop(begun)
        return None if stop is None else await self._end(stop)

    async def _hand_over_if_frozen(self) -> None:
        """Give the job back if it is still this worker's: what it ran was ended a little before its lease would be.

        Nobody else would take it, for the lease goes on. `FencedError` where another worker has the journal.
        """
        if self.stopper.is_abandoned or not self.recorder.is_ours():
            return
        self.recorder.record(describe(Warned(code="worker_frozen"), FROZEN))
        await self._hand_over(FROZEN)

    def _begin(self, settings: SettingsRef | None) -> Begun:
        """Record the lines before the runtime's own."""
        begun = begin(
            self.recorder,
            self.job,
            self.texts,
            self.session,
            self.context,
            repeats=self.agent.runtime.repeats_calls,
            settings=settings,
        )
        self.before = begun.before
        if self.session is not None:
            moved = move_of(self.session, is_inside=self.agent.container is not None)
            if moved is not None:
                self.recorder.record(describe(Warned(code="session_moved"), moved))
        return begun

    async def _note_place(self) -> None:
        """Record that the session is on this machine; where it is in a container, the runtime says in which."""
        was_inside = self.session is not None and self.session.docker_enabled
        if was_inside and self.agent.container is None:
            job = self.job
            note = RecordContainer(job_id=job.id, epoch=job.epoch, container_id=None)
            (answer,) = await self.context.state.apply([note])
            job_of(answer)

    async def _loop(self, begun: Begun) -> Stop | None:
        """Let the runtime run; return how it ended or why it waits, None when the job is handed over."""
        job, context = self.job, self.context
        self.input = input_for_turn(job, self.agent, self.recorder, context)
        if self.input is not None and job.epoch > 1:
            await self.input.rejoin()
        stop: Stop | None = await finish_ending(job, self.agent, self.recorder, context)
        if stop is None and is_unwanted(job, context.reader):
            stop = CANCELLED
        with closing(open_stream(job, self.recorder, context)) as stream:
            if stop is None:
                loop = RunLoop(
                    job=job,
                    recorder=self.recorder,
                    context=context,
                    stopper=self.stopper,
                    watch=self.watch,
                    prepare=self._prepare,
                    after=self.workspace.after,
                    make_request=lambda: self._request(begun),
                    stream=stream,
                )
                stop = await loop.run()
        if self.stopper.is_abandoned:
            raise FencedError(f"{job.id} belongs to another worker now")
        return None if self.stopper.is_handed_over and stop is SILENT_END else stop

    async def _prepare(self) -> None:
        """Have a directory to work in; from then on the agent and its hooks are there."""
        is_again = self.workspace.is_prepared
        await self.workspace.prepare()
        if is_again:
            return
        root = self.agent.working_directory
        directory = self.workspace.directory or root
        servers = self.agent.mcp_servers
        if directory != root:
            servers = tuple(run_elsewhere(server, root) for server in servers)
        moved = replace(self.agent, working_directory=directory, mcp_servers=servers)
        agent = await self.workspace.accepted(moved)
        self.agent = replace(agent, add_dirs=(*agent.add_dirs, *self.workspace.attachments))

    def _request(self, begun: Begun) -> RuntimeRequest:
        """Return what the runtime is to do, as the journal stands now."""
        counted = Counted(turns=self.job.turns, session=self.session)
        if self.has_requested:
            counted = counted_now(self.job, self.context)
        self.has_requested = True
        texts, notice = self.texts, self.workspace.moved_notice
        if notice is not None:  # right after the prompt: the notice of a fork is not given again
            texts = replace(texts, prompt=f"{texts.prompt}\n\n{notice}")
        request = request_for(
            self.job, self.agent, texts, begun, counted, self.recorder, self.context
        )
        return replace(
            request,
            protected=self.workspace.protected(request.protected),
            environment=self.workspace.environment(request.environment),
            workspace=self.workspace.top,
            borrowed=self.workspace.borrowed,
            take_input=no_input if self.input is None else self.input.take,
            injected_servers=(
                *self.injected,
                *servers_for_turn(self.job, self.agent, self.workspace.top, self.context),
            ),
        )

    async def _end(self, stop: Stop) -> Stop:
        """Run the hooks and record the last line; return how the job stands in the end."""
        stop = self._or_cancelled(stop)
        where = self.workspace.container
        stop = await run_hooks(self.job, self.agent, stop, self.recorder, self.context, where)
        stop = self._or_cancelled(stop)
        self.noted = await self.workspace.close()
        if isinstance(stop, Suspension):
            stop = with_login_limit(stop, self.agent, self.context)
        await self._record_end(stop)
        return stop

    async def _record_end(self, stop: Stop) -> None:
        self.closing = await self.watch.closing(stop)
        self.recorder.record(last_line(stop))

    def _or_cancelled(self, stop: Stop) -> Stop:
        """Return how the run ended, unless the job was cancelled meanwhile."""
        return CANCELLED if is_cancel_requested(self.job, self.context) else stop

    async def _settle(self, stop: Stop, failure: StateError | None) -> Job:
        """Write the rows; return the job as they have it."""
        answer = await self._apply(stop, has_checkpoint=failure is None)
        if isinstance(answer, Refused) and answer.why is Why.CANCELLED:
            # It was cancelled after its last line: the journal says so before the row does.
            if failure is None:
                with self.recorder.into(self._open_journal()):
                    await self._record_end(CANCELLED)
                    await self.recorder.sync(self.context.sync)
            answer = await self._apply(CANCELLED, has_checkpoint=failure is None)
        return job_of(answer)

    async def _apply(self, stop: Stop, *, has_checkpoint: bool) -> Answer:
        change = settling_change(
            self.job, stop, self.before, self.recorder, self.context, has_checkpoint=has_checkpoint
        )
        *_, answer = await self.context.state.apply([*self.closing, *self.noted, change])
        return answer

    async def _hand_over(self, reason: str) -> Job:
        """Give the job back: it waits, and the next worker resumes it."""
        change = hand_over_change(self.job, self.before, self.recorder, self.context, reason)
        (answer,) = await self.context.state.apply([change])
        if self.watch.state_file is not None:
            await self.watch.state_file.write_end()
        return job_of(answer)

    def _open_journal(self) -> Journal:
        execution = generate_execution_id(self.job.id, self.job.epoch)
        return self.context.journals.open(self.job.id, epoch=self.job.epoch, execution=execution)
