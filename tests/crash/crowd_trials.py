"""One of several processes that do everything there is to do to one state directory, all at once."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
from msgspec.structs import replace

from nightherd.journal.files import JournalFiles
from nightherd.model.change import Applied, Change
from nightherd.model.ids import JobId, generate_execution_id
from nightherd.model.jobs.changes import CancelJob, SubmitJob
from nightherd.model.jobs.job import Job
from nightherd.model.journal.event import AssistantEvent
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.fork_process import Say
from nightherd.testing.state_values import BEGINNING, checkpoint, fire, lose, settle, start, submit

CROWD = f"{__name__}:take_part"
LANES = 4
LEAST = 20
"""What each lane does, however slow the machine is."""
STRIDE = 100_000
"""Numbers of jobs that belong to one process."""
KEYS = 50
"""Dedupe keys that all processes fight over."""
SLOTS = 400
"""Due instants that all processes fight over."""


class Member:
    """One process's part: what it does, and what it was told came of it."""

    def __init__(self, order: dict[str, Any], say: Say) -> None:
        root = Path(order["root"])
        self.place: int = order["place"]
        self.until = time.monotonic() + order["seconds"]
        self.random = Random(order["seed"] + self.place)
        self.say = say
        self.store = SqliteStore(root, FakeClock(), outbox_limit=32)
        self.reader = SqliteReader(root)
        self.journals = JournalFiles(root / "jobs", root / "blobs", clock=FakeClock())
        self.next_number: int = self.place * STRIDE
        self.seen: deque[JobId] = deque(maxlen=20)

    async def work(self) -> None:
        """Until the time is up, and everybody has done something."""
        async with anyio.create_task_group() as lanes:
            for _ in range(LANES):
                lanes.start_soon(self._lane)
        self.reader.close()
        await self.store.close()

    async def _lane(self) -> None:
        acts = (self._live, self._live, self._live, self._cancel, self._fire, self._follow)
        done = 0
        while time.monotonic() < self.until or done < LEAST:
            await self.random.choice(acts)()
            done += 1

    async def _apply(self, what: str, change: Change, name: str) -> Job | None:
        (answer,) = await self.store.apply([change])
        outcome = "applied" if isinstance(answer, Applied) else answer.why.value
        self.say(f"{what} {name} {outcome}")
        return answer.job if isinstance(answer, Applied) else None

    def _number(self) -> int:
        self.next_number += 1
        return self.next_number

    async def _live(self) -> None:
        """A job's whole life: submitted, started, bookmarked, perhaps lost and started again, settled."""
        number = self._number()
        change = submit(number)
        if self.random.random() < 0.3:
            change = _with_key(change, f"key-{self.random.randrange(KEYS)}")
        job = await self._apply("submit", change, change.job.id)
        if job is None:
            return
        epoch = 1
        await self._apply("start", start(number), job.id)
        self._append(job.id, epoch)
        await self._apply("checkpoint", checkpoint(number), job.id)
        if self.random.random() < 0.3:
            lost = replace(lose(number, epoch=1), max_restarts=5)
            await self._apply("lose", lost, job.id)
            epoch = 2
            await self._apply("start", start(number), job.id)
            self._append(job.id, epoch)
        await self._apply("settle", settle(number, epoch=epoch), job.id)
        self.seen.append(job.id)

    def _append(self, job_id: JobId, epoch: int) -> None:
        execution = generate_execution_id(job_id, epoch)
        journal = self.journals.open(job_id, epoch=epoch, execution=execution)
        for number in range(3):
            event = journal.append(AssistantEvent(content=f"{epoch}:{number}"))
            self.say(f"append {job_id} {event.seq}")
        journal.close()

    async def _cancel(self) -> None:
        """A job that ends before it began; cancelling it again changes nothing."""
        number = self._number()
        job = await self._apply("submit", submit(number), submit(number).job.id)
        assert job is not None
        for _ in range(2):
            await self._apply("cancel", CancelJob(job_id=job.id, at=BEGINNING), job.id)

    async def _fire(self) -> None:
        """A due instant that others want to decide too."""
        minute = self.random.randrange(SLOTS)
        number = self._number()
        await self._apply("fire", fire(number, minute=minute), str(minute))

    async def _follow(self) -> None:
        """Somebody's journal and row, whoever writes them: whole, in order, and never ahead of each other."""
        ids = self.reader.job_ids(f"job-{BEGINNING:%Y-%m-%d}", 50)
        if not ids:
            return
        job = self.reader.find_job(self.random.choice(ids))
        assert job is not None
        found = [event.seq for event in self.journals.read(job.id)]
        assert found == list(range(1, len(found) + 1)), (job.id, found)
        later = self.reader.find_job(job.id)
        assert later is not None
        assert later.epoch >= job.epoch
        assert not job.is_terminal or later.status is job.status


def _with_key(change: SubmitJob, key: str) -> SubmitJob:
    return replace(change, job=replace(change.job, dedupe_key=key))


def take_part(order: dict[str, Any], say: Say) -> None:
    """Do everything there is to do, at random, for `seconds`."""
    member = Member(order, say)
    anyio.run(partial(Member.work, member))
