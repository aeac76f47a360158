"""Writing what is pending into files, each from the rows as they are now. What cannot be written stays pending, is named, and fails nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from nightherd.errors import NightherdError, StateFileError
from nightherd.files.atomic import SYSTEM_CALLS, FileCalls, atomic_write_file
from nightherd.files.paths import safe_name
from nightherd.files.permission import keep_aside
from nightherd.mirror.agent_state import StateText
from nightherd.mirror.changes import Pending
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.mirror.job_file import job_text
from nightherd.mirror.layout import MirrorLayout, make_directory
from nightherd.mirror.position import AgentProgress, JobProgress, Memory, SessionProgress
from nightherd.mirror.session_files import agent_session_document, context_text, session_document
from nightherd.mirror.transcripts import Ended, Transcripts
from nightherd.model.ids import JobId, SessionId
from nightherd.model.jobs.job import Job
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.sessions.session import SESSION_LIFECYCLE, Session, SessionStatus
from nightherd.ports import Clock, Journals, StateReader
from nightherd.views.sessions.conversation import events_of, segments_of

NOTICES = 100
"""The newest of them are kept; a follower may live for years."""
ROW_DAMAGED = "ROW_DAMAGED"
"""The code of the error for a row that neither the database nor the ledger has whole."""


class FileWriter:
    """Writes the mirror's files: each at most once a round, from the newest row of everything."""

    def __init__(
        self,
        layout: MirrorLayout,
        reader: StateReader,
        journals: Journals,
        *,
        clock: Clock,
        calls: FileCalls = SYSTEM_CALLS,
    ) -> None:
        self.unwritten: dict[str, str] = {}
        """Files that are behind, and why."""
        self.notices: deque[str] = deque(maxlen=NOTICES)
        self._layout = layout
        self._reader = reader
        self._journals = journals
        self._clock = clock
        self._calls = calls
        self._transcripts = Transcripts(layout, journals)
        self._state = StateText(reader)
        # As text: a path object for each file costs more than writing it.
        self._jobs, self._sessions = str(layout.jobs), str(layout.sessions)
        self._made: set[str] = set()
        self._read_sessions: dict[str, Session | None] = {}

    def write(self, memory: Memory, pending: Pending, running: Mapping[str, ObservedJob]) -> None:
        """Bring every file up to the rows; what is left in `pending` could not be written.

        `running` are the jobs that run now, oldest first.
        """
        self.notices.extend(f"left out: {fault}" for fault in pending.faults)
        pending.faults.clear()
        self._made.clear()
        self._read_sessions.clear()
        self._transcripts.begin()
        followed = {
            job_id
            for job_id in sorted(pending.jobs)
            if self._write_job(job_id, memory, pending, running)
        }
        for job in running.values():
            if job.id not in followed and job.id in memory.jobs:
                self._follow(job, memory, memory.jobs[job.id])
        self._write_sessions(memory, pending)
        if pending.agents or pending.redeclared or pending.is_state_due:
            write_state = partial(self._write_state, memory, pending, running.values())
            self._attempt(str(self._layout.state), write_state)

    def begin(self, memory: Memory, pending: Pending) -> None:
        """Another process may have written in the meantime: nothing kept from before counts."""
        self.unwritten.clear()
        self._state = StateText(self._reader)
        self._look_at_state(memory, pending)

    def _look_at_state(self, memory: Memory, pending: Pending) -> None:
        """Whether `state.yaml` is the one written last; if not it is written again.

        A file that was edited and cannot be read is kept aside first; edits have no effect.
        """
        path = self._layout.state
        stamp = _stamp(path)
        if stamp and stamp == memory.state_stamp:
            return
        pending.is_state_due = True
        if not stamp:
            return
        try:
            read_fleet_state(path)
        except NightherdError as error:
            aside = keep_aside(path, self._clock.now())
            self.notices.append(f"{error.message}; it is kept as {aside.name} and written again")

    def _write_job(
        self, job_id: str, memory: Memory, pending: Pending, running: Mapping[str, ObservedJob]
    ) -> bool:
        """Write the job's file and its transcript; whether its row could be read."""
        job = self._find_job(job_id)
        if job is None:
            pending.jobs.discard(job_id)
            pending.ended.discard(job_id)
            pending.runtime_ids.pop(job_id, None)
            return False
        # After its row: what they say is at least as new.
        texts = self._reader.find_texts(job.id)
        executions = self._reader.list_executions(job.id) if job.finished_at is not None else ()
        pending.agents.add(job.agent)
        progress = memory.jobs.get(job_id) or JobProgress()
        progress.lost = running[job_id].lost if job_id in running else None
        progress.runtime_session_id = progress.runtime_session_id or pending.runtime_ids.get(job_id)
        path = f"{self._jobs}/{job_id}.yaml"  # ids are checked where they are read
        is_written = self._attempt(
            path, lambda: self._replace(path, job_text(job, texts, progress.lost, executions))
        )
        ended = None
        if job_id in pending.ended and job.is_terminal:
            ended = Ended(texts=texts, execution=executions[-1] if executions else None)
        if job.epoch > 0 or ended is not None:
            is_written &= self._follow(job, memory, progress, ended)
        if job.epoch > 0 or progress.runtime_session_id is not None:
            memory.jobs[job_id] = progress
        if is_written:
            pending.jobs.discard(job_id)
            pending.runtime_ids.pop(job_id, None)
            if ended is not None:
                pending.ended.discard(job_id)
                memory.jobs.pop(job_id, None)
        return True

    def _find_job(self, job_id: str) -> Job | None:
        try:
            job = self._reader.find_job(JobId(job_id))
        except StateFileError as error:
            if error.code != ROW_DAMAGED:
                raise
            self.notices.append(f"left out: {error.message}")
            return None
        if job is None:
            self.notices.append(
                f"left out: {job_id} is in the ledger, and the database has no row of it"
            )
        return job

    def _follow(
        self, job: Job, memory: Memory, progress: JobProgress, ended: Ended | None = None
    ) -> bool:
        """Bring the job's transcript up to its journal, with the last line if it has `ended`; whether that worked."""
        session = self._find_session(job.session_id) if job.session_id is not None else None
        if session is None:
            return True
        sizes = memory.sessions.setdefault(session.id, SessionProgress()).transcripts
        follow = partial(self._transcripts.follow, job, progress, session, sizes, ended)
        is_written = self._attempt(f"{self._layout.projects}/(job {job.id})", follow)
        _forget_ended(session, memory)
        return is_written

    def _find_session(self, session_id: str) -> Session | None:
        if session_id not in self._read_sessions:
            self._read_sessions[session_id] = self._reader.find_session(SessionId(session_id))
        return self._read_sessions[session_id]

    def _write_sessions(self, memory: Memory, pending: Pending) -> None:
        for session_id in sorted(pending.sessions):
            session = self._find_session(session_id)
            if session is None:
                pending.sessions.discard(session_id)
                continue
            agent = memory.agents.setdefault(session.agent, AgentProgress())
            if self._is_newer(session, agent.latest):
                agent.latest = session.id
            document = session_document(session, self._reader.session_job_ids(session.id))
            is_written = self._write_json(session_id, document)
            if is_written and session.status is SessionStatus.PAUSED:
                is_written = self._write_context(session)
            if is_written:
                pending.sessions.discard(session_id)
                _forget_ended(session, memory)
        for name in sorted(pending.agent_sessions):
            latest = memory.agents[name].latest if name in memory.agents else None
            shown = self._reader.persistent_session(name) or (
                self._find_session(latest) if latest is not None else None
            )
            if shown is None or self._write_json(name, agent_session_document(shown)):
                pending.agent_sessions.discard(name)

    def _is_newer(self, session: Session, latest: str | None) -> bool:
        known = self._find_session(latest) if latest is not None else None
        return known is None or session.number >= known.number

    def _write_context(self, session: Session) -> bool:
        try:
            parts = segments_of(self._reader, self._journals, session)
            text = context_text(events_of(self._journals, parts, load_blobs=False))
        except NightherdError as error:
            # What cannot be put together now never can: it is reported, and delays nothing else.
            self.notices.append(f"no context of {session.id}: {error.message}")
            return True
        path = str(self._layout.context(session.id))
        return self._attempt(path, lambda: self._replace(path, text))

    def _write_json(self, name: str, document: dict[str, object]) -> bool:
        def replace() -> None:
            text = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
            self._replace(f"{self._sessions}/{safe_name(f'{name}.json')}", text)

        return self._attempt(f"{self._sessions}/{name}.json", replace)

    def _write_state(
        self, memory: Memory, pending: Pending, running: Iterable[ObservedJob]
    ) -> None:
        self._look_at_state(memory, pending)
        for name in pending.agents:
            memory.agents.setdefault(name, AgentProgress())
        self._state.refresh(memory, pending.agents | pending.redeclared, running)
        self._replace(str(self._layout.state), self._state.text(memory))
        memory.state_stamp = _stamp(self._layout.state)
        pending.agents.clear()
        pending.redeclared.clear()
        pending.is_state_due = False

    def _replace(self, path: str, text: str | bytes) -> None:
        folder = path.rpartition("/")[0]
        if folder not in self._made:
            make_directory(Path(folder))
            self._made.add(folder)
        atomic_write_file(path, text, durable=False, calls=self._calls)

    def _attempt(self, path: str, action: Callable[[], None]) -> bool:
        """Whether `action` worked; when it did not, why is noted under the file it is about."""
        try:
            action()
        except (NightherdError, OSError, ValueError) as error:
            self.unwritten[path] = str(error)
            return False
        if self.unwritten:
            self.unwritten.pop(path, None)
        return True


def _forget_ended(session: Session, memory: Memory) -> None:
    """Drop what was written of a session that has ended: should it be needed, its transcript says it."""
    if SESSION_LIFECYCLE.is_terminal(session.status):
        memory.sessions.pop(session.id, None)


def _stamp(path: Path) -> list[int]:
    """What the file system says a file is; empty when it is not there."""
    try:
        stat = path.lstat()
    except OSError:
        return []
    return [stat.st_ino, stat.st_mtime_ns, stat.st_size]
