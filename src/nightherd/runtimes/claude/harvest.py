"""Harvest: the copies of Claude's transcripts that one run keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nightherd.errors import NightherdError
from nightherd.model.journal.event import Event, describe
from nightherd.model.journal.system import Warned
from nightherd.model.sessions.session import SessionMode
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.memory import Memory, read_memory
from nightherd.runtimes.claude.opening import Opening, is_note
from nightherd.runtimes.claude.transcripts.claude_files import ClaudeFiles
from nightherd.runtimes.claude.transcripts.keeping import KeptTranscript


class Harvest:
    """The transcripts of one run below `root`. Nothing that goes wrong with them stops the run."""

    def __init__(self, root: Path, request: RuntimeRequest, files: ClaudeFiles) -> None:
        self._root = root
        self._request = request
        self._files = files
        self._kept: KeptTranscript | None = None
        self._has_failed = False

    def put_in_place(self, opening: Opening) -> tuple[Event, ...]:
        """The session that is gone on with is where Claude looks for it; what is to be said about that."""
        if opening.resume is None:
            return ()
        try:
            kept = self._transcript(opening.resume)
            if self._request.outside is not None:
                kept.harvest()
                kept.take_from(self._request.outside)
            was_put_back = kept.restore()
        except (OSError, NightherdError) as error:
            text = f"our copy of the transcript of session {opening.resume} cannot be used: {error}"
            return (_warning("transcript_not_kept", text),)
        if not opening.is_fork:
            self._kept = kept
        # A fork in a container has a directory of its own, where nobody expects its parent's transcript.
        is_expected = opening.is_fork and self._request.outside is not None
        if not was_put_back or is_expected:
            return ()
        text = f"session {opening.resume}, or a part of it, was not where claude looks; nightherd restored its copy"
        return (_warning("transcript_put_back", text),)

    def memory(self, session: str) -> Memory | None:
        """What Claude will know when it resumes the session; None when its transcript cannot be read."""
        try:
            lines = list(self._transcript(session).lines())
        except (OSError, NightherdError):
            return None
        return read_memory(lines, is_note) if lines else None

    def follow(self, session: str | None) -> Iterator[Event]:
        """The run has said something more, in this session; a warning when it cannot be copied."""
        if session is None or self._has_failed:
            return
        try:
            if self._kept is None or self._kept.uuid != session:
                self._kept = self._transcript(session)
            self._kept.harvest()
        except (OSError, NightherdError) as error:
            yield self._failure(error)

    def finish(self, *, is_complete: bool) -> tuple[Event, ...]:
        """The run has ended. The transcript of a session that no other job goes on with is packed."""
        if self._kept is None:
            return ()
        mode = self._request.agent.session_mode
        try:
            self._kept.finish(is_over=is_complete and mode is SessionMode.FRESH_PER_JOB)
        except (OSError, NightherdError) as error:
            return () if self._has_failed else (self._failure(error),)
        return ()

    def _failure(self, error: Exception) -> Event:
        self._has_failed = True
        return _warning("transcript_not_kept", f"the transcript cannot be copied: {error}")

    def _transcript(self, session: str) -> KeptTranscript:
        return KeptTranscript(
            self._root,
            session,
            environment=self._request.environment,
            directory=self._request.agent.working_directory,
            files=self._files,
        )


def _warning(code: str, text: str) -> Event:
    return describe(Warned(code=code), text)
