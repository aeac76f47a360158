"""What the mirror remembers between changes, and what each change does to it.

Memory is kept in one file together with the number of the last change it holds, so it is always the
memory of exactly that change. It is bounded by what is going on: what has ended is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nightherd.errors import StateFileError
from nightherd.mirror.images import (
    PLACES,
    AgentImage,
    ExecutionImage,
    Image,
    JobImage,
    ScheduleImage,
    SessionImage,
    TextsImage,
    read_image,
)
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.system import known
from nightherd.model.sessions.session import SessionMode, SessionStatus
from nightherd.ports import LedgerEntry


class LostImage(msgspec.Struct, frozen=True, kw_only=True):
    """Since when a running job has no live worker, and what happens next."""

    since: str
    next: str


class LiveJob(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A job that has not ended, or whose end is not mirrored yet."""

    agent: str
    schedule: str | None = None
    session_id: str | None = None
    is_running: bool = False
    row_at: int = 0
    """The change that holds its row."""
    texts_at: int = 0
    """The change that holds its texts."""
    seq: int = 0
    """The event up to which its transcript is written."""
    runtime_session_id: str | None = None
    is_introduced: bool = False
    """The runtime has reported its session id, or that it has none."""
    model: str | None = None
    lost: LostImage | None = None
    worked_ms: dict[str, int] = {}
    """How long each execution took that has ended, by epoch."""


class SessionMemory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A session that can continue, or is what an agent's file shows."""

    image: SessionImage
    jobs: list[str] = []
    transcripts: dict[str, int] = {}
    """Transcripts by path below `projects/`, and how many bytes of each are ours."""

    @property
    def is_on_record(self) -> bool:
        """Whether a job, its own or of the session it was forked from, has recorded anything of it."""
        return bool(self.jobs) or self.image.job_count > 0 or self.image.base_messages > 0


class AgentMemory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An agent that has worked or has schedules, and which sessions it has."""

    image: AgentImage | None = None
    schedules: dict[str, ScheduleImage] = {}
    persistent: str | None = None
    latest: str | None = None

    @property
    def shown_session(self) -> str | None:
        """The session its file shows: the persistent one while it lasts, else the latest."""
        return self.persistent or self.latest


class Memory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything the mirror remembers."""

    v: int
    change: int = 0
    started_at: str | None = None
    declared: list[str] = []
    blocked: dict[str, str] = {}
    """Why none of an agent's jobs may run, by the agent's name."""
    agents: dict[str, AgentMemory] = {}
    jobs: dict[str, LiveJob] = {}
    sessions: dict[str, SessionMemory] = {}
    state_stamp: list[int] = []
    """What `state.yaml` looked like to the file system when it was last written here."""

    @property
    def has_running_jobs(self) -> bool:
        """Whether journals may be growing."""
        return any(job.is_running for job in self.jobs.values())


KNOWN = known(Memory)


class Pending(msgspec.Struct, kw_only=True):
    """What has changed and is not in the files yet; only the newest image of each row counts."""

    jobs: dict[str, JobImage] = msgspec.field(default_factory=dict)
    texts: dict[str, TextsImage] = msgspec.field(default_factory=dict)
    """Texts of live jobs: they stay until the job has ended, to be written again with its row."""
    executions: dict[str, ExecutionImage] = msgspec.field(default_factory=dict)
    orphans: set[str] = msgspec.field(default_factory=set)
    """Jobs whose texts have changed and whose row has not."""
    sessions: set[str] = msgspec.field(default_factory=set)
    forgotten: set[str] = msgspec.field(default_factory=set)
    """Sessions that had ended and been forgotten, and change again: their jobs have to be looked up."""
    agents: set[str] = msgspec.field(default_factory=set)
    agent_sessions: set[str] = msgspec.field(default_factory=set)
    transcripts: set[str] = msgspec.field(default_factory=set)
    """Jobs whose journals have to be looked at whether they run or not."""
    is_state_due: bool = False
    faults: list[StateFileError] = msgspec.field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        due = (self.jobs, self.orphans, self.sessions, self.agent_sessions, self.transcripts)
        return not self.is_state_due and not any(due)


def fold(memory: Memory, entry: LedgerEntry, pending: Pending) -> None:
    """Make `memory` that of `entry`, and note in `pending` what has to be written for it.

    A row that cannot be understood is noted as a fault and left out; the others are not held up by it.
    """
    images: list[Image] = []
    for table, row in entry.rows:
        try:
            image = read_image(table, row)
        except StateFileError as fault:
            pending.faults.append(fault)
            continue
        if image is not None:
            images.append(image)
    for image in sorted(images, key=lambda image: PLACES[type(image)]):
        match image:
            case SessionImage():
                _fold_session(memory, image, pending)
            case JobImage():
                _fold_job(memory, image, pending, entry.change)
            case TextsImage():
                _fold_texts(memory, image, pending, entry.change)
            case ExecutionImage():
                _fold_execution(memory, image, pending)
            case AgentImage():
                _agent(memory, image.name, pending).image = image
            case ScheduleImage():
                _agent(memory, image.agent, pending).schedules[image.name] = image
    memory.change = entry.change


def declare(memory: Memory, agents: Mapping[str, str | None], pending: Pending) -> None:
    """These are the declared agents now, each with the reason why it may not run: all have a place in the state."""
    before, after = set(memory.declared), set(agents)
    blocked = {name: reason for name, reason in agents.items() if reason is not None}
    other = {name for name in before | after if memory.blocked.get(name) != blocked.get(name)}
    changed = (before ^ after) | other
    if changed:
        memory.declared, memory.blocked = sorted(after), blocked
        pending.agents |= changed
        pending.is_state_due = True


def forget(memory: Memory, pending: Pending) -> None:
    """Drop sessions that have ended and that no file will show again."""
    ended = {name for name, session in memory.sessions.items() if session.image.is_ended}
    if not ended:
        return
    for agent in memory.agents.values():
        ended -= {agent.persistent, agent.latest}
    ended -= pending.sessions
    ended -= {job.session_id for job in memory.jobs.values()}
    for session_id in ended:
        del memory.sessions[session_id]


def _agent(memory: Memory, name: str, pending: Pending) -> AgentMemory:
    pending.agents.add(name)
    pending.is_state_due = True
    return memory.agents.setdefault(name, AgentMemory())


def _fold_session(memory: Memory, image: SessionImage, pending: Pending) -> None:
    known = memory.sessions.get(image.id)
    if known is None:
        memory.sessions[image.id] = SessionMemory(image=image)
        if image.status != SessionStatus.CREATED:
            pending.forgotten.add(image.id)
    else:
        known.image = image
    pending.sessions.add(image.id)
    agent = _agent(memory, image.agent, pending)
    before = agent.shown_session
    if agent.persistent == image.id and not _is_current(image):
        agent.persistent = current_session(memory, image.agent)
    elif _is_current(image):
        current = memory.sessions.get(agent.persistent or "")
        if current is None or image.place >= current.image.place:
            agent.persistent = image.id
    agent.latest = _newer(memory, agent.latest, image)
    if agent.shown_session == image.id or agent.shown_session != before:
        pending.agent_sessions.add(image.agent)


def current_session(memory: Memory, agent: str) -> str | None:
    """Return the session that the agent's jobs continue without naming it; those that have not ended are remembered."""
    images = (session.image for session in memory.sessions.values())
    candidates = [image for image in images if image.agent == agent and _is_current(image)]
    return max(candidates, key=lambda image: image.place).id if candidates else None


def _is_current(session: SessionImage) -> bool:
    """Whether jobs of its agent may continue it without naming it; those that only name it do not count."""
    return session.mode == SessionMode.PERSISTENT and not session.is_ended and session.place >= 0


def _newer(memory: Memory, current: str | None, image: SessionImage) -> str:
    known = memory.sessions.get(current) if current is not None else None
    is_newer = known is None or image.number >= known.image.number
    return image.id if is_newer or known is None else known.image.id


def _fold_job(memory: Memory, image: JobImage, pending: Pending, change: int) -> None:
    pending.jobs[image.id] = image
    pending.orphans.discard(image.id)
    pending.transcripts.add(image.id)
    live = memory.jobs.setdefault(image.id, LiveJob(agent=image.agent))
    live.row_at = change
    live.session_id, live.schedule = image.session_id, image.schedule
    live.is_running = image.status == JobStatus.RUNNING
    live.lost = live.lost if live.is_running else None
    live.runtime_session_id = live.runtime_session_id or image.runtime_session_id
    session = memory.sessions.get(image.session_id) if image.session_id is not None else None
    if session is not None and image.id not in session.jobs:
        session.jobs.append(image.id)
        pending.sessions.add(session.image.id)
    _agent(memory, image.agent, pending)


def _fold_execution(memory: Memory, image: ExecutionImage, pending: Pending) -> None:
    pending.executions[image.job_id] = image
    live = memory.jobs.get(image.job_id)
    if live is not None and image.duration_ms is not None:
        live.worked_ms[str(image.epoch)] = image.duration_ms


def note_lost(memory: Memory, lost: Mapping[str, LostImage], pending: Pending) -> None:
    """These running jobs, and no others, have no live worker; whatever shows another one is written again."""
    for job_id, live in memory.jobs.items():
        found = lost.get(job_id) if live.is_running else None
        if found == live.lost:
            continue
        live.lost = found
        if job_id not in pending.jobs:
            pending.orphans.add(job_id)
        _agent(memory, live.agent, pending)


def _fold_texts(memory: Memory, image: TextsImage, pending: Pending, change: int) -> None:
    pending.texts[image.job_id] = image
    live = memory.jobs.get(image.job_id)
    if live is not None:
        live.texts_at = change
    if image.job_id not in pending.jobs:
        pending.orphans.add(image.job_id)
