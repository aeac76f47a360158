"""CommandSpec: what a command phase runs. It travels in the inputs of its job; its values never enter the command's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.decoding import convert
from nightherd.errors import InvalidValueError
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.runtime import RuntimeCapabilities, RuntimeName
from nightherd.model.workflows.definition import Language, OnInterrupt
from nightherd.model.workspaces.policy import SHARED, WorkspacePolicy

COMMANDS_AGENT = "workflow:commands"
"""The built-in agent whose jobs are commands. No declared agent can have this name."""
COMMANDS_RUNTIME = RuntimeName("command")
"""The built-in runtime that runs them. No declared agent can name it."""
SPEC_INPUT = "command"
"""The input of the job that holds the spec; other inputs may stand beside it."""
INTERRUPTED = "interrupted"
"""The error code of a command that was cut off, and may not run again."""
NOT_RUN_AGAIN = "rejected"
"""The error code of a command that was cut off, and that a person does not want run again."""
KILLED = "killed"
"""The error code of a command that was just cut off; its job continues with what `on_interrupt` says, if it may."""
CUT_OFF = frozenset({INTERRUPTED, NOT_RUN_AGAIN, KILLED})
_EXIT = re.compile(r"exit_([0-9]{1,3})", re.ASCII)


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One command, with the values it gets."""

    language: Language
    command: str
    """Its text, exactly as the definition has it."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables, added to the environment of agents."""
    stdin: str | None = None
    """None for an empty input."""
    on_interrupt: OnInterrupt = OnInterrupt.ASK
    is_condition: bool = False
    """Whether every exit code is an answer, and none a failure: the command decides whether a loop ends."""

    def to_inputs(self) -> dict[str, Any]:
        """Return the spec as inputs of a job."""
        return {SPEC_INPUT: msgspec.to_builtins(self)}

    @classmethod
    def from_inputs(cls, inputs: Mapping[str, Any]) -> CommandSpec:
        """Return the spec in the inputs of a job; `InvalidValueError` when there is none, or it cannot be run."""
        given = inputs.get(SPEC_INPUT)
        if given is None:
            raise InvalidValueError("the job has no command: only a workflow can submit one")
        try:
            spec = convert(given, cls)
        except msgspec.ValidationError as error:
            raise InvalidValueError(f"the job's command cannot be read: {error}") from error
        check_values(spec)
        return spec


def is_variable_name(name: str) -> bool:
    """Return whether an environment can have a variable of that name."""
    return bool(name) and "=" not in name and "\0" not in name


def check_values(spec: CommandSpec) -> None:
    """Raise `InvalidValueError` for what no process can be started with."""
    if "\0" in spec.command:
        raise InvalidValueError("the command holds a NUL character")
    for name, value in spec.env.items():
        if not is_variable_name(name):
            raise InvalidValueError(f"env: {name!r} is not the name of a variable")
        if "\0" in value:
            raise InvalidValueError(
                f"env: the value of {name} holds a NUL character; give it by stdin"
            )


def exit_stop_reason(exit_code: int) -> str:
    """Return the stop reason of an execution whose command ended with this exit code."""
    return f"exit_{exit_code}"


def exit_code_of(stop_reason: str | None) -> int | None:
    """Return the exit code that a stop reason says; None when the command did not come to its end."""
    match = _EXIT.fullmatch(stop_reason or "")
    return None if match is None else int(match[1])


def commands_agent(
    capabilities: RuntimeCapabilities,
    working_directory: str,
    *,
    max_concurrent: int,
    workspace: WorkspacePolicy = SHARED,
    repo: str | None = None,
) -> Agent:
    """Return the built-in agent whose jobs are commands: it has no tools, no servers, no hooks, and spawns nothing."""
    return Agent(
        name=COMMANDS_AGENT,
        runtime=capabilities,
        working_directory=working_directory,
        workspace=workspace,
        repo=repo,
        description="Runs the commands of workflows.",
        max_concurrent=max_concurrent,
        permission_mode="dontAsk",
        tools=(),
    )
