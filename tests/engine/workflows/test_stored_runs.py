"""Random runs on a real store come to what the reference interpreter says, whoever writes and whatever is lost."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.workflows.stored_run import StoredRun, plain
from model.workflows.random_workflows import INPUTS, RandomWorkflow, random_workflows
from model.workflows.reference_run import Key, Reference
from nightherd.model.change import Applied
from nightherd.model.workflows.conductor.beginnings import JSON_ONLY
from nightherd.model.workflows.conductor.changes import AdvanceRun, CancelRun
from nightherd.model.workflows.node import NodeKind
from nightherd.model.workflows.run import RunStatus
from nightherd.state.directory import StateDirectory, init_state_directory
from soak import often
from state.stores import contents, replayed

EXAMPLES = settings(
    max_examples=often(20, soak=2_000),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MEMORY = Path("/dev/shm")


@contextmanager
def quick_directory() -> Iterator[StateDirectory]:
    """A state directory in memory, where the machine has one."""
    root = tempfile.mkdtemp(prefix="nightherd-test-", dir=MEMORY if MEMORY.is_dir() else None)
    try:
        yield init_state_directory(Path(root) / ".nightherd")
    finally:
        shutil.rmtree(root)


def reference_of(run: StoredRun) -> tuple[Reference, str]:
    workflow = run.workflow
    reference = Reference(
        outcomes=run.fate,
        inputs=INPUTS,
        meanings=workflow.meanings,
        certain=workflow.certain,
    )
    return reference, reference.workflow(workflow.definition.phases)


def prompts_of(run: StoredRun) -> dict[Key, str]:
    """What the agents of the run's own phases were told, without what every answer has to look like."""
    found: dict[Key, str] = {}
    for node in run.reader.nodes_of_run(run.id):
        if node.kind is NodeKind.JOB and node.job_id is not None:
            texts = run.reader.find_texts(node.job_id)
            assert texts is not None
            prompt, mark, _ = texts.prompt.partition(f"\n\n{JSON_ONLY}")
            assert mark
            found[plain(node.key)] = prompt
    return found


def check_nothing_is_left(run: StoredRun, directory: StateDirectory) -> None:
    """Nothing of the run waits any more, every job was brought to its end once, and the ledger says the same."""
    assert all(node.has_ended for node in run.reader.nodes_of_run(run.id))
    jobs = run.jobs()
    assert all(job.is_terminal for job in jobs)
    assert len({job.node_id for job in jobs}) == len(jobs)
    assert all(count == 1 for count in run.ended.values())
    gates = [item for item in run.reader.items_of_run(run.id) if item.node_id is not None]
    assert not any(item.is_pending for item in gates)
    assert replayed(directory, directory.root / "again.db") == contents(directory.database)


@EXAMPLES
@given(random_workflows(), st.integers(0, 1_000_000))
def test_stored_run_comes_to_what_the_reference_says(workflow: RandomWorkflow, seed: int) -> None:
    async def main(directory: StateDirectory) -> None:
        run = StoredRun(directory.root, workflow, Random(seed))
        reference, status = reference_of(run)
        try:
            await run.start()
            await run.to_the_end()
            assert run.statuses() == reference.nodes
            assert run.run.status.value == status, run.run.error
            prompts = {key: text for key, text in reference.prompts.items() if text}
            assert {key: text for key, text in prompts_of(run).items() if text} == prompts
            check_nothing_is_left(run, directory)
        finally:
            await run.close()

    with quick_directory() as directory:
        anyio.run(main, directory)


@EXAMPLES
@given(random_workflows(), st.integers(0, 1_000_000), st.integers(0, 5))
def test_cancelled_run_begins_nothing_more_and_ends(
    workflow: RandomWorkflow, seed: int, steps: int
) -> None:
    async def main(directory: StateDirectory) -> None:
        run = StoredRun(directory.root, workflow, Random(seed))
        try:
            await run.start()
            for _ in range(steps):
                waiting = run.open_nodes()
                if run.run.is_terminal or not waiting:
                    return
                await run.end(run.random.choice(waiting))
            if run.run.is_terminal:
                return
            before = {node.id for node in run.reader.nodes_of_run(run.id)}
            cancel = CancelRun(run_id=run.id, at=run.now(), reason="enough")
            await run.must(cancel)
            await run.apply(cancel)
            # No job has a worker: everything can end at once.
            assert run.run.status is RunStatus.CANCELLED
            assert run.run.error == "enough"
            assert {node.id for node in run.reader.nodes_of_run(run.id)} == before
            check_nothing_is_left(run, directory)
            (answer,) = await run.apply(AdvanceRun(run_id=run.id, at=run.now()))
            assert isinstance(answer, Applied)
            assert answer.rows == ()
        finally:
            await run.close()

    with quick_directory() as directory:
        anyio.run(main, directory)
