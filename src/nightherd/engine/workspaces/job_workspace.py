"""JobWorkspace: the directory of one execution, from before the runtime starts until the job is settled.

The row is written before the directory is made. A snapshot is a line of the journal, written only when the
files differ from the last one; it is taken before the loop hears of the next event, so no call of the next
turn has begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from anyio import CancelScope, to_thread
from msgspec.structs import replace

from nightherd.engine.chat.attachment_folders import folders_for_job
from nightherd.engine.contexts import WorkerContext
from nightherd.engine.jobs.operator_log import log_trouble
from nightherd.engine.jobs.recorder import Recorder
from nightherd.engine.jobs.settle import job_of
from nightherd.engine.workspaces.choose import Choice, choose, choose_new
from nightherd.engine.workspaces.cleanup import CleanupContext, remove
from nightherd.engine.workspaces.contained import (
    as_begun,
    check_boundary,
    command_container,
    top_of,
)
from nightherd.engine.workspaces.elsewhere import (
    accepted_settings,
    environment_in,
    moved_notice,
    used_text,
)
from nightherd.engine.workspaces.gate_edits import gate_edits
from nightherd.engine.workspaces.setup import run_setup
from nightherd.engine.workspaces.snapshots import TurnSnapshots
from nightherd.errors import NightherdError, WorkspaceError
from nightherd.model.agents.agent import Agent
from nightherd.model.change import Applied, Change, Refused, Why
from nightherd.model.jobs.job import Job, JobQuery, JobStatus
from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import Event, describe
from nightherd.model.journal.system import Warned, WorkspaceUsed
from nightherd.model.permissions.protected import ProtectedPaths, also_in
from nightherd.model.sessions.session import Session
from nightherd.model.workflows.command import COMMANDS_AGENT
from nightherd.model.workflows.run import RunId
from nightherd.model.workspaces.changes import LeaveWorkspace, NoteWorkspace, UseWorkspace
from nightherd.model.workspaces.workspace import Workspace, WorkspaceStatus
from nightherd.ports import CommandContainer, Made, WorkspaceFiles
from nightherd.views.workspaces.workspaces import what_keeps_it

SHARED_DIRECTORY = "shared_directory"
SETTINGS_NOT_ACCEPTED = "settings_not_accepted"


def ignored(text: str) -> None:
    """Show it to nobody: it is in the log."""


class JobWorkspace:
    """Where one execution works, and what its files were."""

    def __init__(
        self,
        job: Job,
        session: Session | None,
        agent: Agent,
        recorder: Recorder,
        context: WorkerContext,
    ) -> None:
        self._job = job
        self._session = session
        self._agent = agent = as_begun(job, agent, context)
        self._policy = agent.workspace
        self._recorder = recorder
        self._context = context
        self._is_edited = False
        self._workspace: Workspace | None = None
        self._snapshots: TurnSnapshots | None = None
        self._is_saved = False
        """Whether the last snapshot of the execution holds all its work."""
        self.directory: str | None = None
        """Where the agent works, once it is prepared."""
        self.top: str | None = None
        """The workspace with that directory in it; None for the agent's own directory."""
        self.container: CommandContainer | None = None
        """Where setup commands and hooks run that are of an agent with a container."""
        self.borrowed: Sequence[str] = ()
        """Directories outside of that one which are read there: git's objects, and `attachments`."""
        self.attachments: tuple[str, ...] = ()
        """Of these, those with files that people sent to the job; for a directory of its own only."""
        self.moved_notice: str | None = None
        """What an agent has to know whose conversation speaks of another directory."""

    @cached_property
    def _files(self) -> WorkspaceFiles:
        return self._context.open_workspaces()

    @property
    def is_prepared(self) -> bool:
        """Whether the runtime may start."""
        return self.directory is not None

    async def prepare(self) -> None:
        """Clone, make or find the directory, and run its setup. `WorkspaceError` when that fails; again if need be.

        Once that is done, it snapshots what a run left that was cut off.
        """
        if self.is_prepared:
            if self._snapshots is not None:
                await self._snapshots.catch_up(self._recorder.tally)
            return
        check_boundary(self._job, self._agent, self._context)
        await self._clone()
        if self._policy.is_shared:
            await self._stay()
            self.directory = self._agent.working_directory
            return
        choice = await self._use(choose(self._job, self._session, self._agent, self._context))
        made = await self._make(choice)
        self.attachments = folders_for_job(self._job, self._context)
        made = replace(made, borrowed=(*made.borrowed, *self.attachments))
        workspace = self._workspace
        assert workspace is not None  # noqa: S101 (set by _use)
        self._record_use(choice, made)
        self._snapshots = TurnSnapshots(workspace, self._policy, self._files, self._recorder)
        # The turn is the one that was cut off; none has begun in the first execution.
        turn = self._recorder.tally.turns or None
        self._snapshots.note(made.snapshot, "start", turn=turn)
        self.container = command_container(self._job, self._agent, made, self._context)
        await run_setup(
            self._job,
            workspace,
            self._policy.setup,
            made.directory,
            self._context,
            lambda step, text: self._recorder.record(describe(step, text)),
            is_new=made.origin not in ("kept", "snapshot"),
            container=self.container,
        )
        if self._policy.setup or self._is_edited:
            await self._snapshots.take("start", turn=turn)
        self.moved_notice = moved_notice(
            self._job, self._session, self._agent, made, self._files, self._context
        )
        self.directory, self.borrowed = made.directory, made.borrowed
        self.top = top_of(made)

    def protected(self, paths: ProtectedPaths | None) -> ProtectedPaths | None:
        """Return what the agent may not change, also in the directory it works in."""
        if paths is None or self.directory is None:
            return paths
        return also_in(paths, self._agent.working_directory, self.directory)

    def environment(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment of what the agent starts."""
        if self._workspace is None or self.directory is None:
            return environment
        return environment_in(self._workspace, self.directory, environment)

    async def accepted(self, agent: Agent) -> Agent:
        """Return the agent without settings files of the workspace that nobody accepted."""
        if self._policy.is_shared:
            return agent
        trusted, changed = await accepted_settings(agent, self._context)
        if changed:
            root = self._agent.working_directory
            text = (
                f"{', '.join(changed)} in the workspace is not obeyed: it is not the one in {root}"
            )
            self._warn(SETTINGS_NOT_ACCEPTED, text)
        return trusted

    async def after(self, event: Event, tally: Tally) -> None:
        """Snapshot the files after the last result of a turn that may have changed them."""
        if self._snapshots is not None:
            await self._snapshots.after(event, tally)

    async def close(self) -> Sequence[Change]:
        """Take the last snapshot; return what belongs into the transaction that settles the job."""
        workspace, snapshots = self._workspace, self._snapshots
        if workspace is None or snapshots is None or not self.is_prepared:
            return ()
        with CancelScope(shield=True):
            await snapshots.take("end", turn=self._recorder.tally.turns or None)
            size = await to_thread.run_sync(self._files.measure, workspace)
        last, self._is_saved = snapshots.last, not snapshots.has_failed
        return (
            NoteWorkspace(
                workspace_id=workspace.id,
                at=self._context.clock.now(),
                job_id=self._job.id,
                epoch=self._job.epoch,
                tree=last.tree if last is not None else None,
                head=last.head if last is not None else None,
                left_out=len(last.left_out) if last is not None else None,
                size_bytes=size,
            ),
        )

    async def settled(self) -> None:
        """Remove the workspace if nothing keeps it. What fails here is done by the next cleanup."""
        context = self._context
        if self._workspace is None or not self._is_saved:
            return
        known = context.reader.find_workspace(self._workspace.id)
        if known is None or what_keeps_it(context.reader, known, context.clock.now()) is not None:
            return
        room = CleanupContext(
            state=context.state, reader=context.reader, clock=context.clock, files=self._files
        )
        try:
            await remove(known, room)
        except NightherdError as error:
            log_trouble(context, ignored)(f"workspace {known.id} is not removed: {error.message}")

    async def _clone(self) -> None:
        terms = self._policy.clone
        if terms is None:
            return
        for note in await self._files.clone(terms, self._agent.working_directory):
            self._warn("fetch", note)

    async def _stay(self) -> None:
        """Work in the agent's directory; say once when another job of the agent does too."""
        job, context = self._job, self._context
        session = self._session
        if session is not None and session.workspace_id is not None:
            change = LeaveWorkspace(
                job_id=job.id, epoch=job.epoch, directory=self._agent.working_directory
            )
            (answer,) = await context.state.apply([change])
            job_of(answer)
        is_alone = self._agent.max_concurrent < 2 or job.agent == COMMANDS_AGENT
        if is_alone or job.agent in context.shared_noticed:
            return
        query = JobQuery(agent=job.agent, status=JobStatus.RUNNING, limit=2)
        others = [other.id for other in context.reader.list_jobs(query) if other.id != job.id]
        if others:
            context.shared_noticed.add(job.agent)
            self._warn(
                SHARED_DIRECTORY,
                f"{others[0]} works in {self._agent.working_directory} at the same time: jobs of {job.agent!r} "
                "share that directory. Give each its own with working_directory: {mode: worktree}, or set "
                "instances: {max_concurrent: 1}",
            )

    async def _use(self, choice: Choice) -> Choice:
        """Record that the job works there, before anything is made."""
        for candidate in (choice, None):
            chosen = candidate or choose_new(self._job, self._session, self._agent, self._context)
            answer = await self._apply_use(chosen)
            if isinstance(answer, Refused) and answer.why is Why.WORKSPACE_BUSY:
                if str(chosen.workspace.id) == self._job.id:
                    raise WorkspaceError(answer.message, can_pass=True)
                continue
            job_of(answer)
            assert isinstance(answer, Applied)  # noqa: S101 (job_of has raised else)
            self._workspace = next(row for row in answer.rows if isinstance(row, Workspace))
            return chosen
        raise WorkspaceError(f"the workspace of {self._job.id} is in use", can_pass=True)

    async def _apply_use(self, choice: Choice) -> Applied | Refused:
        workspace = choice.workspace
        if choice.is_known and workspace.status is not WorkspaceStatus.MAKING:
            is_ready = workspace.status is WorkspaceStatus.READY
            is_whole = is_ready and await to_thread.run_sync(self._files.is_whole, workspace)
            status = WorkspaceStatus.READY if is_whole else WorkspaceStatus.MAKING
            workspace = replace(workspace, status=status, keep=self._policy.keep)
        change = UseWorkspace(
            job_id=self._job.id,
            epoch=self._job.epoch,
            workspace=workspace,
            directory=self._files.directory(workspace),
            at=self._context.clock.now(),
            shares=choice.shares,
            run_id=choice.run_id,
        )
        (answer,) = await self._context.state.apply([change])
        return answer

    async def _make(self, choice: Choice) -> Made:
        workspace = self._workspace
        assert workspace is not None  # noqa: S101 (set by _use)
        made = await self._files.make(workspace, self._policy, choice.begins_with)
        if workspace.status is WorkspaceStatus.MAKING:
            await self._write_edits(made.directory)
        for note in made.notes:
            self._warn("workspace", note)
        is_kept = made.origin == "kept"
        change = NoteWorkspace(
            workspace_id=workspace.id,
            at=self._context.clock.now(),
            job_id=self._job.id,
            epoch=self._job.epoch,
            is_made=True,
            store=made.store,
            prefix=made.prefix,
            branch=made.branch,
            base=None if is_kept else made.base,
            base_commit=None if is_kept else made.base_commit,
            base_tree=None if is_kept else made.base_tree,
            tree=made.snapshot.tree,
            head=made.snapshot.head,
        )
        changes: list[Change] = [change]
        if made.directory != self._files.directory(workspace):
            moved = replace(workspace, prefix=made.prefix, status=WorkspaceStatus.READY)
            changes.append(
                UseWorkspace(
                    job_id=self._job.id,
                    epoch=self._job.epoch,
                    workspace=moved,
                    directory=made.directory,
                    at=change.at,
                    shares=choice.shares,
                    run_id=choice.run_id,
                )
            )
        answers = await self._context.state.apply(changes)
        for answer in answers:
            if isinstance(answer, Refused):
                job_of(answer)
            else:
                rows = [row for row in answer.rows if isinstance(row, Workspace)]
                self._workspace = rows[-1] if rows else self._workspace
        return made

    async def _write_edits(self, directory: str) -> None:
        """Write what people changed at gates before there was a workspace: again, if it was cut off."""
        run_id, artifacts = self._job.workflow_run_id, self._context.artifacts
        if run_id is None or artifacts is None:
            return
        for file, text in gate_edits(RunId(run_id), self._context.reader):
            await to_thread.run_sync(artifacts.files.write, directory, file, text)
            self._is_edited = True

    def _record_use(self, choice: Choice, made: Made) -> None:
        workspace = self._workspace
        assert workspace is not None  # noqa: S101 (set by _use)
        is_restored = made.origin == "snapshot" and choice.snapshot is not None
        payload = WorkspaceUsed(
            id=workspace.id,
            mode=workspace.mode.value,
            directory=made.directory,
            origin=made.origin,
            branch=workspace.branch,
            base=workspace.base,
            base_commit=workspace.base_commit,
            from_job=choice.snapshot.job_id if is_restored and choice.snapshot else None,
            from_seq=choice.snapshot.seq if is_restored and choice.snapshot else None,
        )
        self._recorder.record(describe(payload, used_text(payload)))

    def _warn(self, code: str, text: str) -> None:
        self._recorder.record(describe(Warned(code=code), text))
