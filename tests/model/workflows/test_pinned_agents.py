"""What a run keeps of its agents: every setting that decides what they do, and no secret."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from engine.bench import AGENT
from model.workflows.workflow_values import agent, bash, gate, workflow
from nightherd.model.agents.agent import Agent
from nightherd.model.secrets import find_secrets
from nightherd.model.workflows.conductor.pinned import (
    PINNED_FIELDS,
    pin,
    pinned_settings,
    read_pinned,
)
from nightherd.model.workspaces.policy import SHARED
from nightherd.testing.state_values import BEGINNING

SECRETS = find_secrets({"API_TOKEN": "correct-horse-battery"})
CODER = replace(
    AGENT,
    allowed_tools=("Bash", "Edit"),
    denied_tools=("Write",),
    add_dirs=("/srv/other",),
    workspace=SHARED,
    system_prompt="Be kind.",
)


def settings_of(one: Agent) -> dict[str, object]:
    pinned = pin(workflow(agent("a")), {one.name: one}, SECRETS.mask, BEGINNING, "/srv")
    return dict(pinned_settings(pinned.body, one.name))


def test_every_setting_comes_back_as_it_was_where_secrets_are_known() -> None:
    assert SECRETS.pattern is not None

    found = settings_of(CODER)

    assert found == {name: getattr(CODER, name) for name in PINNED_FIELDS}


def test_secret_in_the_texts_of_a_workflow_is_masked() -> None:
    telling = workflow(
        agent("a", "Use correct-horse-battery."),
        bash("b", env={"KEY": "correct-horse-battery"}, timeout=timedelta(minutes=1)),
        gate("c", needs="a b"),
    )

    pinned = pin(telling, {CODER.name: CODER}, SECRETS.mask, BEGINNING, "/srv")

    assert "correct-horse-battery" not in pinned.body
    first, second, third = read_pinned(pinned.body).definition.phases
    assert first.action == replace(telling.phases[0].action, prompt="Use [secret:API_TOKEN].")
    assert second.timeout == timedelta(minutes=1)
    assert third == telling.phases[2]


def test_setting_that_holds_a_secret_is_not_kept() -> None:
    telling = replace(CODER, system_prompt="Say correct-horse-battery.")

    found = settings_of(telling)

    assert set(PINNED_FIELDS) - set(found) == {"system_prompt"}
    assert "correct-horse-battery" not in str(found)
