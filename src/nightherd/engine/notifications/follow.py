"""Following the ledger: what happened becomes notifications, each once, whoever is killed.

The notifications and the place in the ledger up to which they were made are written in one transaction. A process that
reads the same changes again makes the same ids; one that is behind another is refused and goes on from its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar

import msgspec
from anyio import to_thread

from nightherd.decoding import convert, decode_json
from nightherd.engine.notifications.context import NotifyContext
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Refused
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import InboxItem
from nightherd.model.jobs.job import Job
from nightherd.model.notifications.changes import DeclareTargets, FollowLedger
from nightherd.model.notifications.events import Happening, happenings
from nightherd.model.notifications.message import fields_of
from nightherd.model.notifications.notification import (
    LEDGER,
    Notification,
    NotificationStatus,
    NotificationTexts,
    Queued,
    notification_id,
)
from nightherd.model.notifications.routing import targets_for, with_bots
from nightherd.model.notifications.target import NotifyTarget
from nightherd.model.push.subscription import is_device
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.ports import LedgerEntry
from nightherd.views.jobs.troubles import troubles_of
from nightherd.views.people.inbox import what_happens

BATCH = 1_000
SAVE_EVERY = 500
"""Changes after which the place is written down although nobody is told anything."""
JOBS, ITEMS, RUNS, NODES = "jobs", "inbox_items", "workflow_runs", "workflow_nodes"
FLAGS = frozenset({"is_failing", "is_final"})

RowT = TypeVar("RowT", Job, InboxItem, WorkflowRun, WorkflowNode)


class Follower:
    """One process's view of the ledger, for one fleet at a time."""

    def __init__(self, fleet: Fleet, context: NotifyContext) -> None:
        self._fleet = fleet
        self.context = context
        self._since: dict[str, int] = {}
        self._targets: frozenset[str] = frozenset()
        self._devices: Mapping[str, NotifyTarget] = {}
        self._cursor = LEDGER
        self._saved = 0
        self._position = 0

    async def declare(self, fleet: Fleet) -> None:
        """From now on these targets are told; new ones what happens from here on."""
        self._fleet, context = fleet, self.context
        targets = tuple(with_bots(fleet))
        self._targets = frozenset(targets)
        self._cursor = LEDGER if context.is_whole else _cursor_of(fleet)
        end = await to_thread.run_sync(context.ledger_end)
        declaring = DeclareTargets(
            targets=targets,
            change=end,
            at=context.clock.now(),
            is_whole=context.is_whole,
            cursor=self._cursor,
        )
        await context.state.apply([declaring])
        self._read_since()
        self._resume()

    def tell(self, devices: Mapping[str, NotifyTarget]) -> None:
        """From now on these devices are told too, each what happens after its subscription."""
        is_same = devices.keys() == self._devices.keys()
        self._devices = devices
        if not is_same:
            self._read_since()

    def _read_since(self) -> None:
        states = self.context.reader.list_notify_targets()
        self._since = {state.id: state.since for state in states if state.is_active}

    def _is_outdated(self) -> bool:
        """Whether there are targets that this process does not know: it learns of them soon, and tells nobody until then."""
        states = self.context.reader.list_notify_targets()
        active = {state.id for state in states if state.is_active}
        devices = {name for name in active if is_device(name)}
        if self._fleet.web.enabled and not devices <= self._devices.keys():
            return True
        return self.context.is_whole and not active - devices <= self._targets

    def _resume(self) -> None:
        self._saved = self._position = self.context.reader.notified_change(self._cursor) or 0

    async def follow(self) -> bool:
        """Take in what is new; whether anything was queued."""
        has_queued = False
        while True:
            entries = await to_thread.run_sync(self._read)
            if not entries or self._is_outdated():
                return has_queued
            queued = tuple([one for entry in entries for one in await self._queued(entry)])
            self.context.probe("notify.read")
            last = entries[-1].change
            if queued or last - self._saved >= SAVE_EVERY:
                if not await self._save(last, queued):
                    continue
                has_queued |= bool(queued)
            self._position = last
            if len(entries) < BATCH:
                return has_queued

    async def _save(self, change: int, queued: tuple[Queued, ...]) -> bool:
        """Write both down; False when another process has come further, from where this one goes on."""
        moving = FollowLedger(after=self._saved, change=change, queued=queued, cursor=self._cursor)
        (answer,) = await self.context.state.apply([moving])
        self.context.probe("notify.queued")
        if isinstance(answer, Refused):
            self._resume()
            return False
        self._saved = change
        return True

    def _read(self) -> list[LedgerEntry]:
        return list(islice(self.context.feed.read(after=self._position), BATCH))

    async def _queued(self, entry: LedgerEntry) -> list[Queued]:
        found = happenings(
            entry.kind,
            _last(_rows(Job, JOBS, entry)),
            _last(_rows(InboxItem, ITEMS, entry)),
            _last(_rows(WorkflowRun, RUNS, entry)),
            _rows(WorkflowNode, NODES, entry),
        )
        queued: list[Queued] = []
        for happening in found:
            targets = self._told(happening, entry)
            if targets:
                # A journal may be long, and jobs go on meanwhile.
                denials = await to_thread.run_sync(self._denials, happening.job)
                for target in targets:
                    queued += self._composed(happening, target, entry.at, denials)
        return queued

    def _told(self, happening: Happening, entry: LedgerEntry) -> list[NotifyTarget]:
        """The targets that are told of it; what other agents do is left to those who know them."""
        if not self.context.is_whole and happening.agent not in self._fleet.agents:
            return []
        return [
            target
            for target in (
                *targets_for(self._fleet, happening.agent, happening.schedule).values(),
                *self._devices.values(),
            )
            if entry.change > self._since.get(target.id, entry.change)
            and happening.is_told_to(target)
            and self._is_news(happening, target, entry.at)
        ]

    def _is_news(self, happening: Happening, target: NotifyTarget, at: datetime) -> bool:
        """Whether it is recent enough to be told, or still waits for somebody: nothing ran here for some time, perhaps."""
        if self.context.clock.now() - at <= target.give_up_after:
            return True
        asked = happening.item
        item = self.context.reader.find_item(asked.id) if asked is not None else None
        return item is not None and item.is_pending

    def _composed(
        self, happening: Happening, target: NotifyTarget, at: datetime, denials: Sequence[str]
    ) -> Iterator[Queued]:
        """The notification, and the reminders of an item that has some."""
        reader, item = self.context.reader, happening.item
        texts = reader.find_item_texts(item.id) if item is not None else None
        job_id = item.job_id if item is not None else None
        job = reader.find_job(JobId(job_id)) if job_id is not None else None
        run = self._run(happening, job)
        delays = texts.remind_s if texts is not None else ()
        for number, delay in enumerate((0.0, *delays)):
            fields = fields_of(
                happening,
                texts,
                job=job,
                run=run,
                effects=what_happens(item) if item is not None else None,
                denials=denials,
                is_reminder=number > 0,
            )
            yield self._one(happening, target, fields, at + timedelta(seconds=delay), number)

    def _run(self, happening: Happening, job: Job | None) -> WorkflowRun | None:
        """The run that it is part of."""
        about = happening.job or job
        run_id = happening.run_id or (about.workflow_run_id if about is not None else None)
        return self.context.reader.find_run(RunId(run_id)) if run_id is not None else None

    def _denials(self, job: Job | None) -> list[str]:
        """The calls that an ended job was kept from."""
        if job is None or not job.is_terminal:
            return []
        found = troubles_of(job, self.context.journals).denials
        return [f"{one.tool_name}: {one.reason}" for one in found]

    def _one(
        self,
        happening: Happening,
        target: NotifyTarget,
        fields: dict[str, object],
        due_at: datetime,
        number: int,
    ) -> Queued:
        masked, now = self.context.secrets.mask(fields), self.context.clock.now()
        reminder = f":remind:{number}" if number else ""
        key = f"{happening.key}{reminder}:{target.id}"
        job, item, run = happening.job, happening.item, fields.get("run")
        notification = Notification(
            id=notification_id(key),
            target=target.id,
            event=happening.event,
            status=NotificationStatus.PENDING,
            created_at=now,
            due_at=due_at,
            give_up_at=max(due_at, now) + target.give_up_after,
            dedupe_key=key,
            subject=str(masked["title"]),
            job_id=job.id if job is not None else (item.job_id if item is not None else None),
            item_id=item.id if item is not None else None,
            agent=happening.agent,
            schedule=happening.schedule,
            run_id=run if isinstance(run, str) else None,
        )
        texts = NotificationTexts(notification_id=notification.id, fields=masked)
        return Queued(notification=notification, texts=texts)


def _cursor_of(fleet: Fleet) -> str:
    """The cursor of those who run only these agents: they leave what others do to those who know them."""
    names = "\n".join(sorted(fleet.agents))
    return f"{LEDGER}-{sha256(names.encode()).hexdigest()[:12]}"


def _last(rows: Sequence[RowT]) -> list[RowT]:
    """Each row as the change left it: what followed from it may have written a row again."""
    return list({row.id: row for row in rows}.values())


def _rows(kind: type[RowT], table: str, entry: LedgerEntry) -> list[RowT]:
    """The rows of a table that the change wrote; one that cannot be read is left to the doctor."""
    found: list[RowT] = []
    for name, row in entry.rows:
        if name == table:
            with suppress(msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
                found.append(convert(_fields(row), kind))
    return found


def _fields(row: msgspec.Raw) -> dict[str, Any]:
    """The fields of an image: a table has flags as numbers, and maps, which no message needs, as text."""
    fields = decode_json(row, dict[str, Any])
    fields.pop("limits", None)
    return {name: bool(value) if name in FLAGS else value for name, value in fields.items()}
