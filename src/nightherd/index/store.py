"""The index's rows: how far each job is indexed, its outline, its texts and its costs.

A transaction writes only if what it continues from is still so. So any number of processes may index at once,
and a killed one leaves nothing half written: no event is counted twice, and none is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import msgspec

from nightherd.db.connection import Database
from nightherd.decoding import json_decoder
from nightherd.index.cells import add_cells, remove_cells
from nightherd.index.families import NotedJob, NotedRun, note_job, note_run
from nightherd.index.texts import add_texts, name_session, remove_texts
from nightherd.model.costs.cell import Cell
from nightherd.model.costs.fold import EMPTY as NO_COSTS
from nightherd.model.costs.fold import CostFold, RowTotals
from nightherd.model.ids import JobId
from nightherd.model.index.outline import EMPTY, Outline, decode_outline, encode_outline
from nightherd.model.index.search import EventText, NamedSession
from nightherd.ports import Probe, no_probe

ALL_JOBS = "SELECT job_id FROM jobs"
DUE_JOBS = "SELECT job_id FROM jobs WHERE noted > looked OR is_live ORDER BY noted, number LIMIT ?"
FIND_JOB = (
    "SELECT number, agent, seq, outline, noted, looked, is_live, totals, costs"
    " FROM jobs WHERE job_id = ?"
)
KEEP_JOB = (
    "UPDATE jobs SET agent = ?, session_id = ?, seq = ?, outline = ?, costs = ?, problem = NULL"
    " WHERE number = ?"
)
_COSTS, _TOTALS = json_decoder(CostFold), json_decoder(RowTotals)


class KeptJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the index knows of a job."""

    number: int = 0
    """0 when it has no row yet."""
    agent: str = ""
    seq: int = 0
    data: bytes | None = None
    """Its outline as it is kept: not needed where there is nothing new."""
    noted: int = 0
    looked: int = 0
    is_live: bool = False
    totals_data: bytes | None = None
    costs_data: bytes | None = None

    @property
    def totals(self) -> RowTotals | None:
        """What its row says that it used; None when the feed has not said."""
        return None if self.totals_data is None else _TOTALS.decode(self.totals_data)

    @property
    def costs(self) -> CostFold:
        """What was counted of what it used; of a journal that is read from its beginning, nothing."""
        is_begun = self.costs_data is not None and self.seq > 0
        return self.settled_costs if is_begun else NO_COSTS

    @property
    def settled_costs(self) -> CostFold:
        """What was counted of what it used, also of a journal that is gone."""
        return NO_COSTS if self.costs_data is None else _COSTS.decode(self.costs_data)

    @property
    def outline(self) -> Outline:
        """What was made of its events so far; raises what msgspec raises for one that is damaged."""
        return EMPTY if self.data is None else decode_outline(self.data)


class IndexStore:
    """Questions and changes on one connection, by one thread at a time."""

    def __init__(self, database: Database, probe: Probe = no_probe) -> None:
        self._database = database
        self._probe = probe

    def change(self) -> int:
        """Return the change up to which the feed was followed."""
        return _int(self._database.execute("SELECT change FROM follow")[0][0])

    def find_job(self, job_id: str) -> KeptJob:
        """Return what is known of a job; an empty value for nothing."""
        rows = self._database.execute(FIND_JOB, (job_id,))
        if not rows:
            return KeptJob()
        number, agent, seq, outline, noted, looked, is_live, totals, costs = rows[0]
        return KeptJob(
            number=_int(number),
            agent=str(agent),
            seq=_int(seq),
            data=outline if isinstance(outline, bytes) else None,
            noted=_int(noted),
            looked=_int(looked),
            is_live=bool(is_live),
            totals_data=totals if isinstance(totals, bytes) else None,
            costs_data=costs if isinstance(costs, bytes) else None,
        )

    def due_jobs(self, limit: int) -> list[JobId]:
        """Return jobs to be looked at, those that changed first before others."""
        return [JobId(str(row[0])) for row in self._database.execute(DUE_JOBS, (limit,))]

    def job_ids(self) -> list[JobId]:
        """Return every job that it has."""
        return [JobId(str(row[0])) for row in self._database.execute(ALL_JOBS)]

    def note(
        self,
        before: int,
        change: int,
        jobs: Mapping[str, NotedJob],
        sessions: Iterable[NamedSession] = (),
        runs: Mapping[str, NotedRun] = MappingProxyType({}),
    ) -> bool:
        """Note that the feed was followed from `before` to `change`, and what it named; False when another did."""
        with self.transaction():
            if self.change() != before:
                return False
            for session in sessions:
                name_session(self._database, session)
            for run_id, run in runs.items():
                note_run(self._database, run_id, run)
            for job_id, job in jobs.items():
                note_job(self._database, job_id, job)
            self._database.execute("UPDATE follow SET change = ?", (change,))
        return True

    def keep(
        self,
        job_id: str,
        before: KeptJob,
        outline: Outline,
        texts: Sequence[EventText],
        costs: CostFold = NO_COSTS,
        cells: Sequence[Cell] = (),
    ) -> bool:
        """Replace what was known of a job, and add texts and cells; False when another process has gone on from there meanwhile."""
        with self.transaction():
            now = self._row_of(job_id)
            if now.seq != before.seq:
                return False
            agent = outline.agent or now.agent
            values = (
                agent,
                outline.session_id,
                outline.last_seq,
                encode_outline(outline),
                msgspec.json.encode(costs),
                now.number,
            )
            self._database.execute(KEEP_JOB, values)
            self._probe("index.outline_written")
            add_texts(self._database, now.number, agent, texts)
            if before.seq == 0:
                remove_cells(self._database, now.number)
            add_cells(self._database, now.number, cells)
        return True

    def keep_costs(
        self, job_id: str, before: KeptJob, costs: CostFold, cells: Sequence[Cell]
    ) -> None:
        """Replace what was counted of a job, and add cells, unless another process has changed it meanwhile."""
        with self.transaction():
            now = self.find_job(job_id)
            if now.number and (now.seq, now.costs_data) == (before.seq, before.costs_data):
                data = msgspec.json.encode(costs)
                self._database.execute(
                    "UPDATE jobs SET costs = ? WHERE number = ?", (data, now.number)
                )
                add_cells(self._database, now.number, cells)

    def mark_looked(self, job_id: str, noted: int, problem: str | None = None) -> None:
        """Note that the job was read to its end after the change `noted`, or cannot be read."""
        self._database.execute(
            "UPDATE jobs SET looked = max(looked, ?), problem = ? WHERE job_id = ?",
            (noted, problem, job_id),
        )

    def remove(self, job_id: str) -> None:
        """Forget all about a job."""
        with self.transaction():
            number = self.find_job(job_id).number
            remove_texts(self._database, number)
            remove_cells(self._database, number)
            self._database.execute("DELETE FROM jobs WHERE job_id = ?", (job_id,))

    def forget_journal(self, job_id: str) -> None:
        """Forget what a journal said that is gone. What its job used was used all the same."""
        with self.transaction():
            remove_texts(self._database, self.find_job(job_id).number)
            self._database.execute(
                "UPDATE jobs SET seq = 0, outline = NULL WHERE job_id = ?", (job_id,)
            )

    def restart(self, job_id: str) -> None:
        """Index a job from its beginning again."""
        with self.transaction():
            number = self.find_job(job_id).number
            remove_texts(self._database, number)
            remove_cells(self._database, number)
            self._database.execute(
                "UPDATE jobs SET seq = 0, outline = NULL, costs = NULL, looked = 0 WHERE number = ?",
                (number,),
            )

    def restart_feed(self) -> None:
        """Follow the feed from its beginning again."""
        self._database.execute("UPDATE follow SET change = 0")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is written in the block, or nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._probe("index.begin")
            yield
            self._probe("index.before_commit")
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        self._probe("index.after_commit")

    def _row_of(self, job_id: str) -> KeptJob:
        """Inside a transaction: the job's row, made if it is not there."""
        self._database.execute("INSERT OR IGNORE INTO jobs (job_id) VALUES (?)", (job_id,))
        number, agent, seq = self._database.execute(
            "SELECT number, agent, seq FROM jobs WHERE job_id = ?", (job_id,)
        )[0]
        return KeptJob(number=_int(number), agent=str(agent), seq=_int(seq))


def _int(value: object) -> int:
    return int(str(value))
