"""The follower: keeps the mirror up with the change feed and the journals, from a thread of its own.

Nothing it does can fail a job: what it cannot write it names (`unwritten`), keeps trying, and remembers
no further than what is written. Killed at any point, the next follower continues from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec

from nightherd.errors import NightherdError, RefusedError
from nightherd.files.atomic import SYSTEM_CALLS, FileCalls
from nightherd.mirror.behind import RIGHT_SINCE, VERSION
from nightherd.mirror.changes import Pending
from nightherd.mirror.file_writer import FileWriter
from nightherd.mirror.job_file import write_output_log
from nightherd.mirror.layout import MirrorLayout, output_logs, wipe
from nightherd.mirror.position import Memory, MirrorLock, load_memory, save_memory
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobQuery, JobStatus
from nightherd.model.jobs.lost import ObservedJob
from nightherd.model.text import utc_text
from nightherd.model.worker import Worker
from nightherd.ports import ChangeFeed, Clock, Journals, StateReader, Wait
from nightherd.views.jobs.jobs import every_job, observe_jobs, own_job

INTERVAL_S = 0.7
"""Between two rounds. A job that is over sooner is written once; with the round itself it stays a second."""
BATCH = 2_000
"""Changes taken in at once: what bounds the follower's memory while it catches up."""
STOP_PATIENCE_S = 10.0

PAGE = 500
"""Running jobs read at once."""

IsAtWork = Callable[[Worker], bool]
"""Whether a worker is alive."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How far the mirror is. `is_ours` is False when another process keeps it."""

    is_ours: bool
    change: int = 0
    unwritten: Mapping[str, str]
    notices: Sequence[str]


class _Work(msgspec.Struct):
    """What this process knows while it holds the lock."""

    memory: Memory
    pending: Pending
    saved: bytes


class MirrorFollower:
    """Keeps the mirror of one state directory.

    Any number of processes may have one; the one that holds the lock writes, and when it dies another
    takes over. The feed says what has changed; `reader`, which is closed with the follower, says how it is now.
    `agents` are the declared agents, None for those known before; `started_at` is when the fleet was started,
    None for when it was before; `is_at_work` says whether a worker is alive: without it, no job counts as lost.
    """

    def __init__(  # noqa: PLR0913 (a port each)
        self,
        root: Path,
        feed: ChangeFeed,
        reader: StateReader,
        journals: Journals,
        *,
        clock: Clock,
        agents: Mapping[str, str | None] | None = None,
        started_at: datetime | None = None,
        wait: Wait | None = None,
        calls: FileCalls = SYSTEM_CALLS,
        is_at_work: IsAtWork | None = None,
    ) -> None:
        self._layout = MirrorLayout(root)
        self._feed = feed
        self._reader = reader
        self._journals = journals
        self._clock = clock
        self._agents = agents
        self._started_at = started_at
        self._is_at_work = is_at_work
        self._writer = FileWriter(self._layout, reader, journals, clock=clock, calls=calls)
        self._lock = MirrorLock(self._layout.lock)
        self._work: _Work | None = None
        self._turn = threading.RLock()
        self._stop = threading.Event()
        self._wait = wait if wait is not None else self._stop.wait
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Follow from now on, at most a second behind; once is enough, more are harmless."""
        if self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._follow, name="mirror", daemon=True)
            self._thread.start()

    def stop(self) -> Standing:
        """Stop following, after everything committed before this call is in the files.

        A `wait` of one's own has to come back by itself for the thread to end.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join(STOP_PATIENCE_S)
            self._thread = None
        return self.catch_up()

    def declare(self, agents: Mapping[str, str | None]) -> None:
        """From now on these are the declared agents, each with the reason why it may not run."""
        with self._turn:
            self._agents = dict(agents)
            if self._work is not None:
                self._declare(self._work, self._agents)

    def catch_up(self) -> Standing:
        """Bring the files up to everything committed before this call; never raises for what it finds.

        While another process keeps the mirror this does nothing: that one is at most a second behind.
        """
        with self._turn:
            standing = self._attempt()
            if self._thread is None:
                self._let_go()
            return standing

    def rebuild(self) -> Standing:
        """Delete the mirror and make it again, including the logs that were requested.

        `RefusedError` while another process keeps it; errors of deleting are raised.
        """
        with self._turn:
            if not self._lock.acquire():
                raise RefusedError(
                    "another process keeps the mirror", hint="stop it, then try again"
                )
            self._work = None
            declared = load_memory(self._layout.memory, self._clock.now()).memory
            wipe(self._layout)
            work = self._take_over()
            known = {name: declared.blocked.get(name) for name in declared.declared}
            self._declare(work, known)
            work.memory.started_at = work.memory.started_at or declared.started_at
            for job_id in output_logs(self._layout):
                write_output_log(self._layout.root, JobId(job_id), self._journals)
            return self.catch_up()

    @property
    def unwritten(self) -> Mapping[str, str]:
        """Files that are behind, and why; empty when all is well."""
        return dict(self._writer.unwritten)

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know: files kept aside, rows left out."""
        return tuple(self._writer.notices)

    def _follow(self) -> None:
        while not self._stop.is_set():
            with self._turn:
                self._attempt()
            if self._wait(INTERVAL_S):
                return

    def _attempt(self) -> Standing:
        key = str(self._layout.root)
        try:
            if self._lock.acquire():
                self._catch_up(self._work or self._take_over())
                self._writer.unwritten.pop(key, None)
        except Exception as error:  # noqa: BLE001 (an edge: nothing the mirror meets may end its follower)
            # Memory may be half-way through a change: the next round begins with what was saved.
            self._work = None
            said = error.message if isinstance(error, NightherdError) else repr(error)
            self._writer.unwritten[key] = said
        return self._standing()

    def _take_over(self) -> _Work:
        """Go on where the last holder of the lock stopped."""
        loaded = load_memory(self._layout.memory, self._clock.now())
        if loaded.notice is not None:
            self._writer.notices.append(loaded.notice)
        memory = self._checked(loaded.memory)
        work = _Work(memory=memory, pending=Pending(), saved=loaded.data)
        if memory.v < RIGHT_SINCE:
            work.pending.agents |= memory.agents.keys()
            work.pending.agent_sessions |= memory.agents.keys()
        memory.v = VERSION
        if self._agents is not None:
            self._declare(work, self._agents)
        if self._started_at is not None:
            text = utc_text(self._started_at)
            work.pending.is_state_due |= text != memory.started_at
            memory.started_at = text
        self._writer.begin(work.memory, work.pending)
        self._work = work
        return work

    def _declare(self, work: _Work, agents: Mapping[str, str | None]) -> None:
        """Make these the declared agents: all of them have a place in the state."""
        work.pending.redeclared |= work.memory.declare(agents)

    def _checked(self, memory: Memory) -> Memory:
        """`memory`, if the feed still has the change it ends with; a feed made again is followed again."""
        if memory.change == 0:
            return memory
        if any(True for _ in islice(self._feed.read(after=memory.change - 1), 1)):
            return memory
        self._writer.notices.append(
            f"the ledger ends before change {memory.change}; the mirror is rebuilt"
        )
        return Memory(
            v=VERSION,
            started_at=memory.started_at,
            declared=memory.declared,
            blocked=memory.blocked,
        )

    def _catch_up(self, work: _Work) -> None:
        is_behind = True
        while is_behind:
            entries = list(islice(self._feed.read(after=work.memory.change), BATCH))
            if not entries and work.pending.is_empty and not work.memory.jobs:
                return
            for entry in entries:
                work.pending.note(entry)
                work.memory.change = entry.change
            running = self._running_jobs()
            for job_id, progress in work.memory.jobs.items():
                lost = running[job_id].lost if job_id in running else None
                if progress.lost != lost:
                    work.pending.jobs.add(job_id)
            self._writer.write(work.memory, work.pending, running)
            if not self._writer.unwritten.keys() - {str(self._layout.root)}:
                work.saved = save_memory(self._layout.memory, work.memory, work.saved)
            is_behind = len(entries) == BATCH

    def _running_jobs(self) -> Mapping[str, ObservedJob]:
        """The jobs that run now, oldest first, by id."""
        query = JobQuery(status=JobStatus.RUNNING, limit=PAGE)
        jobs = [*every_job(self._reader, query)][::-1]
        now = self._clock.now()
        if self._is_at_work is None:
            return {job.id: own_job(self._reader, job, now) for job in jobs}
        observed = observe_jobs(self._reader, jobs, self._is_at_work, now)
        return {job.id: job for job in observed if job.status is JobStatus.RUNNING}

    def _let_go(self) -> None:
        self._work = None
        self._reader.close()
        self._lock.release()

    def _standing(self) -> Standing:
        return Standing(
            is_ours=self._lock.is_held,
            change=self._work.memory.change if self._work is not None else 0,
            unwritten=self.unwritten,
            notices=self.notices,
        )
