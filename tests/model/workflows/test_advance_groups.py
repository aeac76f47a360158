"""`advance`: blocks, loops, items, child runs and the sessions between them, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from model.workflows.reference_run import Outcome
from model.workflows.run_story import Story
from model.workflows.simulated_run import SimulatedRun
from model.workflows.workflow_values import (
    FILES,
    REVIEW,
    agent,
    bash,
    block,
    child,
    each,
    loop,
    phase,
    workflow,
)
from nightherd.model.jobs.job import TriggerType
from nightherd.model.workflows.definition import (
    Artifact,
    ArtifactKind,
    GateAction,
    OnExhausted,
    OnFailure,
    Phase,
    TriggerRule,
    UntilCommand,
)
from nightherd.model.workflows.node import NodeKey
from nightherd.model.workflows.run import RunStatus
from nightherd.model.workflows.steps import (
    RunUntilCommand,
    StartChild,
    SubmitPhase,
)
from nightherd.model.workflows.triggers import InputSpec, InputType, RunTrigger


def test_a_block_begins_and_ends_with_what_is_inside() -> None:
    story = Story(
        block("x", agent("a", output=REVIEW), agent("b", needs="a")),
        agent("c", "${phases.x.output.a.comments}/${phases.x.output.b}", "x"),
    )

    assert story.said == ["StartGroup x", "SubmitPhase x/a"]
    assert story.end("x/a", output={"approved": True, "comments": "fine"}) == ["SubmitPhase x/b"]
    assert story.end("x/b", output="b!") == ["Succeed x", "SubmitPhase c"]
    assert story.run.prompts["c", 0, -1, 1] == "fine/b!"


def test_a_failed_block_says_which_phase_failed() -> None:
    story = Story(block("x", agent("a"), agent("b")), agent("c", needs="x"))

    story.end("x/a", "failed")
    assert story.end("x/b") == ["Fail x", "Skip c"]
    assert story.error_of("x") == "x/a failed: failed"
    assert story.run.error == "x failed: x/a failed: failed"


def test_a_failure_inside_a_block_can_be_recovered_there() -> None:
    story = Story(
        block("x", agent("a"), agent("r", needs="a", trigger_rule=TriggerRule.ONE_FAILED))
    )

    assert story.end("x/a", "failed") == ["SubmitPhase x/r"]
    assert story.end("x/r") == ["Succeed x"]
    assert story.status == "succeeded"


def test_a_loop_runs_until_its_condition_is_met() -> None:
    story = Story(
        agent(
            "a",
            "${loop.iteration}: ${loop.previous.comments}",
            output=REVIEW,
            loop=loop("phases.a.output.approved"),
        ),
        agent("b", "${phases.a.output.comments}", "a"),
    )
    no, yes = {"approved": False, "comments": "no"}, {"approved": True, "comments": "yes"}

    assert story.said == ["StartGroup a", "SubmitPhase a[1]"]
    assert story.end("a[1]", output=no) == ["SubmitPhase a[2]"]
    assert story.end("a[2]", output=yes) == ["Succeed a", "SubmitPhase b"]
    assert story.run.prompts["a", 1, -1, 1] == "1: "
    assert story.run.prompts["a", 2, -1, 1] == "2: no"
    assert story.run.prompts["b", 0, -1, 1] == "yes"


@pytest.mark.parametrize(
    ("on_exhausted", "expected", "status"),
    [
        (OnExhausted.FAIL, ["Fail a"], RunStatus.FAILED),
        (OnExhausted.CONTINUE, ["Succeed a"], RunStatus.SUCCEEDED),
    ],
)
def test_a_loop_that_never_meets_its_condition_ends_as_it_says(
    on_exhausted: OnExhausted, expected: list[str], status: RunStatus
) -> None:
    story = Story(agent("a", loop=loop("false", 2, on_exhausted=on_exhausted)))

    assert story.end("a[1]") == ["SubmitPhase a[2]"]
    assert story.end("a[2]") == expected
    assert story.status == status.value


def test_an_iteration_that_failed_ends_the_loop_after_its_retries() -> None:
    story = Story(agent("a", retries=1, loop=loop("false")))

    assert story.end("a[1]", "failed") == ["SubmitPhase a[1] (attempt 2)"]
    assert story.end("a[1] (attempt 2)") == ["SubmitPhase a[2]"]
    story.end("a[2]", "failed")
    assert story.end("a[2] (attempt 2)", "failed") == ["Fail a"]
    assert story.error_of("a") == "iteration 2 failed: failed"


def test_a_command_decides_about_the_end_of_a_loop_after_the_condition() -> None:
    command = UntilCommand(command="make test", env={"N": "${loop.iteration}"})
    story = Story(
        agent("a", output=REVIEW, loop=loop("phases.a.output.approved", until_command=command))
    )
    no, yes = {"approved": False, "comments": ""}, {"approved": True, "comments": ""}

    assert story.end("a[1]", output=no) == ["RunUntilCommand a:until[1]"]
    (asked,) = story.steps
    assert isinstance(asked, RunUntilCommand)
    assert asked.env == {"N": "1"}
    assert story.status == "running"
    assert story.end("a:until[1]", exit_code=1) == ["SubmitPhase a[2]"]
    assert story.end("a[2]", output=yes) == ["Succeed a"]


def test_a_loop_ends_when_its_command_exits_with_zero() -> None:
    story = Story(agent("a", loop=loop(None, until_command=UntilCommand(command="make"))))

    story.end("a[1]")
    assert story.end("a:until[1]", exit_code=0) == ["Succeed a"]


def test_a_command_that_cannot_run_fails_the_loop() -> None:
    story = Story(agent("a", loop=loop(None, until_command=UntilCommand(command="make"))))

    story.end("a[1]")
    assert story.end("a:until[1]", "failed") == ["Fail a"]
    assert story.error_of("a") == "until_command failed: failed"


def review_loop(most: int = 2) -> Phase:
    return block(
        "polish",
        agent("review", "Earlier: ${loop.previous.review.comments}", output=REVIEW),
        agent(
            "fix",
            "${phases.review.output.comments}",
            "review",
            when=f"not phases.review.output.approved and loop.iteration < {most}",
        ),
        loop=loop("phases.review.output.approved", most),
    )


def test_a_review_loop_reviews_fixes_and_reviews_again() -> None:
    story = Story(review_loop())
    no, yes = {"approved": False, "comments": "typo"}, {"approved": True, "comments": ""}

    assert story.said == [
        "StartGroup polish",
        "StartGroup polish[1]",
        "SubmitPhase polish[1]/review",
    ]
    assert story.end("polish[1]/review", output=no) == ["SubmitPhase polish[1]/fix"]
    assert story.end("polish[1]/fix") == [
        "Succeed polish[1]",
        "StartGroup polish[2]",
        "SubmitPhase polish[2]/review",
    ]
    assert story.end("polish[2]/review", output=yes) == [
        "Skip polish[2]/fix",
        "Succeed polish[2]",
        "Succeed polish",
    ]
    assert story.run.prompts["polish[1]/fix", 0, -1, 1] == "typo"
    assert story.run.prompts["polish[1]/review", 0, -1, 1] == "Earlier: "
    assert story.run.prompts["polish[2]/review", 0, -1, 1] == "Earlier: typo"


def test_for_each_runs_as_many_items_at_once_as_it_may_in_their_order() -> None:
    story = Story(
        agent("e", "${item}", for_each=each("inputs.l", 2)),
        agent("b", "${phases.e.output}", "e"),
        inputs={"l": ["x", "y", "z"]},
    )

    assert story.said == ["StartGroup e", "SubmitPhase e[0]", "SubmitPhase e[1]"]
    assert story.end("e[1]", output="Y") == ["SubmitPhase e[2]"]
    assert story.end("e[2]", output="Z") == []
    assert story.end("e[0]", output="X") == ["Succeed e", "SubmitPhase b"]
    assert story.run.prompts["b", 0, -1, 1] == '["X", "Y", "Z"]'


def test_every_item_runs_and_one_that_failed_fails_the_phase() -> None:
    story = Story(
        agent("e", for_each=each("inputs.l", 1), on_failure=OnFailure.CONTINUE),
        agent("b", "${phases.e.output}", "e"),
        inputs={"l": [1, 2]},
    )

    assert story.end("e[0]", "failed") == ["SubmitPhase e[1]"]
    assert story.end("e[1]", output="ok") == ["Fail e", "SubmitPhase b"]
    assert story.error_of("e") == "1 of 2 items failed: e[0] failed: failed"
    assert story.run.prompts["b", 0, -1, 1] == '[null, "ok"]'


def test_an_empty_list_succeeds_at_once() -> None:
    story = Story(agent("e", for_each=each("inputs.l")), inputs={"l": []})

    assert story.said == ["StartGroup e", "Succeed e"]
    assert story.status == "succeeded"


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, "for_each: expected a list, got null"),
        ("abc", "for_each: expected a list, got a text"),
        ([0] * 1_001, "for_each: 1,001 items; at most 1,000"),
    ],
)
def test_items_that_cannot_be_gone_through_fail_the_phase(value: Any, error: str) -> None:
    story = Story(agent("e", for_each=each("inputs.l")), inputs={"l": value})

    assert story.said == ["Fail e"]
    assert story.error_of("e") == error


def test_items_are_kept_as_they_were_when_the_phase_began() -> None:
    story = Story(
        agent("p", output=FILES),
        agent("e", "${item}", "p", for_each=each("phases.p.output.files", 1)),
    )
    story.end("p", output={"files": ["a", "b"]})
    story.run.recorded[NodeKey("p")] = {"files": ["changed"]}

    assert story.run.nodes[NodeKey("e")].items == ("a", "b")
    assert story.end("e[0]") == ["SubmitPhase e[1]"]
    assert story.run.prompts["e", 0, 1, 1] == "b"


def test_every_item_loops_on_its_own() -> None:
    story = Story(
        block("e", agent("a", "${item}${loop.iteration}"), for_each=each("inputs.l"), loop=loop("phases.a.output == 'x'")),
        inputs={"l": [7, 8]},
    )  # fmt: skip

    assert story.said == [
        "StartGroup e",
        "StartGroup e[0]",
        "StartGroup e[0][1]",
        "SubmitPhase e[0][1]/a",
        "StartGroup e[1]",
        "StartGroup e[1][1]",
        "SubmitPhase e[1][1]/a",
    ]
    assert story.end("e[1][1]/a", output="y") == [
        "Succeed e[1][1]",
        "StartGroup e[1][2]",
        "SubmitPhase e[1][2]/a",
    ]
    assert story.run.prompts["e[1][2]/a", 0, -1, 1] == "82"
    assert story.end("e[0][1]/a", output="x") == ["Succeed e[0][1]", "Succeed e[0]"]


def test_a_child_run_gets_typed_inputs_and_knows_which_are_untrusted() -> None:
    inner = workflow(
        agent("x"),
        inputs={
            "n": InputSpec(type=InputType.NUMBER),
            "t": InputSpec(),
            "d": InputSpec(default="z"),
        },
    )
    given = {"n": "${inputs.n}", "t": "re: ${trigger.payload.title}"}
    trigger = RunTrigger(payload={"title": "hi"})

    (step,) = Story(child("c", inner, inputs=given), inputs={"n": 3}, trigger=trigger).steps

    assert isinstance(step, StartChild)
    assert step.inputs == {"n": 3, "t": "re: hi", "d": "z"}
    assert step.untrusted_inputs == {"t"}


def test_a_child_run_with_the_wrong_inputs_fails_before_it_begins() -> None:
    inner = workflow(agent("x"), inputs={"n": InputSpec(type=InputType.NUMBER)})
    story = Story(
        child("c", inner, inputs={"n": "${trigger.payload}"}), trigger=RunTrigger(payload="x")
    )

    assert story.said == ["Fail c"]
    assert story.error_of("c") == "the input 'n': expected a number, got a text"


def test_prompts_mark_what_other_people_wrote_through_every_way_it_comes() -> None:
    definition = workflow(
        bash("fetch", untrusted=True),
        block("x", agent("inner", untrusted=True)),
        agent(
            "a",
            "${inputs.t} ${phases.fetch.output} ${phases.x.output.inner} ${item} ${phases.fetch.status}",
            "fetch x",
            for_each=each("trigger.payload.list"),
        ),
        inputs={"t": InputSpec()},
    )
    trigger = RunTrigger(type=TriggerType.WEBHOOK, payload={"list": ["i"]})
    run = SimulatedRun(
        definition, {"t": "T"}, lambda key: Outcome("succeeded", "O"), trigger=trigger
    )
    run.advance()
    for key in run.open_nodes():
        run.end(key)
    run.advance()

    assert run.prompts["a", 0, 0, 1] == (
        '<untrusted source="inputs.t">T</untrusted> '
        '<untrusted source="phases.fetch.output">O</untrusted> '
        '<untrusted source="phases.x.output.inner">O</untrusted> '
        '<untrusted source="item">i</untrusted> succeeded'
    )


def session(story: Story, path: str) -> NodeKey | None:
    (step,) = [step for step in story.steps if str(step.key) == path]
    assert isinstance(step, SubmitPhase)
    return step.session_of


def test_a_phase_continues_the_session_of_the_phase_it_names() -> None:
    story = Story(
        agent("a", retries=1),
        agent("b", needs="a", session="a"),
        agent("c", needs="b", session="b"),
    )

    story.end("a", "failed")
    story.end("a (attempt 2)")
    assert session(story, "b") == NodeKey("a", attempt=2)
    story.end("b")
    assert session(story, "c") == NodeKey("b")


def test_a_phase_whose_partner_was_skipped_has_a_session_of_its_own() -> None:
    story = Story(
        agent("a", when="false or inputs.no"),
        agent("b", needs="a", session="a", trigger_rule=TriggerRule.ALL_DONE),
        inputs={"no": False},
    )

    assert session(story, "b") is None


@pytest.mark.parametrize("fresh", [True, False])
def test_iterations_share_a_session_unless_their_context_is_fresh(fresh: bool) -> None:
    story = Story(
        block(
            "x",
            agent("a"),
            agent("b", needs="a", when="loop.iteration != 2"),
            loop=loop("false", 3, fresh_context=fresh),
        )
    )

    story.end("x[1]/a")
    story.end("x[1]/b")
    assert session(story, "x[2]/a") == (None if fresh else NodeKey("x[1]/a"))
    story.end("x[2]/a")
    assert session(story, "x[3]/a") == (None if fresh else NodeKey("x[2]/a"))
    story.end("x[3]/a")
    assert session(story, "x[3]/b") == (None if fresh else NodeKey("x[1]/b"))


def test_a_phase_sees_the_nearest_phase_of_a_name() -> None:
    story = Story(
        agent("a"),
        block("x", agent("a", "inner"), agent("b", "${phases.a.output}", "a"), needs="a"),
    )

    story.end("a", output="outer")
    story.end("x/a", output="inner")

    assert story.run.prompts["x/b", 0, -1, 1] == "inner"


def test_gate_hands_on_untrusted_text_as_untrusted() -> None:
    shown = GateAction(summary="ok?", artifact=Artifact(kind=ArtifactKind.OUTPUT, phase="fetch"))
    story = Story(
        bash("fetch", untrusted=True),
        phase("ask", shown, "fetch"),
        agent("a", "${phases.ask.output.artifact} ${phases.ask.output.comment}", "ask"),
        agent("b", "${phases.ask.output}", "a"),
    )
    story.end("fetch", output="O")

    story.end("ask", output={"artifact": "O", "comment": "fine"})

    (step,) = story.steps
    assert isinstance(step, SubmitPhase)
    assert step.prompt == '<untrusted source="phases.ask.output.artifact">O</untrusted> fine'
    story.end("a")
    (step,) = story.steps
    assert isinstance(step, SubmitPhase)
    assert step.prompt.startswith('<untrusted source="phases.ask.output">{')


def test_comment_of_a_person_in_a_loop_is_not_untrusted() -> None:
    shown = GateAction(summary="ok?", artifact=Artifact(kind=ArtifactKind.OUTPUT, phase="plan"))
    plan = agent("plan", "${loop.previous.ask.comment}|${loop.previous.plan}", untrusted=True)
    story = Story(block("x", plan, phase("ask", shown, "plan"), loop=loop("false", 2)))
    story.end("x[1]/plan", output="P")

    story.end("x[1]/ask", output={"approved": True, "artifact": "P", "comment": "more"})

    step = story.steps[-1]
    assert isinstance(step, SubmitPhase)
    assert step.prompt == 'more|<untrusted source="loop.previous.plan">P</untrusted>'


def test_texts_that_a_webhook_takes_from_its_message_are_untrusted() -> None:
    prompt = "${trigger.actor} ${trigger.repo} ${trigger.type} ${trigger.issue_number}"
    for kind, actor in (
        (TriggerType.WEBHOOK, '<untrusted source="trigger.actor">bob</untrusted>'),
        (TriggerType.MANUAL, "bob"),
    ):
        story = Story(
            agent("a", prompt), trigger=RunTrigger(type=kind, actor="bob", issue_number=7)
        )

        (step,) = story.steps
        assert isinstance(step, SubmitPhase)
        assert step.prompt == f"{actor}  {kind.value} 7"
