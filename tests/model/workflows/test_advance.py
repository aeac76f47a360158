"""`advance`: rules, conditions, retries, gates, waits, commands and messages, case by case."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from model.workflows.run_story import Story
from model.workflows.workflow_values import (
    REVIEW,
    agent,
    bash,
    block,
    each,
    gate,
    phase,
)
from nightherd.model.workflows.advance import advance, end_message
from nightherd.model.workflows.definition import (
    AgentAction,
    Artifact,
    ArtifactKind,
    GateAction,
    Messages,
    OnFailure,
    TriggerRule,
    WaitAction,
    chain,
)
from nightherd.model.workflows.node import NodeKey
from nightherd.model.workflows.run import RunStatus
from nightherd.model.workflows.steps import (
    Cancel,
    OpenGate,
    Skip,
    StartGroup,
    StartWait,
    SubmitPhase,
    Succeed,
)
from nightherd.model.workflows.triggers import RunTrigger


def test_a_chain_runs_one_phase_after_the_other_and_succeeds() -> None:
    story = Story(*chain((agent("a"), agent("b"))))

    assert story.said == ["SubmitPhase a"]
    assert story.end("a") == ["SubmitPhase b"]
    assert story.end("b") == []
    assert story.status == "succeeded"


def test_phases_whose_dependencies_are_met_run_in_parallel() -> None:
    story = Story(agent("a"), agent("b"), agent("c", needs="a b"), agent("d", needs="a"))

    assert story.said == ["SubmitPhase a", "SubmitPhase b"]
    assert story.end("a") == ["SubmitPhase d"]
    assert story.end("b") == ["SubmitPhase c"]


def test_a_failure_skips_what_depends_on_it_and_fails_the_run() -> None:
    story = Story(*chain((agent("a"), agent("b"), agent("c"))))

    assert story.end("a", "failed") == ["Skip b", "Skip c"]
    assert [step.reason for step in story.steps if isinstance(step, Skip)] == [
        "'a' failed",
        "'b' did not run",
    ]
    assert story.status == "failed"
    assert story.run.error == "a failed: failed"


def test_a_condition_that_is_false_skips_the_phase_and_what_needs_it() -> None:
    story = Story(
        agent("a", when="inputs.go"),
        agent("b", needs="a"),
        agent("c", needs="a", trigger_rule=TriggerRule.ALL_DONE),
        inputs={"go": False},
    )

    assert story.said == ["Skip a", "Skip b", "SubmitPhase c"]
    assert story.error_of("a") == "its condition is false: inputs.go"
    assert story.error_of("b") == "'a' was skipped"
    assert story.end("c") == []
    assert story.status == "succeeded"


def test_a_condition_is_evaluated_only_when_the_rule_holds() -> None:
    story = Story(agent("a"), agent("b", needs="a", when="phases.a.output.ok"))

    assert story.end("a", "failed") == ["Skip b"]
    assert story.error_of("b") == "'a' failed"


def test_a_condition_without_a_value_fails_the_phase_and_says_why() -> None:
    story = Story(
        agent("a", output=REVIEW),
        agent("b", needs="a", trigger_rule=TriggerRule.ALL_DONE, when="phases.a.output.approved"),
    )

    assert story.end("a", "failed") == ["Fail b"]
    assert story.error_of("b") == "when: phases.a.output is null and has no fields"
    assert story.status == "failed"
    assert story.run.error == "a failed: failed (and 1 more)"


def test_a_prompt_begins_with_the_text_of_its_skill_which_is_no_template() -> None:
    skilled = AgentAction(agent="coder", skill="s", skill_text="Say ${nope}.", prompt="${inputs.x}")
    alone = AgentAction(agent="coder", skill="s", skill_text="Say ${nope}.")

    story = Story(phase("a", skilled), phase("b", alone), inputs={"x": "hi"})

    assert story.run.prompts["a", 0, -1, 1] == "Say ${nope}.\n\nhi"
    assert story.run.prompts["b", 0, -1, 1] == "Say ${nope}."


def test_a_prompt_without_a_value_fails_the_phase_without_a_retry() -> None:
    story = Story(agent("a", "${trigger.payload.x}", retries=3))

    assert story.said == ["Fail a"]
    assert story.error_of("a") == "prompt: trigger.payload is null and has no fields"
    assert story.status == "failed"


def test_a_failed_attempt_is_retried_as_often_as_the_phase_says() -> None:
    story = Story(agent("a", retries=2), agent("b", needs="a"))

    assert story.end("a", "failed") == ["SubmitPhase a (attempt 2)"]
    assert story.end("a (attempt 2)", "failed") == ["SubmitPhase a (attempt 3)"]
    assert story.end("a (attempt 3)", "succeeded") == ["SubmitPhase b"]


def test_the_last_attempt_decides_and_a_final_failure_is_not_retried() -> None:
    story = Story(agent("a", retries=1), agent("b", retries=5))

    story.end("a", "failed")
    assert story.end("a (attempt 2)", "failed") == []
    assert story.end("b", "failed", is_final=True) == []
    assert story.status == "failed"
    assert story.run.error == "a failed: failed (and 1 more)"


def test_a_failure_that_is_tolerated_counts_as_success_but_not_for_one_failed() -> None:
    story = Story(
        agent("a", on_failure=OnFailure.CONTINUE),
        agent("b", "${phases.a.status}${phases.a.output}", "a"),
        agent("r", needs="a", trigger_rule=TriggerRule.ONE_FAILED),
    )

    assert story.end("a", "failed") == ["SubmitPhase b", "SubmitPhase r"]
    assert story.run.prompts["b", 0, -1, 1] == "failed"
    story.end("b")
    story.end("r")
    assert story.status == "succeeded"


def test_a_recovery_phase_turns_a_failed_run_into_a_success() -> None:
    story = Story(
        agent("a"),
        agent("b", needs="a"),
        agent("r", "${phases.a.error}", "b", trigger_rule=TriggerRule.ONE_FAILED),
    )

    assert story.end("a", "failed") == ["Skip b", "SubmitPhase r"]
    assert story.run.prompts["r", 0, -1, 1] == "failed"
    story.end("r")
    assert story.status == "succeeded"
    assert story.run.error is None


def test_one_success_begins_with_the_first_and_does_not_wait() -> None:
    story = Story(
        agent("a"), agent("b"), agent("c", needs="a b", trigger_rule=TriggerRule.ONE_SUCCESS)
    )

    assert story.end("b") == ["SubmitPhase c"]
    assert story.end("a", "failed") == []
    story.end("c")
    assert story.status == "failed"


def test_a_gate_pauses_the_run_until_it_is_answered() -> None:
    artifact = Artifact(kind=ArtifactKind.OUTPUT, phase="plan")
    story = Story(
        agent("plan"),
        phase(
            "ok", GateAction(summary="Go with ${phases.plan.output}?", artifact=artifact), "plan"
        ),
        agent("do", "Do ${phases.ok.output.artifact}", "ok"),
    )

    assert story.end("plan", output="x") == ["OpenGate ok"]
    (opened,) = story.steps
    assert isinstance(opened, OpenGate)
    assert (opened.summary, opened.text) == ("Go with x?", "x")
    assert story.status == "paused"
    assert story.end("ok", output={"approved": True, "artifact": "y"}) == ["SubmitPhase do"]
    assert story.status == "running"
    assert story.run.prompts["do", 0, -1, 1] == "Do y"


def test_a_rejected_gate_fails_and_is_not_opened_again() -> None:
    story = Story(gate("ok"), agent("do", needs="ok"))

    assert story.end("ok", "failed", is_final=True) == ["Skip do"]
    assert story.status == "failed"


def test_a_run_is_paused_only_while_nothing_runs() -> None:
    story = Story(gate("ok"), agent("a"))

    assert story.status == "running"
    story.end("a")
    assert story.status == "paused"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (WaitAction(duration="${inputs.t}"), {"duration": timedelta(minutes=90)}),
        (WaitAction(until="2026-11-15T12:00:00+01:00"), {"until": datetime(2026, 11, 15, 11, tzinfo=UTC)}),
        (WaitAction(event="deployed"), {"event": "deployed"}),
    ],
)  # fmt: skip
def test_a_wait_says_what_it_waits_for(action: WaitAction, expected: dict[str, Any]) -> None:
    story = Story(phase("w", action), inputs={"t": "1h30m"})

    (step,) = story.steps
    assert isinstance(step, StartWait)
    given = {"duration": step.duration, "until": step.until, "event": step.event}
    assert {name: value for name, value in given.items() if value is not None} == expected
    assert story.status == "paused"


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (WaitAction(duration="soon"), "wait.for: 'soon' is not a duration"),
        (WaitAction(until="noon"), "wait.until: 'noon' is not an instant"),
        (WaitAction(until="2026-11-15T12:00:00"), "wait.until: '2026-11-15T12:00:00' has no time zone"),
    ],
)  # fmt: skip
def test_a_wait_that_cannot_be_read_fails(action: WaitAction, error: str) -> None:
    story = Story(phase("w", action))

    assert story.said == ["Fail w"]
    assert (story.error_of("w") or "").startswith(error)


def test_a_command_gets_values_by_its_environment_and_standard_input_only() -> None:
    command = bash(
        "c",
        'echo "$TITLE"',
        env={"TITLE": "${trigger.payload.title}", "N": "${inputs.n}"},
        stdin="${trigger.payload}",
    )
    trigger = RunTrigger(payload={"title": "$(rm -rf /)"})

    (step,) = Story(command, inputs={"n": 3}, trigger=trigger).steps

    assert isinstance(step, SubmitPhase)
    assert step.env == {"TITLE": "$(rm -rf /)", "N": "3"}
    assert step.stdin == '{"title": "$(rm -rf /)"}'
    assert step.prompt == ""
    assert step.phase.action == command.action


def test_an_exit_code_is_seen_by_the_phases_after() -> None:
    story = Story(
        bash("c", on_failure=OnFailure.CONTINUE),
        agent("a", needs="c", when="phases.c.exit_code == 3"),
    )

    assert story.end("c", "failed", exit_code=3) == ["SubmitPhase a"]


def test_messages_are_filled_in_where_a_phase_begins_and_ends() -> None:
    messages = Messages(
        on_start="start ${run.id}",
        on_success="got ${phases.e.output}",
        on_failure="lost: ${phases.e.error}",
    )
    story = Story(agent("e", for_each=each("inputs.l"), messages=messages), inputs={"l": [1]})

    started, submitted = story.steps
    assert isinstance(started, StartGroup)
    assert started.message == "start run-2026-03-01-aaaaaa"
    assert isinstance(submitted, SubmitPhase)
    assert submitted.message is None
    story.end("e[0]", output="x")
    (ended,) = story.steps
    assert isinstance(ended, Succeed)
    assert ended.message == 'got ["x"]'


def test_the_message_about_a_job_is_made_when_its_last_attempt_has_ended() -> None:
    messages = Messages(on_success="got ${phases.a.output}", on_failure="lost ${trigger.payload.x}")
    story = Story(agent("a", retries=1, messages=messages))
    run = story.run

    def message(key: NodeKey) -> str | None:
        return end_message(
            run.definition, run.inputs, run.trigger, run.run, run.nodes, run.recorded.get, key
        )

    story.end("a", "failed")
    assert message(NodeKey("a")) is None
    story.end("a (attempt 2)", "failed")
    assert message(NodeKey("a", attempt=2)) == (
        "(the message of a cannot be filled in: message: trigger.payload is null and has no fields)"
    )
    assert message(NodeKey("a")) is None


def test_a_cancelled_run_ends_its_gates_at_once_and_the_rest_with_its_last_job() -> None:
    story = Story(gate("g"), block("x", agent("a"), agent("b", needs="a")), agent("c", needs="g"))
    story.run.run = replace(story.run.run, is_cancelling=True)

    story.steps = story.run.advance().steps
    assert story.said == ["Cancel g"]
    assert story.status == "running"
    assert story.end("x/a", "cancelled") == ["Cancel x"]
    assert isinstance(story.steps[0], Cancel)
    assert story.status == "cancelled"
    assert story.run.decide().steps == ()


def test_a_job_that_a_person_cancelled_counts_as_failed_for_the_rules_and_cancels_the_run() -> None:
    story = Story(
        agent("a", retries=3, on_failure=OnFailure.CONTINUE), agent("b", needs="a"), agent("c")
    )

    assert story.end("a", "cancelled") == ["Skip b"]
    story.end("c")
    assert story.status == "cancelled"
    assert story.run.error == "a was cancelled: cancelled"


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.SUCCEEDED, RunStatus.CANCELLED])
def test_nothing_follows_in_a_run_that_has_not_begun_or_has_ended(status: RunStatus) -> None:
    story = Story(agent("a"))
    story.run.run = replace(story.run.run, status=status)
    story.run.nodes.clear()

    decision = story.run.decide()

    assert decision.steps == ()
    assert decision.run_status is status


def test_outputs_that_nothing_reads_are_never_loaded() -> None:
    story = Story(agent("a"), agent("b", "${phases.a.status}", "a"))
    run = story.run
    story.end("a", output="x")
    run.nodes.pop(NodeKey("b"))

    def load(key: NodeKey) -> Any:
        raise AssertionError(key)

    decision = advance(run.definition, run.inputs, run.trigger, run.run, run.nodes, load)

    assert [str(step.key) for step in decision.steps] == ["b"]


def test_agent_that_would_be_asked_nothing_fails_its_phase() -> None:
    story = Story(agent("a", " ${inputs.t}\n"), inputs={"t": ""})

    assert story.said == ["Fail a"]
    assert story.error_of("a") == "prompt: it is empty, so there is nothing to ask"
