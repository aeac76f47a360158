"""Static checks: everything that is wrong with a definition is found before a run begins, at its place."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from model.workflows.workflow_values import (
    FILES,
    REVIEW,
    agent,
    bash,
    block,
    child,
    each,
    gate,
    loop,
    phase,
    wait,
    workflow,
)
from nightherd.model.problem import Severity
from nightherd.model.workflows.check import check_definition
from nightherd.model.workflows.definition import (
    Artifact,
    ArtifactKind,
    GateAction,
    Phase,
    TriggerRule,
    UntilCommand,
    WaitAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.triggers import (
    Concurrency,
    InputSpec,
    InputType,
    MessageTrigger,
    Triggers,
    WorkflowSchedule,
)

ALL_DONE, ONE_FAILED = TriggerRule.ALL_DONE, TriggerRule.ONE_FAILED
ONE_SUCCESS = TriggerRule.ONE_SUCCESS
MAY = "phase 'a' may not have ended when this is evaluated; add it to depends_on"


def errors(definition: WorkflowDefinition) -> list[tuple[str, str]]:
    """Each error as its path and its message."""
    return [
        (".".join(map(str, finding.path)), finding.message)
        for finding in check_definition(definition)
        if finding.severity is Severity.ERROR
    ]


def messages(*phases: Phase, **more: Any) -> list[str]:
    return [message for _, message in errors(workflow(*phases, **more))]


SOUND = workflow(
    bash("guard"),
    agent("plan", "Plan ${inputs.title}: ${trigger.payload.body}", "guard", output=FILES),
    gate("approve", "Go? ${phases.plan.output.files}", "plan"),
    agent(
        "work",
        "Do ${item} (${loop.iteration}): ${loop.previous}",
        "approve",
        for_each=each("phases.plan.output.files"),
        loop=loop("phases.work.output == 'done' or loop.iteration > 2"),
        when="phases.approve.output.approved",
    ),
    block(
        "polish",
        agent("review", "Look at ${phases.work.output[0]}", output=REVIEW),
        agent(
            "fix",
            "Fix ${phases.review.output.comments}${loop.previous.review.comments}",
            "review",
            when="not phases.review.output.approved and loop.iteration < 3",
        ),
        needs="work",
        loop=loop(
            "phases.review.output.approved",
            until_command=UntilCommand(command="make test", env={"N": "${loop.iteration}"}),
        ),
    ),
    bash(
        "push",
        "git push",
        "polish",
        env={"TITLE": "${inputs.title}", "RUN": "${run.id}"},
        stdin="${phases.polish.output.review.comments}",
        when="phases.polish.status == 'succeeded' and phases.guard.exit_code == 0",
    ),
    bash("recover", "true", "push", trigger_rule=ONE_FAILED, env={"E": "${phases.push.error}"}),
    wait("pause", "${inputs.pause}", "push recover", trigger_rule=ALL_DONE),
    inputs={"title": InputSpec(required=True), "pause": InputSpec(default="1h")},
    concurrency=Concurrency(key="${trigger.repo}-${inputs.title}"),
    triggers=Triggers(
        schedules={"nightly": WorkflowSchedule(cron="0 3 * * *", inputs={"title": "night"})},
        webhooks={"github": MessageTrigger(inputs={"title": "${trigger.payload.issue.title}"})},
    ),
)


def test_a_sound_definition_has_no_findings() -> None:
    assert check_definition(SOUND) == ()


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (workflow(), [("phases", "there are no phases")]),
        (
            workflow(agent("a"), agent("A")),
            [("phases.1.name", "'A' is not the name of a phase: small letters, digits and '_', beginning with a letter")],
        ),
        (workflow(agent("a"), agent("a")), [("phases.1.name", "a second phase called 'a'")]),
        (
            workflow(agent("a"), agent("b", needs="a c")),
            [("phases.1.depends_on.1", "there is no phase 'c' beside this one")],
        ),
        (
            workflow(agent("a"), agent("b", needs="a a")),
            [("phases.1.depends_on", "'a' is here 2 times")],
        ),
        (
            workflow(agent("a", needs="c"), agent("b", needs="a"), agent("c", needs="b")),
            [("phases.0.depends_on", "these phases wait for each other: a -> c -> b -> a")],
        ),
        (
            workflow(block("x", agent("a", needs="a"))),
            [("phases.0.action.phases.0.depends_on", "these phases wait for each other: a -> a")],
        ),
        (
            workflow(block("x", agent("a")), agent("b", needs="a")),
            [("phases.1.depends_on.0", "there is no phase 'a' beside this one")],
        ),
        (
            workflow(agent("a", trigger_rule=ONE_FAILED)),
            [("phases.0.trigger_rule", "the phase never runs: one_failed needs a phase to depend on")],
        ),
        (
            workflow(agent("a"), agent("r", needs="a", trigger_rule=ONE_FAILED), agent("b", needs="a r")),
            [("phases.2.depends_on", "the phase never runs: it needs 'a' both to succeed and to fail")],
        ),
        (
            workflow(agent("a", when="1 > 2")),
            [("phases.0.when", "the phase never runs: its condition is always false")],
        ),
        (
            workflow(gate("a", retries=1)),
            [("phases.0.retries", "a gate is not tried again: only agents, commands and workflows take retries")],
        ),
        (
            workflow(block("a", agent("b"), retries=1)),
            [("phases.0.retries", "a block is not tried again: only agents, commands and workflows take retries")],
        ),
        (workflow(agent("a", retries=101)), [("phases.0.retries", "retries are 0 to 100")]),
        (
            workflow(agent("a", loop=loop(None))),
            [("phases.0.loop", "a loop needs 'until' or 'until_command' to end it")],
        ),
        (
            workflow(agent("a", loop=loop("true", 0))),
            [("phases.0.loop.max_iterations", "max_iterations is 1 to 1,000")],
        ),
        (
            workflow(agent("a", for_each=each("inputs.l", 0)), inputs={"l": InputSpec(type=InputType.LIST)}),
            [("phases.0.for_each.max_parallel", "max_parallel is at least 1")],
        ),
        (
            workflow(phase("a", GateAction(approvers=("x", "x"), quorum=2))),
            [("phases.0.action.quorum", "quorum 2 cannot be reached by 1 approvers")],
        ),
        (
            workflow(phase("a", WaitAction(duration="1h", event="x"))),
            [("phases.0.action", "a wait has one of 'for', 'until' and 'event'")],
        ),
        (
            workflow(agent("a", output={"type": "object", "properties": {"x": {"typ": "string"}}})),
            [("phases.0.action.output.properties.x.typ", "'typ' is not supported in the schema of an output")],
        ),
        (
            workflow(agent("a"), inputs={"Big": InputSpec()}),
            [("inputs.Big", "'Big' is not the name of an input: small letters, digits and '_'")],
        ),
        (
            workflow(agent("a"), inputs={"n": InputSpec(type=InputType.NUMBER, default="x")}),
            [("inputs.n.default", "expected a number, got a text")],
        ),
        (
            workflow(agent("a"), inputs={"n": InputSpec(default="x", required=True)}),
            [("inputs.n.default", "an input that is required takes no default")],
        ),
    ],
)  # fmt: skip
def test_a_definition_that_cannot_work_says_where_and_why(
    definition: WorkflowDefinition, expected: list[tuple[str, str]]
) -> None:
    assert errors(definition) == expected


def test_blocks_are_nested_five_levels_and_no_more() -> None:
    inner: Phase = agent("a")
    for _ in range(4):
        inner = block("b", inner)

    assert errors(workflow(inner)) == []
    assert messages(block("b", inner)) == ["blocks are nested more than 5 levels deep"]


def test_a_workflow_has_five_hundred_phases_and_no_more() -> None:
    phases = [agent(f"p{number}") for number in range(499)]

    assert messages(*phases, agent("x")) == []
    assert messages(*phases, block("x", agent("y"))) == [
        "a workflow has at most 500 phases; this has 501"
    ]


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ((agent("a", "${nope}"),), "unknown name 'nope'"),
        ((agent("a", "${inputs.nope}"),), "inputs has no field 'nope'"),
        ((agent("a", when="inputs.t"),), "a condition is true or false; this is a text"),
        ((agent("a", when="inputs.n < 'x'"),), "'<' cannot order a number and a text"),
        ((agent("a", for_each=each("inputs.t")),), "expected a list, got a text"),
        ((agent("a", loop=loop("inputs.t")),), "a condition is true or false; this is a text"),
        ((agent("a", "${item}"),), "'item' exists only inside for_each"),
        ((agent("a", when="loop.iteration > 1"),), "'loop' exists only inside a loop"),
        (
            (agent("a", when="item == 'x'", for_each=each("inputs.l")),),
            "'item' exists only inside for_each",
        ),
        (
            (agent("a", when="loop.iteration > 1", loop=loop("true")),),
            "'loop' exists only inside a loop",
        ),
        ((agent("a"), agent("b", "${phases.a.output}")), MAY),
        (
            (agent("a"), agent("x"), agent("b", "${phases.a.output}", "a x", trigger_rule=ONE_SUCCESS)),
            MAY,
        ),
        ((agent("a", "${phases.a.output}"),), "phase 'a' has no result yet when this is evaluated"),
        ((agent("a", when="phases.b.status == 'failed'"), agent("b", needs="a")), "phase 'b' may not have ended when this is evaluated; add it to depends_on"),
        ((block("x", agent("a")), agent("b", "${phases.a.output}", "x")), "phase 'a' is inside 'x': write phases.x.output.a"),
        ((agent("a"), block("x", agent("b", "${phases.a.output}"))), MAY),
        ((agent("a"), agent("b", "${phases.a.exit_code}", "a")), "phases.a has no field 'exit_code'"),
        ((agent("a", output=REVIEW), agent("b", "${phases.a.output.ok}", "a")), "phases.a.output has no field 'ok'"),
        ((agent("a"), agent("b", "${phases.a.output.ok}", "a")), "phases.a.output is a text and has no fields"),
        ((agent("a"), agent("b", when="phases.a.status == 'success'", needs="a")), "'success' is not one of succeeded, failed, skipped, cancelled"),
        ((bash("a"), agent("b", when="phases.a.exit_code == '0'", needs="a")), "a number never equals a text"),
        ((gate("a"), agent("b", "${phases.a.output.reply}", "a")), "phases.a.output has no field 'reply'"),
        ((wait("a"), agent("b", when="phases.a.output == 1 and phases.a.output.x", needs="a")), "phases.a.output is null and has no fields"),
        ((agent("a", for_each=each("inputs.l")), agent("b", "${phases.a.output.x}", "a")), "phases.a.output is a list and has no field 'x'"),
        ((agent("a", "${loop.previous.x}", loop=loop("true")),), "loop.previous is a text and has no fields"),
        ((bash("a", "echo ${inputs.t}"),), "a command cannot contain expressions"),
        ((agent("a", loop=loop(None, until_command=UntilCommand(command="test ${loop.iteration}"))),), "a command cannot contain expressions"),
        ((bash("a", env={"X": "${nope}"}),), "unknown name 'nope'"),
        ((bash("a", stdin="${nope}"),), "unknown name 'nope'"),
        ((gate("a", "${nope}"),), "unknown name 'nope'"),
        ((wait("a", "${nope}"),), "unknown name 'nope'"),
        ((child("a", inputs={"x": [{"y": "${nope}"}]}),), "unknown name 'nope'"),
        ((agent("a", "${"),), "'${' is not closed"),
    ],
)  # fmt: skip
def test_expressions_see_what_exists_at_their_place_and_nothing_else(
    phases: tuple[Phase, ...], expected: str
) -> None:
    inputs = {
        "t": InputSpec(required=True),
        "n": InputSpec(type=InputType.NUMBER, default=1),
        "l": InputSpec(type=InputType.LIST, required=True),
    }

    assert messages(*phases, inputs=inputs) == [expected]


@pytest.mark.parametrize(
    "phases",
    [
        (agent("a"), agent("b", needs="a"), agent("c", "${phases.a.output}", "b")),
        (agent("a"), block("x", agent("b", "${phases.a.output}"), needs="a")),
        (agent("a"), block("x", block("y", agent("b", "${phases.a.output}")), needs="a")),
        (
            agent("a"),
            agent("b", needs="a"),
            agent("c", needs="a"),
            agent("d", "${phases.a.output}", "b c", trigger_rule=ONE_SUCCESS),
        ),
        (agent("r", needs="a", when="phases.a.output == null", trigger_rule=ONE_FAILED), agent("a")),
        (block("x", agent("a"), for_each=each("inputs.l")), agent("b", "${phases.x.output[0].a}", "x")),
        (block("x", agent("a", "${item}${loop.iteration}"), for_each=each("inputs.l"), loop=loop("phases.a.output == item")),),
        (block("x", agent("a", "${item}", for_each=each("item.files")), for_each=each("inputs.l")),),
        (block("review", agent("review", output=REVIEW), loop=loop("phases.review.output.approved")),),
        (child("a", workflow(agent("x"))), agent("b", "${phases.a.output.x}", "a")),
        (child("a"), agent("b", "${phases.a.output.anything.at[0].all}", "a")),
    ],
)  # fmt: skip
def test_outer_phases_items_and_loops_are_seen_inside_blocks(phases: tuple[Phase, ...]) -> None:
    inputs = {"l": InputSpec(type=InputType.LIST, required=True)}

    assert messages(*phases, inputs=inputs) == []


def test_a_phase_inside_a_block_hides_one_of_the_same_name_around_it() -> None:
    inner = agent("b", "${phases.a.output.approved}", "a")

    assert messages(agent("a"), block("x", agent("a", output=REVIEW), inner, needs="a")) == []
    assert messages(agent("a", output=REVIEW), block("x", agent("a"), inner, needs="a")) == [
        "phases.a.output is a text and has no fields"
    ]


def test_a_mistake_has_its_place_inside_the_text() -> None:
    (finding,) = check_definition(workflow(agent("a", "é\nsee ${inputs.x} and ${ nope }")))[1:]

    assert finding.path == ("phases", 0, "action", "prompt")
    assert finding.start == 25
    assert finding.width == 4


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ((agent("a"), agent("b", needs="a", session="a")), []),
        ((agent("a"), agent("b", needs="a", session="a"), agent("c", needs="b", session="b")), []),
        ((agent("a"), block("x", agent("b", session="a"), needs="a", loop=loop("true"))), []),
        ((agent("a"), agent("b", session="x")), ["there is no phase 'x' to share a session with"]),
        ((bash("a"), agent("b", needs="a", session="a")), ["phase 'a' runs no agent and has no session"]),
        (
            (agent("a"), agent("b", session="a")),
            ["phase 'a' may not have ended when this begins; add it to depends_on"],
        ),
        ((agent("a", session="a"),), ["phase 'a' may not have ended when this begins; add it to depends_on"]),
        (
            (agent("a", by="x"), agent("b", needs="a", session="a")),
            ["the session of 'a' belongs to agent 'x', not to 'coder'"],
        ),
        (
            (agent("a"), agent("b", needs="a", session="a"), agent("c", needs="a", session="a")),
            ["phase 'b' continues the same session and may run at the same time; add it to depends_on"],
        ),
        (
            (
                agent("a"),
                agent("b", needs="a", session="a"),
                block("x", agent("c", session="a"), needs="a"),
            ),
            ["phase 'b' continues the same session and may run at the same time; add it to depends_on"],
        ),
        (
            (agent("a"), agent("b", needs="a", session="a", for_each=each("inputs.l"))),
            ["the items of 'b' run in parallel and cannot share a session; set max_parallel to 1"],
        ),
        ((agent("a"), agent("b", needs="a", session="a", for_each=each("inputs.l", 1))), []),
        (
            (agent("a"), block("x", agent("b", session="a"), needs="a", for_each=each("inputs.l"))),
            ["the items of 'x' run in parallel and cannot share a session; set max_parallel to 1"],
        ),
        (
            (block("x", agent("a"), agent("b", needs="a", session="a"), for_each=each("inputs.l")),),
            [],
        ),
        (
            (agent("a", for_each=each("inputs.l")), agent("b", needs="a", session="a")),
            ["phase 'a' has a session for each item; none of them can be shared"],
        ),
    ],
)  # fmt: skip
def test_a_session_is_shared_only_with_a_phase_before_and_never_beside_another(
    phases: tuple[Phase, ...], expected: list[str]
) -> None:
    inputs = {"l": InputSpec(type=InputType.LIST, required=True)}

    assert messages(*phases, inputs=inputs) == expected


def test_a_gate_shows_the_output_of_a_phase_that_has_ended() -> None:
    show = GateAction(artifact=Artifact(kind=ArtifactKind.OUTPUT, phase="a"))

    assert messages(agent("a"), phase("g", show, "a")) == []
    assert messages(agent("a"), phase("g", show)) == [
        "phase 'a' may not have ended when this is evaluated; add it to depends_on"
    ]


def test_gates_inside_parallel_items_are_allowed() -> None:
    inputs = {"l": InputSpec(type=InputType.LIST, required=True)}

    assert messages(gate("g", "${item}?", for_each=each("inputs.l", 3)), inputs=inputs) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"title": "${inputs.t}"}, []),
        ({"title": "a", "n": "${inputs.n}"}, []),
        ({"title": "a", "n": 3}, []),
        ({"title": "a", "n": "${trigger.payload.n}"}, []),
        ({}, ["the input 'title' is required and is not given"]),
        ({"title": "a", "x": 1}, ["the workflow has no input 'x'"]),
        ({"title": "a", "n": "3"}, ["the input 'n' is a number; this is a text"]),
        ({"title": "a", "n": "${inputs.n} "}, ["the input 'n' is a number; this is a text"]),
        ({"title": ["a"]}, ["the input 'title' is a text; this is a list"]),
        ({"title": {"a": "${nope}"}}, ["unknown name 'nope'", "the input 'title' is a text; this is an object"]),
    ],
)  # fmt: skip
def test_a_sub_workflow_gets_the_inputs_that_it_declares(
    given: dict[str, Any], expected: list[str]
) -> None:
    inner = workflow(
        agent("x"),
        inputs={"title": InputSpec(required=True), "n": InputSpec(type=InputType.NUMBER)},
    )
    inputs = {"t": InputSpec(default="x"), "n": InputSpec(type=InputType.NUMBER, default=1)}

    assert messages(child("a", inner, inputs=given), inputs=inputs) == expected


def test_triggers_give_the_inputs_that_the_workflow_declares() -> None:
    definition = workflow(
        agent("a"),
        inputs={"title": InputSpec(required=True), "n": InputSpec(type=InputType.NUMBER)},
        triggers=Triggers(
            schedules={"s": WorkflowSchedule(interval=timedelta(hours=1), inputs={"n": "${x}"})},
            webhooks={"w": MessageTrigger(inputs={"title": "${inputs.title}", "m": 1})},
            chat=MessageTrigger(inputs={"title": "${trigger.payload.text}"}),
        ),
        concurrency=Concurrency(key="${phases.a.output}"),
    )

    assert errors(definition) == [
        ("concurrency.key", "unknown name 'phases'"),
        ("triggers.schedules.s.inputs.n", "the input 'n' is a number; this is a text"),
        ("triggers.schedules.s.inputs", "the input 'title' is required and is not given"),
        ("triggers.webhooks.w.inputs.title", "unknown name 'inputs'"),
        ("triggers.webhooks.w.inputs.m", "the workflow has no input 'm'"),
    ]


@pytest.mark.parametrize(
    ("phases", "unused"),
    [
        ((agent("a", output=REVIEW), agent("b", needs="a")), ["a"]),
        ((agent("a", output=REVIEW), agent("b", "${phases.a.output}", "a")), []),
        ((agent("a", output=REVIEW), agent("b", when="phases.a.output.approved", needs="a")), []),
        ((agent("a"), agent("b", needs="a", output=REVIEW)), []),
        ((agent("a"), agent("b", needs="a")), []),
        (
            (
                block("x", agent("a", output=REVIEW), agent("b", needs="a")),
                agent("c", "${phases.x.output}", "x"),
            ),
            [],
        ),
        (
            (
                block("x", agent("a", output=REVIEW), agent("b", needs="a")),
                agent("c", "${phases.x.output.b}", "x"),
            ),
            ["a"],
        ),
        (
            (
                block(
                    "x",
                    agent("a", "${loop.previous.a.comments}", output=REVIEW),
                    agent("b", needs="a"),
                    loop=loop("true"),
                ),
            ),
            [],
        ),
    ],
)
def test_a_declared_output_that_nothing_reads_is_noticed(
    phases: tuple[Phase, ...], unused: list[str]
) -> None:
    found = check_definition(workflow(*phases))

    assert [finding.message for finding in found] == [
        f"nothing reads the output of {name!r}" for name in unused
    ]
    assert all(finding.severity is Severity.NOTICE for finding in found)
