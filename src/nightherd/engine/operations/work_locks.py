"""Locks of issues: list those of all fleets, and remove one of a fleet that is gone for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from nightherd.engine.contexts import FleetContext
from nightherd.engine.work.context import WorkContext
from nightherd.engine.work.on_request import work_for_request
from nightherd.errors import AmbiguousIdError, NotFoundError, RefusedError, WorkSourceError
from nightherd.model.text import quote
from nightherd.model.work.issue import IssueLock, has_label
from nightherd.model.work.item import WorkItem, short_id, work_id
from nightherd.model.work.source import WorkSource
from nightherd.ports import StateReader
from nightherd.ports.work import WorkTracker

PAGES = 10
"""Pages of locks that are listed, with a hundred each."""


class HeldLock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock at a source, and this fleet's issue where the lock is its own."""

    source: WorkSource
    lock: IssueLock
    item: WorkItem | None = None

    @property
    def issue(self) -> str:
        """`OWNER/NAME#7`, with its server unless that is the public one."""
        return short_id(work_id(self.source.id, self.lock.number))


class Unlocked(msgspec.Struct, frozen=True, kw_only=True):
    """A lock that was removed, and whether its issue is ready again."""

    held: HeldLock
    is_ready: bool


async def list_locks(sources: Iterable[WorkSource], context: FleetContext) -> Sequence[HeldLock]:
    """Return the locks of all fleets at the sources, by source and number. `RefusedError` where one cannot be asked."""
    work = work_for_request(context)
    with _as_refusal():
        return await _list(sources, work)


@contextmanager
def _as_refusal() -> Iterator[None]:
    """Raise what a tracker refuses as an answer to the request."""
    try:
        yield
    except WorkSourceError as error:
        raise RefusedError(error.message) from error


async def _list(sources: Iterable[WorkSource], work: WorkContext) -> Sequence[HeldLock]:
    found: dict[str, HeldLock] = {}
    for source in sources:
        tracker = work.tracker(source)
        for page in range(1, PAGES + 1):
            listed = await tracker.list_locks(page)
            for lock in listed.locks:
                held = _held(source, lock, work.fleet.reader)
                found[work_id(source.id, lock.number)] = held
            if not listed.has_more:
                break
    return sorted(found.values(), key=lambda one: (one.source.id, one.lock.number))


def _held(source: WorkSource, lock: IssueLock, reader: StateReader) -> HeldLock:
    item = reader.find_work_item(work_id(source.id, lock.number))
    is_own = item is not None and item.is_open and item.claim == lock.lock
    return HeldLock(source=source, lock=lock, item=item if is_own else None)


def find_source(sources: Sequence[WorkSource], reference: str) -> tuple[WorkSource, int]:
    """Return which issue of which source `OWNER/NAME#7`, or `#7` with one source, means."""
    name, _, number = reference.rpartition("#")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise NotFoundError(f"{quote(reference)} is no issue; write OWNER/NAME#7")
    wanted = name.casefold()
    by_id = {one.id: one for one in sources}
    found = [
        one
        for one in by_id.values()
        if not wanted or wanted in (one.id.casefold(), one.id.partition(":")[2].casefold())
    ]
    if not found:
        raise NotFoundError(f"no schedule takes issues from {quote(name or reference)}")
    if len(found) > 1:
        names = ", ".join(short_id(one.id) for one in found[:3])
        raise AmbiguousIdError(f"{quote(reference)} may be of {names}")
    return found[0], int(number)


async def find_lock(source: WorkSource, number: int, context: FleetContext) -> HeldLock:
    """Return the issue's lock; `NotFoundError` when it has none, `RefusedError` for one of this fleet that is in use."""
    with _as_refusal():
        return await _find(source, number, work_for_request(context))


async def _find(source: WorkSource, number: int, work: WorkContext) -> HeldLock:
    lock = await work.tracker(source).find_lock(number)
    if lock is None:
        raise NotFoundError(f"issue {short_id(work_id(source.id, number))} has no lock")
    held = _held(source, lock, work.fleet.reader)
    if held.item is not None:
        raise RefusedError(
            f"issue {held.issue} is this fleet's: {held.item.schedule_id} has it ({held.item.status})",
            hint="release the issue instead",
        )
    return held


async def unlock_issue(held: HeldLock, context: FleetContext) -> Unlocked:
    """Remove the lock that a person has seen, and make the issue ready again if it is open and says that it is in progress.

    `RefusedError` when somebody else has the issue by now.
    """
    work, source, number = work_for_request(context), held.source, held.lock.number
    tracker, lock = work.tracker(source), held.lock.lock
    with _as_refusal():
        current = await _find(source, number, work)
        if current.lock.lock != lock or not await tracker.drop_lock(number, lock):
            raise RefusedError(f"issue {held.issue} was taken by somebody else meanwhile")
    try:
        is_ready = await _make_ready(source, number, tracker)
    except WorkSourceError as error:
        raise RefusedError(
            f"the lock of issue {held.issue} is removed, and its labels are as they were: {error.message}"
        ) from error
    return Unlocked(held=held, is_ready=is_ready)


async def _make_ready(source: WorkSource, number: int, tracker: WorkTracker) -> bool:
    issue = await tracker.find_issue(number)
    if issue is None or not issue.is_open or not has_label(issue, source.in_progress):
        return False
    await tracker.add_label(number, source.ready)
    await tracker.remove_label(number, source.in_progress)
    return True
