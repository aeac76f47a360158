"""LocalLanding: brings the changes of workspaces home on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path

from anyio import to_thread

from nightherd.errors import NightherdError, RefusedError, StateError, WorkspaceError
from nightherd.model.ids import RandomText
from nightherd.model.workspaces.policy import CloneTerms
from nightherd.model.workspaces.workspace import Workspace
from nightherd.ports.workspaces import LandingResult, Work
from nightherd.ports.world import Clock, Probe, no_probe
from nightherd.workspaces.git import Git, failure
from nightherd.workspaces.landing.apply import apply
from nightherd.workspaces.landing.context import LandingContext, top_of
from nightherd.workspaces.landing.finish import Finisher
from nightherd.workspaces.landing.merge import MergeTerms, merge
from nightherd.workspaces.landing.push import PushTerms, push
from nightherd.workspaces.landing.record import LandingRecords
from nightherd.workspaces.landing.repository import UserRepository, identity_of
from nightherd.workspaces.landing.scratch import Scratch, check_version
from nightherd.workspaces.record import Record
from nightherd.workspaces.stores import Stores

TRIES = 5
"""How often a merge is computed again because its branch moved."""
ID_LENGTH = 8


class LocalLanding:
    """Implements `Landing` with git and the files of this machine."""

    def __init__(
        self,
        state_dir: Path,
        *,
        git: Git,
        clock: Clock,
        random_text: RandomText,
        probe: Probe = no_probe,
    ) -> None:
        state_dir = state_dir.absolute()
        self._git, self._clock, self._random_text, self._probe = git, clock, random_text, probe
        self._stores, self._records = Stores(state_dir), LandingRecords(state_dir, probe)
        self._protected = (state_dir.resolve(), Record(state_dir, "any").directories.resolve())

    async def apply(
        self, workspace: Workspace, before: str, after: str, *, is_dry_run: bool = False
    ) -> LandingResult:
        """Change the files in `workspace.root` as they changed from the tree `before` to `after`: all, or none."""

        def run() -> LandingResult:
            with self._landing(workspace) as attempt, attempt() as context:
                return apply(context, context.top, before, after, is_dry_run=is_dry_run)

        return await to_thread.run_sync(run)

    async def merge(
        self,
        workspace: Workspace,
        work: Work,
        *,
        into: str | None = None,
        is_fast_forward: bool = True,
        is_dry_run: bool = False,
    ) -> LandingResult:
        """Merge the work into the branch `into`, else the workspace's base, else what is checked out in its root."""
        terms = MergeTerms(into=into, is_fast_forward=is_fast_forward, is_dry_run=is_dry_run)

        def run() -> LandingResult:
            with self._landing(workspace) as attempt:
                for _ in range(TRIES):
                    with attempt() as context:
                        result = merge(context, work, terms)
                    if result is not None:
                        return result
            raise RefusedError("the branch moves faster than it can be merged", hint="try again")

        return await to_thread.run_sync(run)

    async def push(
        self,
        workspace: Workspace,
        work: Work,
        *,
        remote: str | None = None,
        login: CloneTerms | None = None,
        is_forced: bool = False,
        is_dry_run: bool = False,
    ) -> LandingResult:
        """Push the work as the workspace's branch to `remote`: a name or an address, else `origin`."""
        terms = PushTerms(remote=remote, login=login, is_forced=is_forced, is_dry_run=is_dry_run)

        def run() -> LandingResult:
            with self._landing(workspace) as attempt, attempt() as context:
                return push(context, work, terms)

        return await to_thread.run_sync(run)

    async def finish_interrupted(self) -> Sequence[str]:
        """Finish or undo what a killed process left; return what was done."""

        def run() -> list[str]:
            done: list[str] = []
            for store in self._records.stores():
                with self._records.locked(store) as handle:
                    finisher = Finisher(self._git.holding(handle), self._records, self._probe)
                    done += [self._follow_up(finisher, path) for path in self._records.left(store)]
            return done

        return await to_thread.run_sync(run)

    def _follow_up(self, finisher: Finisher, path: Path) -> str:
        """Finish or undo one landing; return what was done, or why it cannot be. Then its record stays."""
        try:
            return finisher.follow_up(self._records.read(path))
        except (OSError, NightherdError) as error:
            return f"an interrupted landing cannot be finished, and its record stays: '{path}': {error}"

    @contextmanager
    def _landing(
        self, workspace: Workspace
    ) -> Iterator[Callable[[], AbstractContextManager[LandingContext]]]:
        """Hold the lock of the workspace's store; each attempt has a scratch directory of its own."""
        if workspace.store is None:
            raise WorkspaceError(f"workspace {workspace.id} was never made")
        with self._records.locked(workspace.store) as handle:
            git = self._git.holding(handle)
            yield partial(self._attempt, workspace, workspace.store, git)

    @contextmanager
    def _attempt(self, workspace: Workspace, store_name: str, git: Git) -> Iterator[LandingContext]:
        landing_id = f"{store_name}-{self._random_text(ID_LENGTH)}"
        try:
            yield self._context(workspace, store_name, landing_id, git)
        except (OSError, StateError) as error:
            raise failure(
                error, f"the changes of workspace {workspace.id} cannot be brought home"
            ) from error
        finally:
            if not self._records.has(landing_id):
                self._records.discard_stage(landing_id)

    def _context(
        self, workspace: Workspace, store_name: str, landing_id: str, git: Git
    ) -> LandingContext:
        store, top = self._stores.open(store_name), top_of(workspace)
        check_version(git, store)
        repository = UserRepository.of(git, workspace) if workspace.mode.has_branch else None
        scratch = Scratch(
            git,
            self._records.new_stage(landing_id),
            store,
            is_raw=repository is None,
            settings=repository.file_settings() if repository is not None else {},
            shallow=repository.shallow if repository is not None else None,
        )
        return LandingContext(
            id=landing_id,
            git=git,
            workspace=workspace,
            records=self._records,
            scratch=scratch,
            repository=repository,
            top=top,
            protected=self._protected,
            filters=repository.filters() if repository is not None else frozenset(),
            identity=cache(lambda: identity_of(git, scratch.place())),
            now=self._clock.now,
            probe=self._probe,
        )
