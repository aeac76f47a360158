"""The runtime of commands is there for nightherd itself, and for nobody who writes a fleet file or submits jobs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import Bench
from nightherd.engine.operations.requests import Submit
from nightherd.engine.operations.submit import submit
from nightherd.errors import ConfigInvalidError, RefusedError
from nightherd.model.workflows.command import (
    COMMANDS_AGENT,
    COMMANDS_RUNTIME,
    commands_agent,
)
from nightherd.runtimes.command.capabilities import COMMAND
from nightherd.runtimes.command.runtime import CommandRuntime
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.runtimes import (
    can_run,
    find_capabilities,
    keeps_claude_transcripts,
    runtime_for,
    runtime_names,
)
from runtimes.command.command_stage import bash


def test_a_worker_has_the_runtime(tmp_path: Path) -> None:
    made = runtime_for(COMMANDS_RUNTIME, Keepers(), tmp_path, timedelta(seconds=1))

    assert isinstance(made, CommandRuntime)
    assert can_run(COMMANDS_RUNTIME)


def test_no_list_of_runtimes_names_it() -> None:
    assert COMMANDS_RUNTIME not in runtime_names()
    assert find_capabilities(COMMANDS_RUNTIME) is None
    assert not keeps_claude_transcripts(COMMANDS_RUNTIME)


def test_an_agent_of_a_fleet_file_cannot_name_it(tmp_path: Path) -> None:
    file = tmp_path / "nightherd.yaml"
    file.write_text("agents:\n  - name: shell\n    runtime: command\n    default_prompt: rm\n")

    with pytest.raises(ConfigInvalidError) as raised:
        load_fleet(file, environ={}, cwd=tmp_path)

    (problem,) = raised.value.problems
    assert (problem.place.line, problem.place.column) == (3, 14)
    assert "'command' is not one of" in problem.message


@pytest.mark.parametrize("name", [COMMANDS_AGENT, "workflow:x"])
def test_an_agent_of_a_fleet_file_cannot_have_a_name_like_it(tmp_path: Path, name: str) -> None:
    file = tmp_path / "nightherd.yaml"
    file.write_text(f'agents:\n  - name: "{name}"\n    runtime: cli\n')

    with pytest.raises(ConfigInvalidError):
        load_fleet(file, environ={}, cwd=tmp_path)


def test_a_request_cannot_submit_a_command() -> None:
    agent = commands_agent(COMMAND, "/srv", max_concurrent=1)
    bench = Bench(agent=agent)
    context = replace(bench.context, agents={agent.name: agent})
    request = Submit(agent=agent.name, prompt="true", inputs=bash("true").to_inputs())

    with pytest.raises(RefusedError, match="only workflows run commands"):
        anyio.run(submit, request, context)
