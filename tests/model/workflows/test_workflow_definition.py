"""Definitions: pinned by the hash of their JSON, whole, and the values that go into them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from nightherd.errors import InvalidValueError
from nightherd.model.jobs.job import TriggerType
from nightherd.model.limits.limits import LimitName, Limits, OnLimit
from nightherd.model.schedules.rule import Cron, Interval
from nightherd.model.units import MicroUsd
from nightherd.model.workflows.definition import (
    AgentAction,
    Artifact,
    ArtifactKind,
    BlockAction,
    CommandAction,
    ForEach,
    GateAction,
    GateKind,
    Language,
    Loop,
    Messages,
    OnFailure,
    Phase,
    TriggerRule,
    UntilCommand,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
    canonical_json,
    chain,
    definition_hash,
    every_phase,
    read_definition,
)
from nightherd.model.workflows.node import NODE_LIFECYCLE, NodeKey, NodeStatus
from nightherd.model.workflows.run import (
    RUN_LIFECYCLE,
    RunStatus,
    generate_run_id,
    parse_run_id,
)
from nightherd.model.workflows.triggers import (
    Concurrency,
    InputSpec,
    InputType,
    MessageTrigger,
    RunTrigger,
    Triggers,
    WhenBusy,
    WorkflowSchedule,
    complete_inputs,
    trigger_values,
)

SCHEMA = {"type": "object", "properties": {"approved": {"type": "boolean"}}}


def agent(name: str, **more: Any) -> Phase:
    return Phase(name=name, action=AgentAction(agent="coder", prompt="go", output=SCHEMA), **more)


EVERYTHING = WorkflowDefinition(
    name="everything",
    description="all of it",
    inputs={"n": InputSpec(type=InputType.NUMBER, default=3), "t": InputSpec(required=True)},
    limits=Limits(
        spend=MicroUsd(5), duration=timedelta(hours=1), outcomes={LimitName.SPEND: OnLimit.FAIL}
    ),
    concurrency=Concurrency(max_runs=2, key="${inputs.t}", when_busy=WhenBusy.REPLACE),
    triggers=Triggers(
        schedules={"nightly": WorkflowSchedule(cron="0 3 * * *", inputs={"t": "x"})},
        webhooks={"github": MessageTrigger(inputs={"t": "${trigger.payload.title}"})},
        chat=MessageTrigger(),
        api=False,
    ),
    phases=(
        agent("a", retries=2, timeout=timedelta(minutes=5), messages=Messages(on_start="hi")),
        Phase(
            name="b",
            depends_on=("a",),
            trigger_rule=TriggerRule.ALL_DONE,
            when="inputs.n > 1",
            on_failure=OnFailure.CONTINUE,
            for_each=ForEach(items="inputs.list", max_parallel=3),
            loop=Loop(max_iterations=3, until="true", until_command=UntilCommand(command="make")),
            action=BlockAction(
                phases=(
                    Phase(
                        name="c",
                        untrusted=True,
                        action=CommandAction(
                            language=Language.PYTHON, command="print(1)", env={"T": "${item}"}
                        ),
                    ),
                    Phase(name="d", action=WaitAction(duration="1h")),
                )
            ),
        ),
        Phase(
            name="e",
            action=GateAction(
                gate=GateKind.REPLY,
                summary="ok?",
                artifact=Artifact(kind=ArtifactKind.OUTPUT, phase="a"),
                expires=timedelta(days=1),
                remind=(timedelta(hours=1),),
            ),
        ),
        Phase(
            name="f",
            action=WorkflowAction(
                workflow="other",
                inputs={"x": ["${inputs.t}", 1]},
                definition=WorkflowDefinition(name="other", phases=(agent("g"),)),
            ),
        ),
    ),
)


def test_a_definition_is_read_back_from_its_json_whole() -> None:
    assert read_definition(canonical_json(EVERYTHING)) == EVERYTHING


def test_the_hash_names_the_content_and_not_the_order_of_mappings() -> None:
    turned = replace(EVERYTHING, inputs=dict(reversed(list(EVERYTHING.inputs.items()))))
    changed = replace(EVERYTHING, phases=EVERYTHING.phases[:-1])

    assert definition_hash(turned) == definition_hash(EVERYTHING)
    assert definition_hash(changed) != definition_hash(EVERYTHING)
    assert definition_hash(read_definition(canonical_json(EVERYTHING))) == definition_hash(
        EVERYTHING
    )


def test_a_default_is_written_out_so_that_it_cannot_change_under_a_run() -> None:
    assert b'"on_failure":"fail"' in canonical_json(EVERYTHING)
    assert b'"max_parallel":3' in canonical_json(EVERYTHING)


def test_a_chain_depends_each_on_the_phase_before() -> None:
    linked = chain((agent("a"), agent("b"), agent("c")))

    assert [phase.depends_on for phase in linked] == [(), ("a",), ("b",)]
    assert chain(()) == ()


def test_every_phase_is_listed_with_those_inside_blocks() -> None:
    assert [phase.name for phase in every_phase(EVERYTHING.phases)] == list("abcdef")


def test_a_schedule_is_due_by_its_interval_or_its_expression() -> None:
    assert WorkflowSchedule(interval=timedelta(hours=1)).rule == Interval(every=timedelta(hours=1))
    assert WorkflowSchedule(cron="@daily", timezone="Europe/Berlin").rule == Cron(
        expression="@daily", timezone="Europe/Berlin"
    )


@pytest.mark.parametrize(
    ("given", "values", "problems"),
    [
        ({"t": "x"}, {"n": 3, "t": "x", "o": None}, []),
        ({"t": "x", "n": 4.5, "o": {"a": 1}}, {"n": 4.5, "t": "x", "o": {"a": 1}}, []),
        ({"t": "x", "n": None}, {"n": 3, "t": "x", "o": None}, []),
        ({}, {"n": 3, "t": None, "o": None}, ["the input 't' is required"]),
        ({"t": None}, {"n": 3, "t": None, "o": None}, ["the input 't' is required"]),
        ({"t": 1}, {"n": 3, "t": 1, "o": None}, ["the input 't': expected a text, got a number"]),
        (
            {"t": "x", "n": True, "o": []},
            {"n": True, "t": "x", "o": []},
            [
                "the input 'n': expected a number, got true",
                "the input 'o': expected an object, got a list",
            ],
        ),
        (
            {"t": "x", "z": 1},
            {"n": 3, "t": "x", "o": None},
            ["there is no input 'z'; declared: n, t, o"],
        ),
    ],
)
def test_inputs_are_complete_and_of_their_types(
    given: dict[str, Any], values: dict[str, Any], problems: list[str]
) -> None:
    specs = {
        "n": InputSpec(type=InputType.NUMBER, default=3),
        "t": InputSpec(required=True),
        "o": InputSpec(type=InputType.OBJECT),
    }

    found, wrong = complete_inputs(specs, given)

    assert found == values
    assert [problem.message for problem in wrong] == problems


def test_inputs_of_webhooks_and_chats_are_untrusted_and_a_parent_says_which_of_its_own() -> None:
    assert RunTrigger(type=TriggerType.WEBHOOK).is_untrusted("x")
    assert RunTrigger(type=TriggerType.SLACK).is_untrusted("x")
    assert not RunTrigger(type=TriggerType.SCHEDULE).is_untrusted("x")
    spawned = RunTrigger(type=TriggerType.SPAWNED, untrusted_inputs=frozenset({"x"}))
    assert spawned.is_untrusted("x")
    assert not spawned.is_untrusted("y")


def test_expressions_see_the_trigger_as_plain_values() -> None:
    values = trigger_values(RunTrigger(type=TriggerType.WEBHOOK, id="d1", payload={"a": 1}))

    assert values["type"] == "webhook"
    assert values["payload"] == {"a": 1}
    assert set(values) == {"type", "id", "actor", "repo", "issue_number", "channel", "payload"}


@pytest.mark.parametrize(
    ("key", "text", "inside"),
    [
        (NodeKey("a"), "a", "a/"),
        (NodeKey("a", attempt=2), "a (attempt 2)", "a/"),
        (NodeKey("a", iteration=2), "a[2]", "a[2]/"),
        (NodeKey("a", item=0), "a[0]", "a[0]/"),
        (NodeKey("b[1]/a", item=0, iteration=3), "b[1]/a[0][3]", "b[1]/a[0][3]/"),
    ],
)
def test_a_key_names_its_node_and_the_paths_inside_it(key: NodeKey, text: str, inside: str) -> None:
    assert str(key) == text
    assert key.inside == inside


def test_a_run_id_has_the_date_of_its_start() -> None:
    run_id = generate_run_id(datetime(2026, 3, 1, tzinfo=UTC), lambda size: "a" * size)

    assert run_id == "run-2026-03-01-aaaaaa"
    assert parse_run_id(run_id) == run_id
    with pytest.raises(InvalidValueError, match="is not a run id"):
        parse_run_id("job-2026-03-01-aaaaaa")


def test_what_has_ended_stays_as_it_is() -> None:
    ended = {status for status in NodeStatus if NODE_LIFECYCLE.is_terminal(status)}

    assert ended == {"succeeded", "failed", "skipped", "cancelled"}
    assert {status.value for status in RUN_LIFECYCLE.terminal} == {
        "succeeded",
        "failed",
        "cancelled",
    }
    assert RUN_LIFECYCLE.allows(RunStatus.PAUSED, RunStatus.RUNNING)


def test_input_that_cannot_be_stored_is_a_problem() -> None:
    specs = {"l": InputSpec(type=InputType.LIST), "t": InputSpec()}

    _, wrong = complete_inputs(specs, {"l": [float("inf")], "t": "\ud800"})

    assert [one.message for one in wrong] == [
        "the input 'l' cannot be stored: JSON has no inf",
        "the input 't' cannot be stored: it has a text with half of a character",
    ]
