"""Indexer: brings the index up to the change feed and the journals, in steps of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from nightherd.errors import JournalError
from nightherd.index.file import Opened, discard_index, is_damage, open_index
from nightherd.index.noted import Noted
from nightherd.index.store import IndexStore, KeptJob
from nightherd.model.costs.fold import extend_costs, settle_costs
from nightherd.model.ids import JobId
from nightherd.model.index.fold import extend
from nightherd.model.index.search import EventText, lacks_body, search_text
from nightherd.model.journal.event import Event
from nightherd.ports import ChangeFeed, Journals, Probe, Tail, no_probe

CHANGES = 2_000
"""Changes of the feed that are taken in at once."""
EVENTS = 1_000
"""Events of a job that are indexed at once; what bounds memory, and how long a transaction takes."""
BLOCKS = 64
"""Blocks of a journal that are read for that: long events make fewer of them."""
MOST_TAILS = 64
"""Journals of running jobs that are kept open."""

AnswerT = TypeVar("AnswerT")


class Indexer:
    """Writes the index of one state directory, on one thread. Several processes may have one at a time."""

    def __init__(
        self, root: Path, feed: ChangeFeed, journals: Journals, *, probe: Probe = no_probe
    ) -> None:
        self._root = root
        self._feed = feed
        self._journals = journals
        self._probe = probe
        self._opened: Opened | None = None
        self._is_feed_checked = False
        self._tails: dict[str, tuple[int, Tail]] = {}
        """Journals of running jobs, each with the number of the event that it continues after."""
        self.notices: list[str] = []
        """What a person should know: a file that was made again, jobs that cannot be read."""

    def close(self) -> None:
        """Give everything back; the next call opens it again."""
        for _, tail in self._tails.values():
            tail.close()
        self._tails.clear()
        if self._opened is not None:
            self._opened.database.close()
            self._opened = None

    def follow_changes(self) -> int:
        """Note the jobs that the next changes of the feed are about; how many changes those were."""
        return self._on_store(self._follow)

    def due_jobs(self, limit: int) -> list[JobId]:
        """Return jobs that have something new, or may have."""
        return self._on_store(lambda store: store.due_jobs(limit))

    def index_job(self, job_id: JobId) -> bool:
        """Index the next events of a job; whether there may be more. A journal that cannot be read is noted."""
        return self._on_store(lambda store: self._index(store, job_id))

    def catch_up(self, on_job: Callable[[int], object] = lambda count: None) -> int:
        """Index everything there is now; how many jobs were looked at. `on_job` is called after each."""
        while self.follow_changes():
            pass
        done: set[str] = set()
        while found := [one for one in self.due_jobs(len(done) + 1_000) if one not in done]:
            for job_id in found:
                while self.index_job(job_id):
                    pass
                done.add(job_id)
                on_job(len(done))
        return len(done)

    def sweep(self) -> int:
        """Remove the jobs whose journals are gone; how many those were."""
        there = set(self._journals.job_ids())

        def work(store: IndexStore) -> int:
            gone = [job_id for job_id in store.job_ids() if job_id not in there]
            removed = 0
            for job_id in gone:
                if store.find_job(job_id).seq > 0:
                    store.forget_journal(job_id)
                    removed += 1
            return removed

        return self._on_store(work)

    def _follow(self, store: IndexStore) -> int:
        before = store.change()
        if before and not self._is_feed_checked and not self._has_change(before):
            self.notices.append(f"the ledger ends before change {before}; all jobs are looked at")
            store.restart_feed()
            before = 0
        self._is_feed_checked = True
        entries = list(islice(self._feed.read(after=before), CHANGES))
        if entries:
            noted = Noted()
            for entry in entries:
                self.notices += noted.take(entry)
            for job_id in noted.deleted:
                store.remove(job_id)
            store.note(before, entries[-1].change, noted.jobs, noted.sessions.values(), noted.runs)
        return len(entries)

    def _has_change(self, change: int) -> bool:
        return any(True for _ in islice(self._feed.read(after=change - 1), 1))

    def _index(self, store: IndexStore, job_id: JobId) -> bool:
        kept = store.find_job(job_id)
        try:
            events = self._read(job_id, kept)
        except JournalError as error:
            self._drop_tail(job_id)
            self.notices.append(f"job {job_id} is not indexed further: {error.message}")
            if self._settle(store, job_id, kept):
                store.mark_looked(job_id, kept.noted, error.message)
            return False
        if not events:
            return self._finish(store, job_id, kept)
        try:
            outline = extend(kept.outline, events)
            costs, cells = extend_costs(kept.costs, events)
            texts = [text for event in events if (text := self._text(job_id, event)) is not None]
        except msgspec.DecodeError:
            self._drop_tail(job_id)
            store.restart(job_id)
            return True
        if not store.keep(job_id, kept, outline, texts, costs, cells):
            self._drop_tail(job_id)  # another process was faster: go on from where it is
        return True

    def _text(self, job_id: JobId, event: Event) -> EventText | None:
        """The text of an event that can be found, also when it is kept beside the journal."""
        if lacks_body(event):
            with suppress(JournalError):
                event = next(iter(self._journals.read(job_id, after=event.seq - 1)), event)
        return search_text(event)

    def _finish(self, store: IndexStore, job_id: JobId, kept: KeptJob) -> bool:
        """Nothing new is there: the job is done, or its journal is not the one that was indexed."""
        if kept.seq > 0 and not (kept.is_live and kept.noted <= kept.looked):
            last = self._journals.last(job_id, 1)
            if not last:
                store.forget_journal(job_id)
                self._drop_tail(job_id)
                return True
            if last[-1].seq < kept.seq:
                store.restart(job_id)
                self._drop_tail(job_id)
                return True
        if not kept.is_live:
            self._drop_tail(job_id)
        if kept.noted > kept.looked:
            if not self._settle(store, job_id, kept):
                return True
            store.mark_looked(job_id, kept.noted)
        return False

    def _settle(self, store: IndexStore, job_id: JobId, kept: KeptJob) -> bool:
        """Count what the row of a job that does not run has beyond its journal; False when it has to begin again."""
        if kept.is_live:
            return True
        try:
            totals, before = kept.totals, kept.settled_costs
        except msgspec.DecodeError:
            store.restart(job_id)
            return False
        if totals is not None:
            costs, cells = settle_costs(before, totals)
            if costs != before:
                store.keep_costs(job_id, kept, costs, cells)
        return True

    def _read(self, job_id: JobId, kept: KeptJob) -> list[Event]:
        """Return the next events of a job, at most a step of them."""
        after, tail = self._tails.pop(job_id, (-1, None))
        if tail is None or after != kept.seq:
            if tail is not None:
                tail.close()
            tail = self._journals.follower(job_id, after=kept.seq)
        events: list[Event] = []
        try:
            for _ in range(BLOCKS):
                found = tail.poll()
                events += found
                if not found or len(events) >= EVENTS:
                    break
        except BaseException:
            tail.close()
            raise
        self._tails[job_id] = (events[-1].seq if events else kept.seq), tail
        while len(self._tails) > MOST_TAILS:
            self._drop_tail(next(iter(self._tails)))
        return events

    def _drop_tail(self, job_id: str) -> None:
        _, tail = self._tails.pop(job_id, (0, None))
        if tail is not None:
            tail.close()

    def _on_store(self, work: Callable[[IndexStore], AnswerT]) -> AnswerT:
        """Carry out `work`; a file that turns out to be damaged is made again, once."""
        try:
            with self._store() as store:
                return work(store)
        except Exception as error:
            if not is_damage(error):
                raise
            self._replace(str(error))
        with self._store() as store:
            return work(store)

    @contextmanager
    def _store(self) -> Iterator[IndexStore]:
        opened = self._opened
        if opened is not None and not opened.is_current:
            self.close()  # another process has replaced the file
            opened = None
        if opened is None:
            self._is_feed_checked = False
            opened = self._opened = open_index(self._root)
            if opened.notice is not None:
                self.notices.append(opened.notice)
        yield IndexStore(opened.database, self._probe)

    def _replace(self, why: str) -> None:
        inode = None if self._opened is None else self._opened.inode
        self.close()
        if inode is not None:
            discard_index(self._root, inode)
        self.notices.append(f"the index was damaged and is made again from the journals: {why}")
