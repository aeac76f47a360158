"""Automatic retention: at most one run a day, announced before the first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import anyio
from anyio import to_thread

from nightherd.engine.chat.retention import count_forgettable
from nightherd.engine.checkpoints.retention import ApplyRetention, apply_retention, plans
from nightherd.engine.sessions.directories import removable_directories
from nightherd.engine.workspaces.cleanup import removable
from nightherd.errors import message_of, unwrapped
from nightherd.model.agents.agent import Fleet
from nightherd.model.checkpoints.persistence import Persistence
from nightherd.model.checkpoints.retention import RetentionRun, Step, next_step, run_text
from nightherd.ports import Clock
from nightherd.wiring.stores import (
    forget_retention,
    last_retention,
    load_persistence,
    open_chat_files,
    open_journals,
    open_reader,
    open_retention,
    record_retention,
    session_directories,
)

FIRST_S = 60.0
"""After the start: what was left lying has begun again by then."""
LOOK_S = 600.0
"""How often it is looked at whether a run is due."""


class AutomaticRetention:
    """Runs retention on one state directory, at most once a day across restarts."""

    def __init__(
        self,
        state_dir: Path,
        clock: Clock,
        report: Callable[[str], None],
        is_stopped: Callable[[], bool],
        *,
        first_s: float = FIRST_S,
        fleet: Callable[[], Fleet | None] = lambda: None,
    ) -> None:
        self._state_dir = state_dir
        self._clock = clock
        self._report = report
        self._is_stopped = is_stopped
        self._first_s = first_s
        self._fleet = fleet
        self._problem = ""

    async def keep(self) -> None:
        """Check now and then whether a run is due, until cancelled. A failure is reported once and retried."""
        await anyio.sleep(self._first_s)
        while True:
            try:
                await self.check()
                self._problem = ""
            except Exception as error:  # noqa: BLE001 (an edge: the fleet continues without it)
                self._report_problem(message_of(unwrapped(error)))
            await anyio.sleep(LOOK_S)

    async def check(self) -> None:
        """Do what is due now, say what was done and record it."""
        # In a thread, with a loop of its own: reading journals delays nothing else.
        run = await to_thread.run_sync(anyio.run, self._run)
        if run is None:
            return
        if run.is_announcement or run.failures or not run.is_idle:
            self._report(run_text(run))
        record_retention(self._state_dir, run)

    async def _run(self) -> RetentionRun | None:
        """The run that was due; None when none was, or it could not be completed."""
        persistence, now = load_persistence(self._state_dir), self._clock.now()
        match next_step(persistence.retention, last_retention(self._state_dir), now):
            case Step.NOTHING:
                if not persistence.retention.automatic:
                    forget_retention(self._state_dir)
                return None
            case Step.ANNOUNCE:
                return self._announced(persistence, now)
            case Step.APPLY:
                return await self._applied(now)

    def _announced(self, persistence: Persistence, now: datetime) -> RetentionRun:
        """What the next run would delete, by what is on record now."""
        with closing(open_reader(self._state_dir)) as reader:
            planned = list(plans(reader, open_journals(self._state_dir), persistence, now))
            workspaces = len(list(removable(reader, now)))
            files = open_chat_files(self._state_dir)
            chat = count_forgettable(reader, persistence.retention.chat, now, files)
            directories = removable_directories(reader, session_directories(self._state_dir), now)
            session_count = len(list(directories))
        return RetentionRun(
            at=now,
            is_announcement=True,
            checkpoints=sum(len(one.going) for one in planned),
            jobs=len(planned),
            workspaces=workspaces,
            texts=chat.texts,
            files=chat.files,
            session_directories=session_count,
        )

    async def _applied(self, now: datetime) -> RetentionRun | None:
        """Delete what is planned; None when the daemon stops on the way, and the rest is for its next start."""
        async with open_retention(self._state_dir, self._fleet()) as room:
            applied = await apply_retention(ApplyRetention(), room, is_stopped=self._is_stopped)
        if not applied.is_whole:
            return None
        return RetentionRun(
            at=now,
            is_announcement=False,
            checkpoints=sum(len(one.going) for one in applied.done),
            jobs=len(applied.done),
            failures=len(applied.failures) + len(applied.workspaces.failures),
            workspaces=len(applied.workspaces.removed),
            texts=applied.chat.texts,
            files=applied.chat.files,
            session_directories=applied.session_directories,
        )

    def _report_problem(self, problem: str) -> None:
        if problem != self._problem:
            self._report(f"retention: could not run: {problem}; trying again until it works")
        self._problem = problem
