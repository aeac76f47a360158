"""A run on a real store, driven by a table of outcomes: workers come and go, people answer, time passes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from model.workflows.random_workflows import INPUTS, RandomWorkflow
from model.workflows.reference_run import Key, Outcome
from nightherd.model.agents.agent import Durability
from nightherd.model.change import Answer, Applied, Change, Refused, Why
from nightherd.model.ids import WorkerId
from nightherd.model.inbox.changes import AnswerItem, WithdrawItem
from nightherd.model.inbox.item import Verdict
from nightherd.model.jobs.changes import (
    CancelJob,
    LoseExecution,
    SettleExecution,
    StartExecution,
)
from nightherd.model.jobs.job import ExitReason, Job, JobStatus
from nightherd.model.jobs.outcome import Outcome as Ending
from nightherd.model.usage import Totals
from nightherd.model.workflows.conductor.changes import AdvanceRun
from nightherd.model.workflows.definition import (
    AgentAction,
    BlockAction,
    GateAction,
    Phase,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.instance import locate
from nightherd.model.workflows.node import NodeKey, NodeKind
from nightherd.model.workflows.rows import WorkflowNode, WorkflowRun
from nightherd.model.workflows.run import RunId
from nightherd.ports import Probe, no_probe
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import FakeClock
from nightherd.testing.run_values import run_id, start_run
from nightherd.testing.state_values import BEGINNING

OTHER = WorkflowDefinition(
    name="other", phases=(Phase(name="work", action=AgentAction(agent="b", prompt="go")),)
)
NOTHING = Totals()
GOOD = Ending(exit_reason=ExitReason.SUCCESS)
BAD = Ending(exit_reason=ExitReason.ERROR, error="bad luck", error_code="luck")
STOPPED = Ending(exit_reason=ExitReason.CANCELLED, error="stopped", error_code="cancelled")
DEAD = (WorkerId("worker-00000001"), WorkerId("worker-00000002"))


def runnable(definition: WorkflowDefinition) -> WorkflowDefinition:
    """The workflow with what its sub-workflows run."""
    return replace(definition, phases=tuple(map(_runnable, definition.phases)))


def _runnable(phase: Phase) -> Phase:
    match phase.action:
        case BlockAction(phases=inner):
            return replace(phase, action=BlockAction(phases=tuple(map(_runnable, inner))))
        case WorkflowAction() as action:
            return replace(phase, action=replace(action, definition=OTHER))
        case _:
            return phase


@dataclass(frozen=True)
class Fate:
    """What becomes of each node, as far as what it is allows: the same for a store and for the reference."""

    workflow: RandomWorkflow

    def __call__(self, key: Key) -> Outcome:
        outcome = self.workflow.outcome(key)
        if key[0].endswith(":until"):
            return outcome
        action = locate(self.workflow.definition.phases, NodeKey(*key)).phase.action
        is_ended = outcome.status != "cancelled"
        match action:
            case WaitAction():
                return Outcome("succeeded")
            case GateAction():
                is_good = outcome.status == "succeeded"
                said = {"approved": is_good, "artifact": None, "by": "ada", "comment": None}
                return Outcome(outcome.status, said if is_ended else None, is_final=not is_good)
            case WorkflowAction():
                text = None if outcome.output is None else json.dumps(outcome.output)
                return Outcome(outcome.status, {"work": text} if is_ended else None)
            case _:
                return Outcome(outcome.status, outcome.output)


@dataclass
class StoredRun:
    """One run in a state directory; any number of stores write to it."""

    root: Path
    workflow: RandomWorkflow
    random: Random
    probe: Probe = no_probe
    say: Callable[[str], None] = lambda word: None
    """Told of every job that came to its end."""
    number: int = 1
    stores: list[SqliteStore] = field(default_factory=list)
    at: datetime = BEGINNING
    ended: dict[str, int] = field(default_factory=dict)
    """How often a job of each node came to its end."""

    def __post_init__(self) -> None:
        self.fate = Fate(self.workflow)
        self.reader = SqliteReader(self.root)
        self.stores = [self._open(), self._open()]

    def _open(self) -> SqliteStore:
        return SqliteStore(
            self.root, FakeClock(), self.probe, outbox_limit=4, durability=Durability.PROCESS
        )

    async def close(self) -> None:
        self.reader.close()
        for store in self.stores:
            await store.close()

    async def apply(self, *changes: Change) -> Sequence[Answer]:
        """Carry out changes by one of the stores, whichever."""
        return await self.random.choice(self.stores).apply(changes)

    async def must(self, *changes: Change) -> None:
        answers = await self.apply(*changes)
        assert all(isinstance(one, Applied) for one in answers), answers

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # -- what there is

    @property
    def id(self) -> RunId:
        return run_id(self.number)

    @property
    def run(self) -> WorkflowRun:
        run = self.reader.find_run(self.id)
        assert run is not None
        return run

    def open_nodes(self) -> list[WorkflowNode]:
        """What a worker, a person or time can end."""
        nodes = self.reader.nodes_of_run(self.id)
        return [node for node in nodes if not node.has_ended and node.kind is not NodeKind.GROUP]

    def statuses(self) -> dict[Key, str]:
        return {
            plain(node.key): node.status.value if node.cause is None else f"skipped: {node.cause}"
            for node in self.reader.nodes_of_run(self.id)
        }

    def jobs(self) -> list[Job]:
        """Every job of the run and of runs below it."""
        runs = [self.id, *(one.id for one in self.reader.runs_of_parent(self.id))]
        return [job for run in runs for job in self.reader.jobs_of_run(run)]

    # -- what happens

    async def start(self) -> None:
        if self.reader.find_run(self.id) is not None:
            return  # an earlier process did
        change = start_run(self.number, runnable(self.workflow.definition), inputs=INPUTS)
        await self.must(change)

    async def to_the_end(self) -> None:
        while not self.run.is_terminal:
            waiting = self.open_nodes()
            assert waiting, "a run that has not ended waits for something"
            for node in self.random.sample(waiting, min(len(waiting), 2)):
                await self.end(node)
                await self.disturb()

    async def disturb(self) -> None:
        """A store is opened anew, somebody looks again, or time is looked at."""
        if self.chance(0.1):
            place = self.random.randrange(len(self.stores))
            await self.stores[place].close()
            self.stores[place] = self._open()
        if self.chance(0.2):
            await self.must(AdvanceRun(run_id=self.id, at=self.now()))

    async def end(self, node: WorkflowNode) -> None:
        """What the node waits for comes to its end; twice is as good as once."""
        match node.kind:
            case NodeKind.GATE:
                await self.decide(node)
            case NodeKind.WAIT:
                self.at += timedelta(hours=2)
                for due in self.reader.runs_to_advance(self.at, 50):
                    await self.must(AdvanceRun(run_id=due, at=self.now()))
            case NodeKind.CHILD:
                assert node.child_run_id is not None
                for inner in self.reader.jobs_of_run(node.child_run_id):
                    await self.work(inner, self.fate(plain(node.key)), text_of_child)
            case _:
                job = self.reader.find_job(node.job_id) if node.job_id else None
                if job is not None:
                    await self.work(job, self.fate(plain(node.key)), text_of_job)

    async def decide(self, node: WorkflowNode) -> None:
        assert node.item_id is not None
        outcome = self.fate(plain(node.key))
        change: Change = WithdrawItem(item_id=node.item_id, at=self.now())
        if outcome.status != "cancelled":
            verdict = Verdict.APPROVE if outcome.status == "succeeded" else Verdict.REJECT
            change = AnswerItem(
                item_id=node.item_id, verdict=verdict, by="ada", via="test", at=self.now()
            )
        await self.apply(change)
        if self.chance(0.2):
            (again,) = await self.apply(change)
            assert isinstance(again, Refused)

    async def work(self, job: Job, outcome: Outcome, text: Any) -> None:
        """Workers come and go until one of them brings the job to its end."""
        if job.is_terminal:
            return
        is_waiting = job.status is JobStatus.PENDING
        if outcome.status == "cancelled" and is_waiting and self.chance(0.5):
            await self.must(CancelJob(job_id=job.id, at=self.now()))
            return
        epoch = job.epoch
        if job.status is JobStatus.RUNNING:
            await self.must(self.lost(job, epoch))  # an earlier process was killed in it
        while True:
            epoch += 1
            await self.must(
                StartExecution(job_id=job.id, worker=self.random.choice(DEAD), at=self.now())
            )
            if not self.chance(0.2):
                break
            await self.must(self.lost(job, epoch))
            late = self.settled(job, epoch, GOOD, "too late")
            (refused,) = await self.apply(late)
            assert isinstance(refused, Refused), "a lost execution settles nothing"
        change = self.settled(job, epoch, *text(self, outcome))
        await self.must(change)
        self.say(f"{job.node_id}")
        self.ended[job.node_id or ""] = self.ended.get(job.node_id or "", 0) + 1
        if self.chance(0.2):
            (again,) = await self.apply(change)
            assert isinstance(again, Refused)
            assert again.why in (Why.STATUS, Why.FENCED)

    def lost(self, job: Job, epoch: int) -> LoseExecution:
        return LoseExecution(
            job_id=job.id,
            epoch=epoch,
            at=self.now(),
            reason="its worker is gone",
            max_restarts=100,
            last_seq=1,
            total=NOTHING,
            own=NOTHING,
        )

    def settled(self, job: Job, epoch: int, ending: Ending, answer: str | None) -> SettleExecution:
        return SettleExecution(
            job_id=job.id,
            epoch=epoch,
            at=self.now(),
            outcome=ending,
            last_seq=2,
            total=NOTHING,
            own=NOTHING,
            answer=answer,
        )


def text_of_job(run: StoredRun, outcome: Outcome) -> tuple[Ending, str | None]:
    """How a job ends, and what it says."""
    said = None if outcome.output is None else json.dumps(outcome.output)
    if outcome.exit_code is not None and outcome.status == "succeeded":
        return replace(GOOD, stop_reason=f"exit_{outcome.exit_code}"), None
    if outcome.status == "succeeded":
        return GOOD, said
    if outcome.status == "cancelled":
        return STOPPED, None
    if said is None and outcome.exit_code is None and run.chance(0.5):
        return GOOD, "what it says is not JSON"
    return BAD, said


def text_of_child(run: StoredRun, outcome: Outcome) -> tuple[Ending, str | None]:
    """How the only job of a sub-workflow ends."""
    endings = {"succeeded": GOOD, "failed": BAD, "cancelled": STOPPED}
    said = outcome.output["work"] if outcome.output is not None else None
    return endings[outcome.status], said


def plain(key: NodeKey) -> Key:
    return (key.path, key.iteration, key.item, key.attempt)
