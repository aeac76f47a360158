"""Workflows for programs: runs are started, waited for, answered, retried, forked, signalled and limited."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd import Cancel, InvalidInputsError, RunQuery, open_fleet
from nightherd.errors import InvalidValueError, NotFoundError, RefusedError, UsageError
from nightherd.model.workflows.run import RunStatus
from workflow_fleet import WORKFLOW_FLEET

ENVIRON = {"PATH": os.environ["PATH"]}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "nightherd.yaml"
    file.write_text(WORKFLOW_FLEET)
    return file


def test_a_run_is_worked_on_until_it_waits_and_after_the_answer_to_its_end(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            waiting = await fleet.run_workflow("build", inputs={"title": "cows"})
            ((node, wait),) = waiting.waits
            assert wait.item_id is not None
            await fleet.inbox.approve(wait.item_id, input={"artifact": "Edited."})
            done = await fleet.wait_for_run(waiting.run.id)
            output = fleet.run_output(done.run.id, "publish")

        assert waiting.run.status is RunStatus.PAUSED
        assert node.path == "ask"
        assert waiting.inputs == {"title": "cows", "count": 2}
        assert done.run.status is RunStatus.SUCCEEDED
        assert [view.status for view in done.nodes] == ["succeeded"] * 3
        assert output == "Edited."

    anyio.run(main)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}])
def test_a_value_that_json_does_not_have_is_refused_everywhere(config: Path, value: Any) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            run = (await fleet.run_workflow("waiting")).run.id
            with pytest.raises(UsageError, match=r"the payload cannot be stored: "):
                await fleet.signal_run(run, "deployed", payload=[value])
            with pytest.raises(UsageError, match=r"the scratch cannot be stored: "):
                await fleet.set_scratch(run, {"deep": {"er": value}})
            with pytest.raises(InvalidInputsError, match=r"'count' cannot be stored: "):
                await fleet.run_workflow("build", inputs={"title": "x", "count": value})
            assert fleet.run(run).scratch == {}

    anyio.run(main)


def test_a_limit_that_does_not_exist_is_refused_with_those_that_do(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            run = (await fleet.run_workflow("waiting")).run.id
            with pytest.raises(InvalidValueError, match="no limit 'spent'; the limits are spend"):
                await fleet.raise_run_limits(run, {"spent": "1"})

    anyio.run(main)


def test_without_waiting_a_run_is_recorded_once_for_a_key_and_left_to_a_worker(
    config: Path,
) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            first = await fleet.run_workflow("quick", wait=False, dedupe_key="k")
            again = await fleet.run_workflow("quick", wait=False, dedupe_key="k")
            with pytest.raises(RefusedError, match="same key and other inputs"):
                await fleet.run_workflow(
                    "quick", inputs={"word": "pig"}, wait=False, dedupe_key="k"
                )
        async with open_fleet(config, environ=ENVIRON) as fleet:
            done = await fleet.wait_for_run("@last")
            runs = fleet.runs(RunQuery(workflow="quick"))

        assert first.run.status is RunStatus.RUNNING
        assert again.run.id == first.run.id == done.run.id
        assert done.run.status is RunStatus.SUCCEEDED
        assert [run.id for run in runs] == [first.run.id]

    anyio.run(main)


def test_wrong_inputs_and_workflows_that_are_off_or_unknown_are_refused(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            with pytest.raises(InvalidInputsError, match="the input 'title' is required"):
                await fleet.run_workflow("build")
            with pytest.raises(NotFoundError, match="no workflow 'nothing'"):
                await fleet.run_workflow("nothing")
            await fleet.set_workflow("quick", enabled=False)
            with pytest.raises(RefusedError, match="switched off"):
                await fleet.run_workflow("quick")
            off = {one.name: one.is_enabled for one in fleet.workflows()}
            await fleet.set_workflow("quick", enabled=None)
            on = {one.name: one for one in fleet.workflows()}

            assert list(fleet.runs()) == []
        assert [name for name, is_enabled in off.items() if not is_enabled] == ["quick"]
        assert on["quick"].is_enabled
        assert on["quick"].switched_by is None
        assert list(on["build"].definition.inputs) == ["title", "count"]

    anyio.run(main)


def test_an_ended_run_is_retried_and_forked(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            failed = await fleet.run_workflow("failing")
            retried = await fleet.wait_for_run((await fleet.retry_run("@last-failed")).id)
            quick = await fleet.run_workflow("quick")
            fork = await fleet.fork_run(quick.run.id, at="first", inputs={"word": "pig"})
            forked = await fleet.wait_for_run(fork.id)
            output = fleet.run_output(fork.id, "first")

        assert failed.run.status is RunStatus.FAILED
        assert retried.run.retried_from == failed.run.id
        kept = [view.node.kept_from for view in retried.nodes if view.node is not None]
        assert kept == [failed.run.id, None]
        assert forked.run.forked_from == quick.run.id
        assert output == "Wrote pig."

    anyio.run(main)


def test_an_event_scratch_and_limits_reach_a_run(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            run_id = (await fleet.run_workflow("waiting")).run.id
            scratch = await fleet.set_scratch(run_id, {"a": 1, "b": 2})
            scratch = await fleet.set_scratch(run_id, {"a": None})
            raised = await fleet.raise_run_limits(run_id, {"spend": "5"})
            await fleet.signal_run(run_id, "deployed", payload={"version": "2.1"}, key="once")
            await fleet.signal_run(run_id, "deployed", payload={"version": "9"}, key="once")
            done = await fleet.wait_for_run(run_id)
            output = fleet.run_output(run_id, "after")

        assert scratch == {"b": 2} == done.scratch
        assert raised.limits == {"spend": 5_000_000}
        assert output == "2.1"

    anyio.run(main)


def test_a_run_is_cancelled_by_name_and_by_the_one_who_waits(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            waiting = await fleet.run_workflow("single")
            cancelled = await fleet.cancel_run(waiting.run.id)
            with pytest.raises(RefusedError, match="was cancelled"):
                await fleet.cancel_run(waiting.run.id)
            stop = Cancel()
            stop()
            stopped = await fleet.run_workflow("quick", cancel=stop)

        assert cancelled.status is RunStatus.CANCELLED
        assert stopped.run.status is RunStatus.CANCELLED

    anyio.run(main)


def test_the_suspended_jobs_of_a_run_are_resumed(config: Path) -> None:
    async def main() -> None:
        async with open_fleet(config, environ=ENVIRON) as fleet:
            capped = await fleet.run_workflow("capped")
            resumed = await fleet.resume_run(capped.run.id)
            with pytest.raises(RefusedError, match="none of its jobs is suspended"):
                await fleet.resume_run(capped.run.id)

        assert capped.run.status is RunStatus.PAUSED
        assert len(resumed.jobs) == 1
        assert resumed.run.status is RunStatus.RUNNING

    anyio.run(main)


def test_several_runs_are_waited_for_at_the_same_time(config: Path) -> None:
    async def main() -> None:
        ended: list[RunStatus] = []
        async with open_fleet(config, environ=ENVIRON) as fleet:

            async def run(workflow: str) -> None:
                ended.append((await fleet.run_workflow(workflow)).run.status)

            async with anyio.create_task_group() as tasks:
                for workflow in ("quick", "wide", "quick"):
                    tasks.start_soon(run, workflow)

        assert ended == [RunStatus.SUCCEEDED] * 3

    anyio.run(main)
