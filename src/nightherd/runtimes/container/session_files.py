"""Claude's own directory for one session whose runtime is in containers: made before a run, removed when no run needs it."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from nightherd.errors import StateFileError
from nightherd.model.containers.user import Ids
from nightherd.model.journal.event import Event, SystemEvent, is_terminal
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.sessions.session import SessionMode
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.transcripts.claude_files import SharedFiles
from nightherd.runtimes.claude.transcripts.keeping import TranscriptCopy
from nightherd.runtimes.container.ownership import give

SESSIONS = "sessions"
COPIES = "transcripts"
"""Below the state directory; what a run has said is copied there."""
NOT_COPIED = "transcript_not_kept"
MOST_COPIED = 256 * 1024**2
"""Bytes of a transcript that is copied before it is removed: an agent can write anything there."""


def needs_directory(request: RuntimeRequest) -> bool:
    """Whether a run, a setup command or a hook gets the directory.

    Where one container serves a whole session, all of them do: it is made on the same terms for each.
    """
    policy = request.agent.container
    return request.agent.runtime.needs_claude or (policy is not None and not policy.is_ephemeral)


def make_directory(root: Path, session: str, owner: Ids | None) -> Path:
    """Make the directory below `root` and return it. No other agent sees it."""
    # Its real path: below it no link is followed, because an agent could have made it.
    root = Path(os.path.realpath(root))
    directory = root / SESSIONS / session / "claude"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    give(directory, owner)
    return directory


class SessionEnd:
    """Watches the events of one run for the end of its session."""

    def __init__(self, request: RuntimeRequest, state_dir: Path) -> None:
        agent, policy = request.agent, request.agent.container
        self._copies = state_dir / COPIES
        # A container that waits for the next job has the directory mounted.
        self._may_end = (
            agent.runtime.needs_claude
            and agent.session_mode is SessionMode.FRESH_PER_JOB
            and policy is not None
            and policy.is_ephemeral
        )

    def is_reached(self, event: Event) -> bool:
        """Return whether the session ends with this event, and every transcript could be copied before."""
        if not isinstance(event, SystemEvent):
            return False
        if event.subtype is SystemSubtype.WARNING and (event.extra or {}).get("code") == NOT_COPIED:
            self._may_end = False
        return self._may_end and is_terminal(event)

    def remove(self, directory: Path) -> None:
        """Remove what `make_directory` returned, unless it has a transcript of which there is no copy."""
        found = {path.stem for path in directory.glob("projects/*/*.jsonl")}
        copied = {path.name.partition(".")[0] for path in self._copies.glob("*.jsonl*")}
        if found <= copied:
            shutil.rmtree(directory.parent, ignore_errors=True)


class SessionDirectoryFiles:
    """The directories of all sessions in a state directory, for retention."""

    def __init__(self, state_dir: Path) -> None:
        state = Path(os.path.realpath(state_dir))
        self._root = state / "containers" / SESSIONS
        self._copies = state / COPIES

    def names(self) -> Sequence[str]:
        """Return the sessions that have one."""
        with suppress(FileNotFoundError):
            return sorted(
                one.name for one in os.scandir(self._root) if one.is_dir(follow_symlinks=False)
            )
        return ()

    def remove(self, name: str, transcripts: Collection[str]) -> bool:
        """Remove one, once these transcripts have a whole copy; what is missing is copied first."""
        config = self._root / name / "claude"
        for name_inside in transcripts:
            # What Claude says it is called; in a container an agent could have said it.
            pattern = f"projects/*/{glob.escape(name_inside)}.jsonl"
            if not all(self._is_copied(path, config) for path in config.glob(pattern)):
                return False
        shutil.rmtree(self._root / name)
        return True

    def _is_copied(self, path: Path, config: Path) -> bool:
        files = SharedFiles(config)
        size = files.size(path)  # 0 for a link
        copy = TranscriptCopy(self._copies, path.stem, files)
        if len(copy.peek()) < size <= MOST_COPIED:
            with suppress(OSError, StateFileError):
                copy.grow(path)
                copy.sync()
                copy.pack()
        return len(copy.peek()) >= size
