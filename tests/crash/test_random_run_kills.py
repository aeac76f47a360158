"""Random runs whose writers are killed at random points: they come to what the reference interpreter says."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.workflows.stored_run import StoredRun
from engine.workflows.test_stored_runs import check_nothing_is_left, reference_of
from model.workflows.random_workflows import RandomWorkflow, random_workflows
from nightherd.model.workflows.definition import canonical_json, read_definition
from nightherd.state.directory import init_state_directory
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.testing.fork_server import ForkServer
from soak import often

DRIVE = f"{__name__}:drive"
MEMORY = Path("/dev/shm")
MOST_KILLS = 6


def drive(order: dict[str, Any], say: Say) -> None:
    """Take the run on until it ends, or until this process is killed at the n-th point."""
    workflow = RandomWorkflow(
        definition=read_definition(order["definition"].encode()),
        meanings={},
        certain={},
        seed=order["seed"],
        failures=order["failures"],
    )

    async def work() -> None:
        probe = Ending(nth=order["nth"])
        root, random = Path(order["root"]), Random(order["nth"])
        run = StoredRun(root, workflow, random, probe=probe, say=say)
        await run.start()
        await run.to_the_end()
        await run.close()

    anyio.run(work)


@settings(
    max_examples=often(10, soak=600),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(random_workflows(), st.lists(st.integers(1, 120), min_size=1, max_size=MOST_KILLS))
def test_run_whose_writers_are_killed_comes_to_what_the_reference_says(
    fork_server: ForkServer, workflow: RandomWorkflow, lives: list[int]
) -> None:
    folder = Path(
        tempfile.mkdtemp(prefix="nightherd-test-", dir=MEMORY if MEMORY.is_dir() else None)
    )
    try:
        directory = init_state_directory(folder / ".nightherd")
        order = {
            "root": str(directory.root),
            "definition": canonical_json(workflow.definition).decode(),
            "seed": workflow.seed,
            "failures": workflow.failures,
        }
        said: Counter[str] = Counter()
        for nth in (*lives, 1_000_000):
            ended = fork_server.run(DRIVE, {**order, "nth": nth})
            assert ended.status in (0, -signal.SIGKILL), ended.error
            said.update(ended.said)
        run = StoredRun(directory.root, workflow, Random(0))
        reference, status = reference_of(run)
        assert run.statuses() == reference.nodes
        assert run.run.status.value == status
        # What was acknowledged as done was done once.
        assert set(said.values()) <= {1}
        # The last kill may have come between a commit and its line in the ledger.
        anyio.run(run.stores[0].catch_up)
        check_nothing_is_left(run, directory)
        anyio.run(run.close)
    finally:
        shutil.rmtree(folder)
