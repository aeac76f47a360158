"""Random runs that are retried or forked: what is kept is not done again, and the rest comes to what the reference says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import anyio
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.workflows.stored_run import Fate, StoredRun, plain, runnable
from engine.workflows.test_stored_runs import (
    check_nothing_is_left,
    prompts_of,
    quick_directory,
    reference_of,
)
from model.workflows.random_workflows import INPUTS, RandomWorkflow, random_workflows
from model.workflows.reference_run import Key, Outcome
from nightherd.model.workflows.conductor.changes import CancelRun
from nightherd.model.workflows.conductor.keeping import kept_nodes
from nightherd.model.workflows.rows import WorkflowNode
from nightherd.state.directory import StateDirectory
from nightherd.testing.run_values import run_id, start_run
from soak import often

EXAMPLES = settings(
    max_examples=often(20, soak=2_000),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True)
class LaterFate(Fate):
    """What is kept stays as it was; everything else has another fate."""

    first: Fate
    kept: frozenset[Key]

    def __call__(self, key: Key) -> Outcome:
        return self.first(key) if key in self.kept else super().__call__(key)


async def start_again(run: StoredRun, earlier: StoredRun, without: str | None) -> None:
    """Start `run`, which keeps what `earlier` has done."""
    definition = runnable(run.workflow.definition)
    before = earlier.reader.nodes_of_run(earlier.id)
    found = {node.id: earlier.reader.find_node_texts(node.id) for node in before}
    texts = {key: value for key, value in found.items() if value is not None}
    kept, kept_texts = kept_nodes(run.id, definition, before, texts, run.now(), without=without)
    run.fate = LaterFate(run.workflow, earlier.fate, keys_of(kept))
    change = start_run(run.number, definition, inputs=INPUTS)
    await run.must(msgspec.structs.replace(change, kept=kept, kept_texts=kept_texts))


def keys_of(nodes: tuple[WorkflowNode, ...]) -> frozenset[Key]:
    return frozenset(plain(node.key) for node in nodes if node.has_ended)


@EXAMPLES
@given(random_workflows(), st.integers(0, 1_000_000), st.integers(0, 1_000_000), st.booleans())
def test_later_run_does_what_is_not_done_and_nothing_else(
    workflow: RandomWorkflow, seed: int, other: int, is_fork: bool
) -> None:
    async def main(directory: StateDirectory) -> None:
        random = Random(seed)
        first = StoredRun(directory.root, workflow, random)
        second = StoredRun(directory.root, replace(workflow, seed=other), random, number=2)
        without = random.choice(workflow.definition.phases).name if is_fork else None
        try:
            await first.start()
            await first.to_the_end()
            before = first.statuses()
            done = {job.id for job in first.jobs()}
            await start_again(second, first, without)
            assert isinstance(second.fate, LaterFate)
            await second.to_the_end()

            reference, status = reference_of(second)
            assert second.statuses() == reference.nodes, second.run.error
            assert second.run.status.value == status
            kept = second.fate.kept
            assert all(before[key] == reference.nodes[key] for key in kept)
            again = {
                str(job.node_id).removeprefix(f"{run_id(2)}/")
                for job in second.jobs()
                if job.workflow_run_id == run_id(2)
            }
            assert not again & {name_of(key) for key in kept}
            assert not done & {job.id for job in second.jobs()}
            prompts = {key: text for key, text in reference.prompts.items() if text}
            assert {key: text for key, text in prompts_of(second).items() if text} == prompts
            assert first.statuses() == before
            check_nothing_is_left(second, directory)
        finally:
            await first.close()
            await second.close()

    with quick_directory() as directory:
        anyio.run(main, directory)


@EXAMPLES
@given(random_workflows(), st.integers(0, 1_000_000), st.integers(0, 1_000_000), st.integers(0, 12))
def test_run_after_a_cancelled_one_does_what_is_not_done_and_nothing_else(
    workflow: RandomWorkflow, seed: int, other: int, steps: int
) -> None:
    async def main(directory: StateDirectory) -> None:
        random = Random(seed)
        first = StoredRun(directory.root, workflow, random)
        second = StoredRun(directory.root, replace(workflow, seed=other), random, number=2)
        try:
            await first.start()
            for _ in range(steps):
                if first.run.is_terminal or not (waiting := first.open_nodes()):
                    break
                await first.end(random.choice(waiting))
            if not first.run.is_terminal:
                await first.must(CancelRun(run_id=first.id, at=first.now(), reason="enough"))
            await start_again(second, first, None)
            assert isinstance(second.fate, LaterFate)
            await second.to_the_end()

            reference, status = reference_of(second)
            assert second.statuses() == reference.nodes, second.run.error
            assert second.run.status.value == status
            check_nothing_is_left(second, directory)
        finally:
            await first.close()
            await second.close()

    with quick_directory() as directory:
        anyio.run(main, directory)


def name_of(key: Key) -> str:
    path, iteration, item, attempt = key
    brackets = (f"[{item}]" if item >= 0 else "") + (f"[{iteration}]" if iteration else "")
    return f"{path}{brackets}" + (f"#{attempt}" if attempt > 1 else "")
