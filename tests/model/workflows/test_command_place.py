"""Which agents a command looks to for its container: the nearest in the order of the file."""

from __future__ import annotations

import pytest

from nightherd.model.workflows.command_place import agents_near, asked_place
from nightherd.model.workflows.definition import (
    AgentAction,
    BlockAction,
    CommandAction,
    Language,
    Loop,
    Phase,
    UntilCommand,
    WorkflowAction,
    WorkflowDefinition,
)
from nightherd.model.workflows.node import NodeKey

AGAIN = Loop(max_iterations=2, until_command=UntilCommand(command="true", container="deep"))


def agent(name: str) -> Phase:
    return Phase(name=name, action=AgentAction(agent=name))


def command(name: str, container: str | bool | None = None) -> Phase:
    action = CommandAction(language=Language.BASH, command="true", container=container)
    return Phase(name=name, action=action)


INNER = WorkflowDefinition(name="inner", phases=(agent("below"),))
DEFINITION = WorkflowDefinition(
    name="build",
    phases=(
        command("first", container=False),
        agent("early"),
        agent("coder"),
        command("test"),
        Phase(
            name="block",
            loop=AGAIN,
            action=BlockAction(phases=(agent("deep"), command("check", container="coder"))),
        ),
        Phase(name="run", action=WorkflowAction(workflow="inner", definition=INNER)),
        command("last", container=True),
        agent("coder"),
        agent("late"),
    ),
)


@pytest.mark.parametrize(
    ("path", "agents"),
    [
        ("first", ["early", "coder", "deep", "below", "late"]),
        ("test", ["coder", "early", "deep", "below", "late"]),
        ("block[1]/check", ["deep", "coder", "early", "below", "late"]),
        ("block:until", ["deep", "coder", "early", "below", "late"]),
        ("last", ["below", "deep", "coder", "early", "late"]),
    ],
)
def test_last_agent_before_a_command_comes_first_and_those_after_it_last(
    path: str, agents: list[str]
) -> None:
    assert list(agents_near(DEFINITION, NodeKey(path))) == agents


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("first", False),
        ("test", None),
        ("block[2]/check", "coder"),
        ("block:until", "deep"),
        ("last", True),
        ("coder", None),
    ],
)
def test_place_is_what_the_phase_or_its_loop_says(path: str, asked: str | bool | None) -> None:
    assert asked_place(DEFINITION, NodeKey(path)) == asked
