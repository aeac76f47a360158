"""The spec of a command: it comes back from the inputs of a job as it was, and its exit code from a stop reason."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import InvalidValueError
from nightherd.model.agents.runtime import RuntimeCapabilities
from nightherd.model.permissions.permission import Denied, decide, permissions_of
from nightherd.model.workflows.command import (
    COMMANDS_AGENT,
    COMMANDS_RUNTIME,
    CommandSpec,
    commands_agent,
    exit_code_of,
    exit_stop_reason,
)
from nightherd.model.workflows.definition import Language, OnInterrupt

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)
specs = st.builds(
    CommandSpec,
    language=st.sampled_from(Language),
    command=texts,
    env=st.dictionaries(names, texts),
    stdin=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    on_interrupt=st.sampled_from(OnInterrupt),
    is_condition=st.booleans(),
)


@given(spec=specs)
def test_a_spec_comes_back_from_the_inputs_of_a_job(spec: CommandSpec) -> None:
    stored = msgspec.json.decode(msgspec.json.encode({**spec.to_inputs(), "issue_number": 7}))

    assert CommandSpec.from_inputs(stored) == spec


@pytest.mark.parametrize(
    "inputs", [{}, {"command": "true"}, {"command": {"language": "bash"}}, {"command": []}]
)
def test_inputs_without_a_spec_are_an_error(inputs: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        CommandSpec.from_inputs(inputs)


@given(exit_code=st.integers(0, 255))
def test_an_exit_code_comes_back_from_its_stop_reason(exit_code: int) -> None:
    assert exit_code_of(exit_stop_reason(exit_code)) == exit_code


@pytest.mark.parametrize("reason", [None, "", "end_turn", "exit_", "exit_x", "exit_-1", "exit_٣"])
def test_other_stop_reasons_say_no_exit_code(reason: str | None) -> None:
    assert exit_code_of(reason) is None


def test_the_built_in_agent_may_do_nothing_else() -> None:
    agent = commands_agent(
        RuntimeCapabilities(name=COMMANDS_RUNTIME), "/srv/repo", max_concurrent=3
    )

    assert (agent.name, agent.max_concurrent) == (COMMANDS_AGENT, 3)
    for tool in ("Bash", "Read", "Write", "Spawn"):
        call = {"command": "true", "file_path": "/srv/repo/a"}
        assert isinstance(decide(permissions_of(agent), tool, call), Denied)
