"""Workflows and acceptance: a new or changed workflow waits for a person, all but words for people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.permissions.grants import FleetGrants, grants_of, may_write
from nightherd.model.permissions.restrain import restrained
from nightherd.model.permissions.widening import narrowed, widenings
from nightherd.model.permissions.workflows import workflow_fingerprint
from nightherd.model.workflows.definition import (
    AgentAction,
    BlockAction,
    CommandAction,
    GateAction,
    Language,
    Messages,
    Phase,
    WorkflowAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.triggers import InputSpec, MessageTrigger, Triggers
from nightherd.model.workspaces.policy import WorkspaceMode, WorkspacePolicy
from nightherd.runtimes.claude.capabilities import SDK

HOME = "/fleet"
CODE = Phase(name="code", action=AgentAction(agent="a", prompt="Do it.", skill_text="Tidy."))
TEST = Phase(
    name="test",
    depends_on=("code",),
    action=CommandAction(language=Language.BASH, command="make test"),
)
SUB = WorkflowDefinition(name="sub", phases=(TEST,))
ASK = Phase(name="ask", depends_on=("test",), action=GateAction(summary="Push?"))
BUILD = WorkflowDefinition(
    name="build",
    description="Builds.",
    inputs={"title": InputSpec(description="What to do.")},
    phases=(
        CODE,
        TEST,
        ASK,
        Phase(name="more", action=BlockAction(phases=(CODE,))),
        Phase(name="sub", action=WorkflowAction(workflow="sub", definition=SUB)),
    ),
    triggers=Triggers(webhooks={"github": MessageTrigger()}),
    working_directory="/fleet/app",
    workspace=WorkspacePolicy(mode=WorkspaceMode.WORKTREE),
)
AGENT = Agent(name="a", runtime=SDK, working_directory="/elsewhere", permission_mode="default")
FLEET = Fleet(file="/fleet/nightherd.yaml", agents={"a": AGENT}, workflows={"build": BUILD})


def with_phase(place: int, **changes: Any) -> WorkflowDefinition:
    phases = list(BUILD.phases)
    phases[place] = replace(phases[place], **changes)
    return replace(BUILD, phases=tuple(phases))


def with_sub(phase: Phase) -> WorkflowDefinition:
    action = WorkflowAction(workflow="sub", definition=replace(SUB, phases=(phase,)))
    return with_phase(4, action=action)


WIDER = {
    "command": with_phase(1, action=CommandAction(language=Language.BASH, command="evil")),
    "prompt": with_phase(0, action=replace(CODE.action, prompt="Do evil.")),
    "skill": with_phase(0, action=replace(CODE.action, skill_text="Evil.")),
    "other agent": with_phase(0, action=replace(CODE.action, agent="b")),
    "phase in a block": with_phase(3, action=BlockAction(phases=(CODE, TEST))),
    "sub-workflow": with_sub(replace(TEST, timeout=timedelta(hours=1))),
    "gate without its approvers": with_phase(2, action=GateAction(summary="Fine?")),
    "no gate": replace(BUILD, phases=BUILD.phases[:2]),
    "rule": with_phase(2, retries=1),
    "trigger": replace(BUILD, triggers=Triggers()),
    "input": replace(BUILD, inputs={}),
    "directory": replace(BUILD, working_directory="/fleet"),
    "shared directory": replace(BUILD, workspace=WorkspacePolicy()),
}
WORDS = {
    "description": replace(BUILD, description="Builds it."),
    "input's description": replace(BUILD, inputs={"title": InputSpec(description="Else.")}),
    "label": with_phase(0, label="Code it"),
    "messages": with_phase(0, messages=Messages(on_start="hi")),
    "words in a block": with_phase(3, action=BlockAction(phases=(replace(CODE, label="x"),))),
    "words of a sub-workflow": with_sub(replace(TEST, messages=Messages(on_failure="oh"))),
}


def fleet_with(*definitions: WorkflowDefinition) -> Fleet:
    return replace(FLEET, workflows={one.name: one for one in definitions})


def beyond(accepted: FleetGrants, fleet: Fleet) -> list[str]:
    return [one.text for one in widenings(accepted, grants_of(fleet), HOME)]


@pytest.mark.parametrize("name", WIDER)
def test_a_changed_workflow_stays_as_it_was_until_a_person_accepts_it(name: str) -> None:
    accepted, changed = grants_of(FLEET), fleet_with(WIDER[name])

    held = restrained(changed, accepted, FLEET)
    restarted = restrained(changed, accepted)

    assert beyond(accepted, changed) == ["workflow build changed"]
    assert (dict(held.workflows), held.withheld_workflows) == ({"build": BUILD}, frozenset())
    assert (restarted.workflows, restarted.withheld_workflows) == ({}, frozenset({"build"}))
    after = narrowed(accepted, grants_of(changed), HOME)
    assert beyond(after, FLEET) == []
    assert beyond(after, changed) == ["workflow build changed"]


@pytest.mark.parametrize("name", WORDS)
def test_words_for_people_are_taken_as_they_are(name: str) -> None:
    accepted, changed = grants_of(FLEET), fleet_with(WORDS[name])

    assert beyond(accepted, changed) == []
    assert restrained(changed, accepted, FLEET).workflows == {"build": WORDS[name]}


def test_a_new_workflow_stays_away_and_the_others_stay() -> None:
    accepted, fleet = grants_of(FLEET), fleet_with(BUILD, SUB)

    for before in (None, FLEET):
        held = restrained(fleet, accepted, before)
        assert (list(held.workflows), held.withheld_workflows) == (["build"], frozenset({"sub"}))
    assert beyond(accepted, fleet) == ["workflow sub is new"]


def test_a_workflow_that_is_removed_is_gone_and_new_when_it_comes_back() -> None:
    accepted, without = grants_of(FLEET), fleet_with()

    after = narrowed(accepted, grants_of(without), HOME)

    assert beyond(accepted, without) == []
    assert restrained(without, accepted, FLEET).workflows == {}
    assert beyond(after, FLEET) == ["workflow build is new"]


def test_workflows_of_a_fleet_that_was_moved_are_the_same() -> None:
    inner = replace(BUILD, home="/fleet/sub")
    moved = replace(BUILD, home="/other/sub", working_directory="/other/app")
    fleet = replace(FLEET, file="/other/nightherd.yaml", workflows={"build": moved})

    assert grants_of(fleet) == grants_of(fleet_with(inner))
    assert beyond(grants_of(FLEET), fleet_with(inner)) == ["workflow build changed"]


def test_a_record_from_before_there_were_workflows_has_accepted_none() -> None:
    record = msgspec.to_builtins(grants_of(FLEET))
    del record["workflows"], record["workflow_directories"]

    accepted = msgspec.convert(record, FleetGrants)

    assert beyond(accepted, FLEET) == ["workflow build is new"]


def test_agents_may_write_where_a_workflow_has_them_work() -> None:
    assert may_write(grants_of(FLEET), HOME, "/fleet/app/workflows/x.yaml")
    assert not may_write(grants_of(FLEET), HOME, "/fleet/nightherd.yaml")
    assert may_write(grants_of(fleet_with(WIDER["directory"])), HOME, "/fleet/nightherd.yaml")


def test_a_fingerprint_has_only_what_is_not_as_by_default() -> None:
    bare = WorkflowDefinition(name="w", phases=(Phase(name="p", action=TEST.action),))

    assert workflow_fingerprint(bare, HOME) == "62d1aba795210bb7e87ce3961321894c"
