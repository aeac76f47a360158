"""Writing what is pending into files. What cannot be written stays pending, is named, and fails nothing else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from nightherd.errors import NightherdError
from nightherd.files.atomic import SYSTEM_CALLS, FileCalls, atomic_write_file
from nightherd.files.paths import safe_name
from nightherd.files.permission import keep_aside
from nightherd.mirror.agent_state import StateText
from nightherd.mirror.fleet_state import read_fleet_state
from nightherd.mirror.images import recall_all, recall_at
from nightherd.mirror.job_file import job_text
from nightherd.mirror.layout import MirrorLayout, make_directory
from nightherd.mirror.memory import Memory, Pending, SessionMemory, forget
from nightherd.mirror.session_files import (
    Conversation,
    agent_session_document,
    context_text,
    session_document,
)
from nightherd.mirror.transcripts import Ended, Transcripts
from nightherd.model.sessions.session import SessionStatus
from nightherd.ports import ChangeFeed, Clock, Journals

NOTICES = 100
"""The newest of them are kept; a follower may live for years."""


class FileWriter:
    """Writes the mirror's files: each at most once a round, the newest image of everything."""

    def __init__(
        self,
        layout: MirrorLayout,
        feed: ChangeFeed,
        journals: Journals,
        *,
        clock: Clock,
        calls: FileCalls = SYSTEM_CALLS,
        conversation: Conversation | None = None,
    ) -> None:
        self._conversation = conversation
        self.unwritten: dict[str, str] = {}
        """Files that are behind, and why."""
        self.notices: deque[str] = deque(maxlen=NOTICES)
        self._layout = layout
        self._feed = feed
        self._clock = clock
        self._calls = calls
        self._transcripts = Transcripts(layout, journals)
        self._state = StateText()
        # As text: a path object for each file costs more than writing it.
        self._jobs, self._sessions = str(layout.jobs), str(layout.sessions)
        self._made: set[str] = set()

    def write(self, memory: Memory, pending: Pending) -> None:
        """Bring every file up to `memory`; what is left in `pending` could not be written."""
        self.notices.extend(f"left out: {fault.message}" for fault in pending.faults)
        pending.faults.clear()
        self._made.clear()
        self._transcripts.begin()
        self._recall(memory, pending)
        done = {job_id for job_id in pending.jobs if self._write_job(job_id, memory, pending)}
        self._write_sessions(memory, pending)
        self._write_transcripts(memory, pending)
        for job_id in done:
            if job_id not in pending.transcripts:
                _finish(job_id, memory, pending)
        if pending.is_state_due:
            self._attempt(str(self._layout.state), lambda: self._write_state(memory, pending))
        forget(memory, pending)

    def begin(self, memory: Memory, pending: Pending) -> None:
        """Another process may have written in the meantime: nothing kept from before counts."""
        self.unwritten.clear()
        self._state = StateText()
        self._look_at_state(memory, pending)

    def _look_at_state(self, memory: Memory, pending: Pending) -> None:
        """Whether `state.yaml` is the one written last; if not it is written again.

        A file that was edited and cannot be read is kept aside first; edits have no effect.
        """
        path = self._layout.state
        found = _stamp(path)
        if found and found == memory.state_stamp:
            return
        pending.is_state_due = True
        if not found:
            return
        try:
            read_fleet_state(path)
        except NightherdError as error:
            aside = keep_aside(path, self._clock.now())
            self.notices.append(f"{error.message}; it is kept as {aside.name} and written again")

    def _recall(self, memory: Memory, pending: Pending) -> None:
        """Look up what `pending` needs and memory does not hold."""
        texts = {job_id for job_id in pending.jobs if job_id not in pending.texts}
        lives = memory.jobs
        near = {lives[job_id].texts_at for job_id in texts if job_id in lives}
        near |= {lives[job_id].row_at for job_id in pending.orphans if job_id in lives}
        found = recall_at(self._feed, near - {0})
        pending.texts |= {job: image for job, image in found.texts.items() if job in texts}
        pending.jobs |= {job: image for job, image in found.jobs.items() if job in pending.orphans}
        far = {job_id for job_id in texts if job_id not in pending.texts and self._has(job_id)}
        far |= {job_id for job_id in pending.orphans if job_id not in pending.jobs}
        sessions = {name for name in pending.forgotten if self._has_session(name)}
        if far or sessions:
            every = recall_all(self._feed, job_ids=far, session_ids=sessions, until=memory.change)
            pending.texts |= {job: i for job, i in every.texts.items() if job in texts}
            pending.jobs |= {job: i for job, i in every.jobs.items() if job in pending.orphans}
            for job_id, spans in every.worked_ms.items():
                if job_id in memory.jobs:
                    memory.jobs[job_id].worked_ms = {**spans, **memory.jobs[job_id].worked_ms}
            for session_id, jobs in every.session_jobs.items():
                memory.sessions[session_id].jobs = jobs
        pending.orphans.clear()
        pending.forgotten.clear()

    def _has(self, job_id: str) -> bool:
        return (self._layout.jobs / f"{job_id}.yaml").exists()

    def _has_session(self, session_id: str) -> bool:
        return (self._layout.sessions / f"{session_id}.json").exists()

    def _write_job(self, job_id: str, memory: Memory, pending: Pending) -> bool:
        path = f"{self._jobs}/{job_id}.yaml"  # ids are checked where they are read
        live = memory.jobs.get(job_id)
        lost = live.lost if live is not None else None
        worked_ms = sum(live.worked_ms.values()) if live is not None and live.worked_ms else None

        def replace() -> None:
            texts = pending.texts.get(job_id)
            self._replace(path, job_text(pending.jobs[job_id], texts, lost, worked_ms))

        return self._attempt(path, replace)

    def _write_sessions(self, memory: Memory, pending: Pending) -> None:
        for session_id in sorted(pending.sessions):
            session = memory.sessions[session_id]
            document = session_document(session.image, session.jobs)
            is_written = self._write_json(session_id, document)
            if is_written and session.image.status == SessionStatus.PAUSED:
                is_written = self._write_context(session)
            if is_written:
                pending.sessions.discard(session_id)
        for name in sorted(pending.agent_sessions):
            shown = memory.sessions.get(memory.agents[name].shown_session or "")
            if shown is None or self._write_json(name, agent_session_document(shown.image)):
                pending.agent_sessions.discard(name)

    def _write_context(self, session: SessionMemory) -> bool:
        if self._conversation is None:
            return True
        try:
            said = self._conversation(session.image.id) if session.is_on_record else ()
            text = context_text(said)
        except NightherdError as error:
            # What cannot be put together now never can: it is reported, and delays nothing else.
            self.notices.append(f"no context of {session.image.id}: {error.message}")
            return True
        path = str(self._layout.context(session.image.id))
        return self._attempt(path, lambda: self._replace(path, text))

    def _write_json(self, name: str, document: dict[str, object]) -> bool:
        def replace() -> None:
            text = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
            self._replace(f"{self._sessions}/{safe_name(f'{name}.json')}", text)

        return self._attempt(f"{self._sessions}/{name}.json", replace)

    def _write_transcripts(self, memory: Memory, pending: Pending) -> None:
        running = {job_id for job_id, live in memory.jobs.items() if live.is_running}
        for job_id in sorted(running | pending.transcripts):
            live = memory.jobs.get(job_id)
            session = memory.sessions.get(live.session_id or "") if live is not None else None
            if live is None or session is None:
                pending.transcripts.discard(job_id)
                continue
            image = pending.jobs.get(job_id)
            ended = None
            if image is not None and image.is_ended:
                texts, execution = pending.texts.get(job_id), pending.executions.get(job_id)
                ended = Ended(job=image, texts=texts, execution=execution)
            follow = partial(self._transcripts.follow, job_id, live, session, ended)
            if self._attempt(f"{self._layout.projects}/(job {job_id})", follow):
                pending.transcripts.discard(job_id)

    def _write_state(self, memory: Memory, pending: Pending) -> None:
        self._look_at_state(memory, pending)
        self._state.refresh(memory, pending.agents)
        self._replace(str(self._layout.state), self._state.text(memory))
        memory.state_stamp = _stamp(self._layout.state)
        pending.agents.clear()
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


def _finish(job_id: str, memory: Memory, pending: Pending) -> None:
    """The job's files are up to date; one that has ended is forgotten."""
    image = pending.jobs.pop(job_id)
    pending.executions.pop(job_id, None)
    if image.is_ended:
        memory.jobs.pop(job_id, None)
        pending.texts.pop(job_id, None)


def _stamp(path: Path) -> list[int]:
    """What the file system says a file is; empty when it is not there."""
    try:
        found = path.lstat()
    except OSError:
        return []
    return [found.st_ino, found.st_mtime_ns, found.st_size]
