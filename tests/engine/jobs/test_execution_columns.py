"""Every column of an execution's row that a runtime can know is filled."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from engine.bench import Bench
from engine.yard import Yard
from nightherd.engine.jobs.abandoned import ending_of
from nightherd.engine.workers.rescue import rescue
from nightherd.model.ids import WorkerId
from nightherd.model.jobs.job import Execution, ExecutionStatus, ExitReason
from nightherd.model.jobs.overrides import issue_of_payload
from nightherd.model.journal.event import AssistantEvent, describe
from nightherd.model.journal.system import Complete, HookRan, Init
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage
from nightherd.testing.runtime import PlayedRuntime

NOT_THE_RUNTIMES = {"issue_number", "workflow_run_id", "output_text", "error"}
"""What only a trigger or a workflow knows, and what only a failure has."""


def test_everything_a_runtime_says_is_in_its_executions_row() -> None:
    used = Usage(
        input_tokens=5,
        output_tokens=4,
        cache_creation_input_tokens=3,
        cache_read_input_tokens=2,
        cost_microusd=MicroUsd(7),
    )
    bench = Bench(
        PlayedRuntime(
            [
                describe(Init(runtime="scripted", runtime_session_id="uuid-1")),
                AssistantEvent(content="done", turn=1, index=0, end=True, usage=used),
                describe(Complete(stop_reason="end_turn", api_duration_ms=1234)),
            ]
        )
    )

    (execution,) = bench.reader.list_executions(bench.run().id)

    empty = {name for name in Execution.__struct_fields__ if getattr(execution, name) in (None, 0)}
    assert empty == NOT_THE_RUNTIMES
    assert (execution.api_duration_ms, execution.stop_reason) == (1234, "end_turn")
    assert execution.trigger_type == "api"


def test_time_of_an_earlier_executions_requests_is_not_a_later_ones() -> None:
    ran = HookRan(name="tell", id="after_run[0]", event="completed")
    events = [describe(Complete(stop_reason="end_turn", api_duration_ms=1234)), describe(ran)]

    ending = ending_of(events)

    assert ending is not None
    assert (ending.exit_reason, ending.api_duration_ms) == (ExitReason.SUCCESS, None)


def test_execution_that_is_lost_says_nothing_of_their_requests() -> None:
    yard = Yard()
    lost = yard.taken(WorkerId("worker-goneaaaa"))
    anyio.run(rescue, yard.record, yard.terms)

    (execution,) = yard.bench.reader.list_executions(lost.id)

    assert (execution.status, execution.api_duration_ms) == (ExecutionStatus.LOST, None)


@pytest.mark.parametrize(
    ("inputs", "number"),
    [
        ({"issue": "42"}, 42),
        ({"issue": "#42"}, 42),
        ({"issue_number": 7, "issue": "the fence"}, 7),
        ({"issue": "the fence"}, None),
        ({"issue": True}, None),
        ({"issue_number": 0}, None),
        ({"issue": "9" * 40}, None),
        ({}, None),
    ],
)
def test_the_issue_that_a_job_is_about_is_in_its_executions_row(
    inputs: dict[str, Any], number: int | None
) -> None:
    bench = Bench()

    (execution,) = bench.reader.list_executions(bench.run(inputs=inputs).id)

    assert execution.issue_number == number


@pytest.mark.parametrize(
    ("payload", "number"),
    [
        ({"issue": {"number": 5}}, 5),
        ({"pull_request": {"number": 6}}, 6),
        ({"issue": 5}, None),
        ([], None),
    ],
)
def test_a_payload_names_its_issue_or_pull_request(payload: Any, number: int | None) -> None:
    assert issue_of_payload(payload) == number
