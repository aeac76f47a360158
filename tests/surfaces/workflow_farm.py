"""A farm: workflows on real stores and files, with one worker in this process."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import anyio
import apsw

from crash.run_herds import FLEET, RunHerd
from crash.run_trials import APPLY
from nightherd.engine.workers.worker import WorkerReports
from nightherd.model.change import Answer, Applied, Change, Refused
from nightherd.model.jobs.job import Job
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.state.directory import StateDirectory, init_state_directory
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.fork_server import ForkServer
from nightherd.testing.run_values import (
    answer,
    begin,
    end,
    found_run,
    gate_of,
    job_of,
    jobs_by_phase,
    nodes,
    start_run,
)
from nightherd.wiring.running import make_worker_loop, open_worker

KILLED_AT = ("db.begin", "db.before_commit", "db.after_commit", "ledger.appended")


class Field:
    """A state directory. Every change is carried out by a store that is opened for it: nothing is only in memory."""

    def __init__(self, folder: Path) -> None:
        self.directory: StateDirectory = init_state_directory(folder / ".nightherd")

    def try_to(self, *changes: Change) -> list[Answer]:
        async def work() -> list[Answer]:
            store = SqliteStore(self.directory.root, FakeClock())
            try:
                return list(await store.apply(changes))
            finally:
                await store.close()

        return anyio.run(work)

    def apply(self, *changes: Change) -> None:
        answers = self.try_to(*changes)
        assert all(isinstance(one, Applied) for one in answers), answers

    def refused(self, change: Change) -> Refused:
        (found,) = self.try_to(change)
        assert isinstance(found, Refused), found
        return found

    def read(self, ask: Any) -> Any:
        reader = SqliteReader(self.directory.root)
        try:
            return ask(reader)
        finally:
            reader.close()

    def start(self, number: int, definition: WorkflowDefinition, **more: Any) -> None:
        self.apply(start_run(number, definition, **more))

    def job(self, number: int | RunId, phase: str) -> Job:
        found = self.read(lambda reader: job_of(reader, number, phase))
        assert isinstance(found, Job)
        return found

    def phases(self, number: int | RunId) -> list[str]:
        """The phases that have a job."""
        return list(self.read(lambda reader: jobs_by_phase(reader, number)))

    def do(self, number: int | RunId, *phases: str, **how: Any) -> None:
        """A worker does the jobs of these phases."""
        for phase in phases:
            job = self.job(number, phase)
            self.apply(begin(job), end(job, **how))

    def answer(self, number: int | RunId, gate: str, *verdict: Any, **how: Any) -> None:
        item = self.read(lambda reader: gate_of(reader, number, gate))
        self.apply(answer(item, *verdict, **how))

    def prompt(self, number: int | RunId, phase: str) -> str:
        texts = self.read(lambda reader: reader.find_texts(self.job(number, phase).id))
        return str(texts.prompt)

    def run(self, number: int | RunId) -> WorkflowRun:
        run = self.read(lambda reader: found_run(reader, number))
        assert isinstance(run, WorkflowRun)
        return run

    def status(self, number: int | RunId) -> str:
        return self.run(number).status.value

    def nodes(self, number: int | RunId) -> dict[str, str]:
        return dict(self.read(lambda reader: nodes(reader, number)))

    def select(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What another program reads."""
        connection = apsw.Connection(str(self.directory.database))
        try:
            return list(connection.execute(statement, values))
        finally:
            connection.close()

    def at_once(self, *changes: Change) -> list[Answer]:
        """Carry out every change by a store of its own, all at the same time."""
        answers: dict[int, Answer] = {}

        async def apply(place: int, change: Change) -> None:
            store = SqliteStore(self.directory.root, FakeClock())
            try:
                (answers[place],) = await store.apply([change])
            finally:
                await store.close()

        async def main() -> None:
            async with anyio.create_task_group() as tasks:
                for place, change in enumerate(changes):
                    tasks.start_soon(apply, place, change)

        anyio.run(main)
        return [answers[place] for place in range(len(changes))]

    def killed(self, server: ForkServer, folder: Path, **order: str) -> list[Field]:
        """Copies of the field, in each of which a process was killed at another point of the same change."""
        found = []
        for point in KILLED_AT:
            copy = folder / point
            shutil.copytree(self.directory.root, copy / ".nightherd")
            state = str(copy / ".nightherd")
            ended = server.run(APPLY, {"state": state, "point": point, **order})
            assert ended.status == -signal.SIGKILL, ended
            found.append(Field(copy))
        return found


class Farm(RunHerd):
    """A fleet with workflows; its worker is in this process."""

    def __init__(self, folder: Path, fleet: str = FLEET, **workflows: str) -> None:
        super().__init__(folder, workflows, fleet)

    def work(self, count: int = 1) -> None:
        """Do everything there is to do."""

        async def main() -> None:
            fleet = self.fleet()
            async with open_worker(self.state, fleet, os.environ) as context:
                loop = make_worker_loop(fleet, context, REPORTS, leaves_when_idle=True)
                await loop.work()

        anyio.run(main)


REPORTS = WorkerReports(
    on_start=lambda job: None,
    on_event=lambda job, event: None,
    on_end=lambda job: None,
    on_rescue=lambda job: None,
    on_trouble=lambda text: None,
)
