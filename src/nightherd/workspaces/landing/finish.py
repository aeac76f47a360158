"""Carrying out a recorded landing: to its end, back to its beginning when it fails, or after its process was killed.

For a merge the ref decides: once it is moved, everything else is finished; as long as it is not, nothing was changed.
"""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.errors import RefusedError, WorkspaceError
from nightherd.model.text import counted, quote
from nightherd.ports.world import Probe
from nightherd.workspaces.git import SHORT_S, Git, Place, failure
from nightherd.workspaces.landing.commits import NOBODY, Identity
from nightherd.workspaces.landing.files import ChangedMeanwhile
from nightherd.workspaces.landing.index import HeldIndex
from nightherd.workspaces.landing.record import LandingRecord, LandingRecords, MovedRef
from nightherd.workspaces.landing.repository import CheckedOut, UserRepository
from nightherd.workspaces.landing.stage import listed

REFLOG = "nightherd"


class Finisher:
    """Carries out records, and follows up those that killed processes left."""

    def __init__(self, git: Git, records: LandingRecords, probe: Probe) -> None:
        self._git, self._records, self._probe = git, records, probe

    def apply(self, record: LandingRecord) -> None:
        """Record what is going to change, then replace the files: all of them, or none when one cannot be."""
        self._records.write(record)
        self._put_files(record)
        self._records.remove(record)

    def merge(self, record: LandingRecord, worktree: CheckedOut | None, identity: Identity) -> bool:
        """Record what is going to change, then move the branch and replace the files of the directory that has it.

        False, and nothing was changed, when the branch or its directory is not what it was; when files cannot be
        replaced, the branch goes back, and that raises.
        """
        moved = record.moved
        assert moved is not None  # noqa: S101 (asked by the caller)
        repository, held = UserRepository(self._git, moved.common), self._held(moved, record)
        self._records.write(record)
        try:
            if held is not None:
                held.lock()
            is_current = held is None or held.is_as_before
            is_current = is_current and (worktree is None or repository.is_current(worktree))
            self._probe("landing.before_ref")
            has_moved = is_current and repository.move(
                moved.ref, moved.new, moved.old, f"{REFLOG}: merge", identity
            )
            self._probe("landing.after_ref")
        except (WorkspaceError, OSError):
            self.follow_up(record)
            raise
        if not has_moved:
            self.follow_up(record)
            return False
        self._put_files(record)
        self._close(record, held, identity)
        return True

    def commit(self, record: LandingRecord, identity: Identity) -> None:
        """Record that the workspace's branch gets its commit, then move it."""
        if record.branch is not None:
            self._records.write(record)
            self._move_branch(record, identity)
            self._records.remove(record)

    def follow_up(self, record: LandingRecord) -> str:
        """Finish what a process left that was killed, or undo it; return what was done, for people."""
        if record.moved is None and record.branch is not None:
            self._move_branch(record, NOBODY)
            self._records.remove(record)
            return f"pushing to {record.target} had been interrupted and was finished"
        if record.moved is None:
            left = self._records.files(record).put(is_back=record.is_undone)
            self._records.remove(record)
            verb = "undone" if record.is_undone else "finished"
            what = f"{counted(len(record.changes), 'file')} in {record.target}"
            return f"applying {what} had been interrupted and was {verb}{_kept(left)}"
        moved = record.moved
        repository, held = UserRepository(self._git, moved.common), self._held(moved, record)
        what = f"the merge into {record.target} had been interrupted"
        if self._has_moved(repository, record):
            if record.is_undone:
                left = self._records.files(record).put(is_back=True)
                repository.move(moved.ref, moved.old, moved.new, f"{REFLOG}: undo")
                self._abandon(record, held)
                return f"{what} and was undone{_kept(left)}"
            left = self._records.files(record).put()
            self._close(record, held, NOBODY)
            return f"{what} and was finished{_kept(left)}"
        left = self._records.files(record).put(is_back=True) if record.is_undone else []
        self._abandon(record, held)
        return f"{what} before it changed anything{_kept(left)}"

    def _move_branch(self, record: LandingRecord, identity: Identity) -> None:
        """Put the commit on the workspace's branch, and make its index agree; not while somebody else works on it."""
        branch = record.branch
        if branch is None:
            return
        repository, held = UserRepository(self._git, branch.common), self._held(branch, record)
        self._probe("landing.before_branch")
        try:
            if held is not None:
                held.lock()
        except (WorkspaceError, OSError):
            return  # the work is where it should be; the branch stays
        try:
            tip = repository.tip(branch.ref)
            is_moved = tip == branch.new or (
                tip == branch.old
                and (held is None or held.is_as_before)
                and repository.move(
                    branch.ref, branch.new, branch.old, f"{REFLOG}: commit", identity
                )
            )
            self._probe("landing.after_branch")
            if held is not None and is_moved:
                held.replace(None)
        finally:
            if held is not None:
                held.unlock()

    def _put_files(self, record: LandingRecord) -> None:
        """Replace the files, and the index; when that cannot be done, undo everything and raise."""
        held = None if record.moved is None else self._held(record.moved, record)
        try:
            self._records.files(record).put(is_strict=True)
            if held is not None:
                held.replace(record.top)
        except (ChangedMeanwhile, OSError, WorkspaceError) as error:
            undone = replace(record, is_undone=True)
            self._records.write(undone)
            self.follow_up(undone)
            if isinstance(error, ChangedMeanwhile):
                message = f"{quote(error.path)} changed just now; nothing was changed"
                raise RefusedError(message, hint="try again") from error
            if isinstance(error, OSError):
                raise failure(error, f"nothing was changed: '{record.target}'") from error
            raise

    def _close(self, record: LandingRecord, held: HeldIndex | None, identity: Identity) -> None:
        """Do what is left once the branch is moved and the files are in their place."""
        if held is not None:
            held.replace(record.top)
            held.unlock()
        self._move_branch(record, identity)
        self._records.remove(record)

    def _abandon(self, record: LandingRecord, held: HeldIndex | None) -> None:
        if held is not None:
            held.unlock()
        self._records.remove(record)

    def _held(self, moved: MovedRef, record: LandingRecord) -> HeldIndex | None:
        if moved.index is None:
            return None
        return HeldIndex(moved, self._records.stage(record.id), self._git, self._probe)

    def _has_moved(self, repository: UserRepository, record: LandingRecord) -> bool:
        """Whether the branch has the merge, also when the user went on from there."""
        moved = record.moved
        assert moved is not None  # noqa: S101 (asked by the caller)
        tip = repository.tip(moved.ref)
        if tip is None or tip in (moved.old, moved.new):
            return tip == moved.new
        stage = self._records.stage(record.id)
        place = Place(git_dir=str(stage / "git"), objects=str(repository.objects))
        shallow = repository.shallow
        variables = {} if shallow is None else {"GIT_SHALLOW_FILE": shallow}
        arguments = ("merge-base", "--is-ancestor", moved.new, tip)
        done = self._git.attempt(place, *arguments, timeout=SHORT_S, variables=variables)
        return done.status == 0


def _kept(left: list[str]) -> str:
    return f"; changed since and left alone: {listed(left)}" if left else ""
