"""A run that a test tells step by step: what ends how, and what follows each time."""

from __future__ import annotations

from typing import Any

from model.workflows.reference_run import Key, Outcome
from model.workflows.simulated_run import SimulatedRun, plain
from model.workflows.workflow_values import (
    workflow,
)
from nightherd.model.workflows.definition import (
    Phase,
)
from nightherd.model.workflows.node import NodeKey
from nightherd.model.workflows.triggers import InputSpec, InputType, RunTrigger

TYPES = {
    str: InputType.TEXT,
    int: InputType.NUMBER,
    bool: InputType.BOOLEAN,
    list: InputType.LIST,
    type(None): InputType.LIST,
}


class Story:
    """A run that a test tells: what ends how, and what follows each time."""

    def __init__(
        self,
        *phases: Phase,
        inputs: dict[str, Any] | None = None,
        trigger: RunTrigger | None = None,
    ) -> None:
        self.table: dict[Key, Outcome] = {}
        declared = {
            name: InputSpec(type=TYPES[type(value)]) for name, value in (inputs or {}).items()
        }
        self.run = SimulatedRun(
            workflow(*phases, inputs=declared),
            inputs or {},
            self.table.__getitem__,
            trigger=trigger or RunTrigger(),
        )
        self.steps = self.run.advance().steps

    @property
    def status(self) -> str:
        return self.run.run.status.value

    @property
    def said(self) -> list[str]:
        """The last steps in short: the kind of each and its key."""
        return [f"{type(step).__name__} {step.key}" for step in self.steps]

    def end(
        self, path: str, status: str = "succeeded", output: Any = None, **more: Any
    ) -> list[str]:
        """End the one open node that is written `path`, and say what follows."""
        keys = [key for key in self.run.open_nodes() if str(key) == path]
        assert len(keys) == 1, (path, [str(key) for key in self.run.open_nodes()])
        self.table[plain(keys[0])] = Outcome(status, output, **more)
        self.run.end(keys[0])
        self.steps = self.run.advance().steps
        return self.said

    def error_of(self, path: str) -> str | None:
        return self.run.nodes[NodeKey(path)].error
