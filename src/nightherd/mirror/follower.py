"""The follower: keeps the mirror up with the change feed and the journals, from a thread of its own.

Nothing it does can fail a job: what it cannot write it names (`unwritten`), keeps trying, and remembers
no further than what is written. Killed at any point, the next follower continues from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from nightherd.errors import NightherdError, RefusedError
from nightherd.files.atomic import SYSTEM_CALLS, FileCalls
from nightherd.mirror.behind import VERSION
from nightherd.mirror.job_file import write_output_log
from nightherd.mirror.layout import MirrorLayout, output_logs, wipe
from nightherd.mirror.memory import LostImage, Memory, Pending, declare, fold, note_lost
from nightherd.mirror.position import MirrorLock, load_memory, save_memory, upgrade
from nightherd.mirror.scribe import FileWriter
from nightherd.mirror.session_files import Conversation
from nightherd.model.ids import JobId
from nightherd.ports import ChangeFeed, Clock, Journals, Wait

INTERVAL_S = 0.7
"""Between two rounds. A job that is over sooner is written once; with the round itself it stays a second."""
BATCH = 2_000
"""Changes taken in at once: what bounds the follower's memory while it catches up."""
STOP_PATIENCE_S = 10.0

FindLost = Callable[[Sequence[str]], Mapping[str, LostImage]]
"""Those of the running jobs, by id, that have no live worker."""


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
    takes over. `agents` are the declared agents, None for those known before; `started_at` is when the
    fleet was started, None for when it was before; `conversation` gives what was said in a session, None
    where contexts are not kept; `find_lost` returns which running jobs have no live worker, None for none.
    """

    def __init__(  # noqa: PLR0913 (a port each)
        self,
        root: Path,
        feed: ChangeFeed,
        journals: Journals,
        *,
        clock: Clock,
        agents: Mapping[str, str | None] | None = None,
        started_at: datetime | None = None,
        wait: Wait | None = None,
        calls: FileCalls = SYSTEM_CALLS,
        conversation: Conversation | None = None,
        find_lost: FindLost | None = None,
    ) -> None:
        self._layout = MirrorLayout(root)
        self._feed = feed
        self._journals = journals
        self._clock = clock
        self._agents = agents
        self._started_at = started_at
        self._find_lost = find_lost
        self._scribe = FileWriter(
            self._layout, feed, journals, clock=clock, calls=calls, conversation=conversation
        )
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
                declare(self._work.memory, self._agents, self._work.pending)

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
            declare(work.memory, known, work.pending)
            work.memory.started_at = work.memory.started_at or declared.started_at
            for job_id in output_logs(self._layout):
                write_output_log(self._layout.root, JobId(job_id), self._journals)
            return self.catch_up()

    @property
    def unwritten(self) -> Mapping[str, str]:
        """Files that are behind, and why; empty when all is well."""
        return dict(self._scribe.unwritten)

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know: files kept aside, rows left out."""
        return tuple(self._scribe.notices)

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
                self._scribe.unwritten.pop(key, None)
        except Exception as error:  # noqa: BLE001 (an edge: nothing the mirror meets may end its follower)
            # Memory may be half-way through a change: the next round begins with what was saved.
            self._work = None
            said = error.message if isinstance(error, NightherdError) else repr(error)
            self._scribe.unwritten[key] = said
        return self._standing()

    def _take_over(self) -> _Work:
        """Go on where the last holder of the lock stopped."""
        loaded = load_memory(self._layout.memory, self._clock.now())
        if loaded.notice is not None:
            self._scribe.notices.append(loaded.notice)
        memory = self._checked(loaded.memory)
        work = _Work(memory=memory, pending=Pending(), saved=loaded.data)
        if memory.v != VERSION:
            upgrade(memory, self._feed, work.pending)
        if self._agents is not None:
            declare(work.memory, self._agents, work.pending)
        if self._started_at is not None:
            text = f"{self._started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
            work.pending.is_state_due |= text != work.memory.started_at
            work.memory.started_at = text
        self._scribe.begin(work.memory, work.pending)
        self._work = work
        return work

    def _checked(self, memory: Memory) -> Memory:
        """`memory`, if the feed still has the change it ends with; a feed made again is followed again."""
        if memory.change == 0:
            return memory
        if any(True for _ in islice(self._feed.read(after=memory.change - 1), 1)):
            return memory
        self._scribe.notices.append(
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
            if not entries and work.pending.is_empty and not work.memory.has_running_jobs:
                return
            for entry in entries:
                fold(work.memory, entry, work.pending)
            self._look_for_lost(work)
            self._scribe.write(work.memory, work.pending)
            if not self._scribe.unwritten.keys() - {str(self._layout.root)}:
                work.saved = save_memory(self._layout.memory, work.memory, work.saved)
            is_behind = len(entries) == BATCH

    def _look_for_lost(self, work: _Work) -> None:
        """Which of the running jobs have no live worker now."""
        running = [job_id for job_id, live in work.memory.jobs.items() if live.is_running]
        if self._find_lost is None or not running:
            return
        note_lost(work.memory, self._find_lost(running), work.pending)

    def _let_go(self) -> None:
        self._work = None
        self._lock.release()

    def _standing(self) -> Standing:
        return Standing(
            is_ours=self._lock.is_held,
            change=self._work.memory.change if self._work is not None else 0,
            unwritten=self.unwritten,
            notices=self.notices,
        )
