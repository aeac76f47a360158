"""Workflow files: what each key becomes in the definition, shorthands written out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from config.workflows.workflow_folder import WorkflowFolder
from nightherd.model.limits.limits import LimitName, Limits, OnLimit
from nightherd.model.units import MicroUsd
from nightherd.model.workflows.check import check_definition
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
    OnExhausted,
    OnFailure,
    OnInterrupt,
    Phase,
    TriggerRule,
    UntilCommand,
    WaitAction,
    WorkflowAction,
    WorkflowDefinition,
    canonical_json,
    read_definition,
)
from nightherd.model.workflows.triggers import (
    Concurrency,
    InputSpec,
    InputType,
    MessageTrigger,
    Triggers,
    WhenBusy,
    WorkflowSchedule,
)

EVERYTHING = """\
name: w
description: All of it.
inputs:
  title: {required: true, description: What to do.}
  count: number
  dry_run: {type: boolean, default: false}
  files: {type: list, default: [a, 1]}
limits: {spend: 5, turns: 10, tokens: 1000, spawns: 2, depth: 3, duration: 1h, on_reached: fail}
concurrency: {max_runs: 2, key: "${inputs.title}", when_busy: replace}
on:
  schedules:
    nightly: {cron: "@daily", timezone: Europe/Berlin, inputs: {title: night}}
    often: {interval: 30m, inputs: {title: often, files: [x]}}
  webhooks:
    github: {inputs: {title: "${trigger.payload.title}"}}
  chat: {inputs: {title: "${trigger.payload.text}"}}
  api: false
phases:
  - name: plan
    label: Plan it
    agent: coder
    prompt: Plan ${inputs.title}
    skill: planning
    model: big
    limits: {turns: 3}
    session: own
    output:
      type: object
      properties: {files: {type: array, items: {type: string}}}
      required: [files]
    retries: 2
    timeout: 10m
    messages: {on_start: hi, on_success: done, on_failure: oh}
  - name: test
    bash: make test
    env: {TITLE: "${inputs.title}"}
    stdin: ${phases.plan.output}
    on_interrupt: rerun
    depends_on: plan
    untrusted: true
  - name: count
    python: |
      print(1)
    output: {type: integer}
    depends_on: [test]
    trigger_rule: all_done
    when: inputs.dry_run
    on_failure: continue
  - name: each
    depends_on: plan
    agent: coder
    prompt: Do ${item}
    session: plan
    for_each: {items: phases.plan.output.files, max_parallel: 1}
    loop:
      max_iterations: 3
      until: phases.each.output == 'ok'
      until_command: {python: "exit()", env: {N: "${loop.iteration}"}, timeout: 1m}
      fresh_context: true
      on_exhausted: continue
  - name: ask
    depends_on: [each]
    gate:
      kind: reply
      summary: Fine?
      artifact: {phase: plan}
      approvers: [ann, bob]
      quorum: 1
      expires: 1d
      remind: [1h, 6h]
  - name: sub
    depends_on: ask
    workflow: other
    inputs: {list: ["${inputs.title}", 1], n: "${inputs.count}"}
  - name: rest
    depends_on: sub
    phases:
      - {name: pause, wait: 30m}
      - {name: event, wait: {event: deployed}}
      - {name: instant, wait: {until: "2026-11-15T12:00:00Z"}}
      - {name: look, gate: {summary: Look, artifact: diff}}
      - {name: read, gate: {summary: Read, artifact: {file: plan.md}}}
"""
OTHER = """\
inputs: {list: list, n: number}
phases:
  - {name: x, bash: "true"}
"""


def test_every_key_is_in_the_definition(flows: WorkflowFolder) -> None:
    flows.workflow(EVERYTHING).workflow(OTHER, "other")
    files = {
        "type": "object",
        "properties": {"files": {"type": "array", "items": {"type": "string"}}},
        "required": ["files"],
    }
    other = WorkflowDefinition(
        name="other",
        inputs={"list": InputSpec(type=InputType.LIST), "n": InputSpec(type=InputType.NUMBER)},
        phases=(Phase(name="x", action=CommandAction(language=Language.BASH, command="true")),),
    )

    definition = flows.definition()

    assert definition == WorkflowDefinition(
        name="w",
        description="All of it.",
        inputs={
            "title": InputSpec(required=True, description="What to do."),
            "count": InputSpec(type=InputType.NUMBER),
            "dry_run": InputSpec(type=InputType.BOOLEAN, default=False),
            "files": InputSpec(type=InputType.LIST, default=["a", 1]),
        },
        limits=Limits(
            spend=MicroUsd(5_000_000),
            turns=10,
            tokens=1000,
            spawns=2,
            depth=3,
            duration=timedelta(hours=1),
            outcomes=dict.fromkeys(LimitName, OnLimit.FAIL),
        ),
        concurrency=Concurrency(max_runs=2, key="${inputs.title}", when_busy=WhenBusy.REPLACE),
        triggers=Triggers(
            schedules={
                "nightly": WorkflowSchedule(
                    cron="0 0 * * *", timezone="Europe/Berlin", inputs={"title": "night"}
                ),
                "often": WorkflowSchedule(
                    interval=timedelta(minutes=30), inputs={"title": "often", "files": ["x"]}
                ),
            },
            webhooks={"github": MessageTrigger(inputs={"title": "${trigger.payload.title}"})},
            chat=MessageTrigger(inputs={"title": "${trigger.payload.text}"}),
            api=False,
        ),
        phases=(
            Phase(
                name="plan",
                label="Plan it",
                action=AgentAction(
                    agent="coder",
                    prompt="Plan ${inputs.title}",
                    skill="planning",
                    model="big",
                    limits=Limits(turns=3),
                    output=files,
                ),
                retries=2,
                timeout=timedelta(minutes=10),
                messages=Messages(on_start="hi", on_success="done", on_failure="oh"),
            ),
            Phase(
                name="test",
                action=CommandAction(
                    language=Language.BASH,
                    command="make test",
                    env={"TITLE": "${inputs.title}"},
                    stdin="${phases.plan.output}",
                    on_interrupt=OnInterrupt.RERUN,
                ),
                depends_on=("plan",),
                untrusted=True,
            ),
            Phase(
                name="count",
                action=CommandAction(
                    language=Language.PYTHON, command="print(1)\n", output={"type": "integer"}
                ),
                depends_on=("test",),
                trigger_rule=TriggerRule.ALL_DONE,
                when="inputs.dry_run",
                on_failure=OnFailure.CONTINUE,
            ),
            Phase(
                name="each",
                action=AgentAction(agent="coder", prompt="Do ${item}", session="plan"),
                depends_on=("plan",),
                for_each=ForEach(items="phases.plan.output.files", max_parallel=1),
                loop=Loop(
                    max_iterations=3,
                    until="phases.each.output == 'ok'",
                    until_command=UntilCommand(
                        language=Language.PYTHON,
                        command="exit()",
                        env={"N": "${loop.iteration}"},
                        timeout=timedelta(minutes=1),
                    ),
                    fresh_context=True,
                    on_exhausted=OnExhausted.CONTINUE,
                ),
            ),
            Phase(
                name="ask",
                action=GateAction(
                    gate=GateKind.REPLY,
                    summary="Fine?",
                    artifact=Artifact(kind=ArtifactKind.OUTPUT, phase="plan"),
                    approvers=("ann", "bob"),
                    quorum=1,
                    expires=timedelta(days=1),
                    remind=(timedelta(hours=1), timedelta(hours=6)),
                ),
                depends_on=("each",),
            ),
            Phase(
                name="sub",
                action=WorkflowAction(
                    workflow="other",
                    inputs={"list": ["${inputs.title}", 1], "n": "${inputs.count}"},
                    definition=other,
                ),
                depends_on=("ask",),
            ),
            Phase(
                name="rest",
                depends_on=("sub",),
                action=BlockAction(
                    phases=(
                        Phase(name="pause", action=WaitAction(duration="30m")),
                        Phase(
                            name="event",
                            action=WaitAction(event="deployed"),
                            depends_on=("pause",),
                        ),
                        Phase(
                            name="instant",
                            action=WaitAction(until="2026-11-15T12:00:00Z"),
                            depends_on=("event",),
                        ),
                        Phase(
                            name="look",
                            action=GateAction(
                                summary="Look", artifact=Artifact(kind=ArtifactKind.DIFF)
                            ),
                            depends_on=("instant",),
                        ),
                        Phase(
                            name="read",
                            action=GateAction(
                                summary="Read",
                                artifact=Artifact(kind=ArtifactKind.FILE, file="plan.md"),
                            ),
                            depends_on=("look",),
                        ),
                    )
                ),
            ),
        ),
    )
    assert read_definition(canonical_json(definition)) == definition


def test_on_is_a_key_and_no_truth_value(flows: WorkflowFolder) -> None:
    flows.workflow("on: {webhooks: [github], chat: true}\nphases: [{name: a, bash: ls}]\n")

    triggers = flows.definition().triggers

    assert triggers == Triggers(webhooks={"github": MessageTrigger()}, chat=MessageTrigger())


def test_phases_are_a_chain_when_none_says_what_it_depends_on(flows: WorkflowFolder) -> None:
    flows.workflow("phases:\n- {name: a, bash: ls}\n- {name: b, bash: ls}\n- {name: c, bash: ls}\n")

    assert [phase.depends_on for phase in flows.definition().phases] == [(), ("a",), ("b",)]


def test_phases_are_a_graph_as_soon_as_one_says_what_it_depends_on(flows: WorkflowFolder) -> None:
    flows.workflow(
        "phases:\n- {name: a, bash: ls}\n- {name: b, bash: ls, depends_on: []}\n- {name: c, bash: ls}\n"
    )

    assert [phase.depends_on for phase in flows.definition().phases] == [(), (), ()]


def test_phases_can_be_given_by_name_in_their_order(flows: WorkflowFolder) -> None:
    flows.workflow("phases:\n  z: {bash: ls}\n  a: {phases: {y: {bash: ls}, b: {bash: ls}}}\n")

    first, second = flows.definition().phases

    assert (first.name, second.name, second.depends_on) == ("z", "a", ("z",))
    assert [phase.name for phase in second.block] == ["y", "b"]


def test_a_review_is_a_loop_of_review_and_fix_that_ends_with_a_review(
    flows: WorkflowFolder,
) -> None:
    flows.workflow(
        """\
        phases:
          - name: work
            agent: coder
            prompt: go
          - name: polish
            review:
              agent: reviewer
              prompt: Look at it.
              max_cycles: 2
              on_exhausted: continue
              fix: {agent: coder, session: work}
        """
    )

    polish = flows.definition().phases[1]

    assert polish.loop == Loop(
        max_iterations=2,
        until="phases.review.output.approved",
        on_exhausted=OnExhausted.CONTINUE,
    )
    review, fix = polish.block
    assert isinstance(review.action, AgentAction)
    assert review.action.prompt == "Look at it."
    assert review.action.output is not None
    assert sorted(review.action.output["required"]) == ["approved", "comments"]
    assert isinstance(fix.action, AgentAction)
    assert fix.action.session == "work"
    assert "${phases.review.output.comments}" in fix.action.prompt
    assert fix.when == "not phases.review.output.approved and loop.iteration < 2"
    assert fix.depends_on == ("review",)


def test_a_prompt_can_be_a_file_of_its_own(flows: WorkflowFolder) -> None:
    flows.write("workflows/prompts/plan.md", "Plan:\n${run.id}\n")
    flows.workflow("phases: [{name: a, agent: coder, prompt_file: prompts/plan.md}]\n")

    (phase,) = flows.definition().phases

    assert isinstance(phase.action, AgentAction)
    assert phase.action.prompt == "Plan:\n${run.id}\n"
    assert str(flows.root / "workflows/prompts/plan.md") in flows.findings.files


def test_workflows_are_inline_or_files_and_run_each_other(flows: WorkflowFolder) -> None:
    flows.write(
        "nightherd.yaml",
        "workflows:\n  outer:\n    phases: [{name: a, workflow: inner}]\n",
    )
    flows.workflow("phases: [{name: b, bash: ls}]\n", "inner")

    loaded = flows.load()

    assert sorted(loaded) == ["inner", "outer"]
    (phase,) = loaded["outer"].definition.phases
    assert isinstance(phase.action, WorkflowAction)
    assert phase.action.definition == loaded["inner"].definition
    assert flows.errors() == []


def test_a_variable_of_the_environment_is_not_filled_in(flows: WorkflowFolder) -> None:
    flows.workflow("phases: [{name: a, agent: coder, prompt: '$${HOME}'}]\n")

    (phase,) = flows.definition().phases

    assert isinstance(phase.action, AgentAction)
    assert phase.action.prompt == "$${HOME}"


@pytest.mark.parametrize("word", ["true", "false or run.attempt > 1"])
def test_a_condition_may_be_a_plain_truth_value(flows: WorkflowFolder, word: str) -> None:
    flows.workflow(f"phases: [{{name: a, bash: ls, when: {word}}}]\n")

    assert flows.definition().phases[0].when == word


def test_other_files_beside_workflows_are_left_alone(flows: WorkflowFolder) -> None:
    flows.write("workflows/README.md", "# Notes")
    flows.write("workflows/.hidden.yaml", "{")
    flows.workflow("phases: [{name: a, bash: ls}]\n")

    assert sorted(flows.load()) == ["w"]
    assert flows.errors() == []


def test_a_fleet_without_workflows_has_none(flows: WorkflowFolder, tmp_path: Path) -> None:
    assert flows.load() == {}
    assert flows.errors() == []
    assert not (tmp_path / "workflows").exists()


def test_what_is_worth_saying_is_a_notice(flows: WorkflowFolder) -> None:
    flows.workflow(
        """\
        phases:
          - name: a
            bash: ls
            output: {type: string}
          - {name: b, bash: ls}
        """
    )

    assert flows.notices() == ["workflows/w.yaml:4:13 nothing reads the output of 'a'"]
    assert check_definition(flows.definition()) != ()
