"""What the runtime of commands can do."""

from __future__ import annotations

from nightherd.model.agents.runtime import CostSource, RuntimeCapabilities
from nightherd.model.workflows.command import COMMANDS_RUNTIME

COMMAND = RuntimeCapabilities(
    name=COMMANDS_RUNTIME,
    # It asks no model and costs nothing, so limits of dollars do not stop it.
    cost=CostSource.REPORTED,
    uses_model=False,
    # There is no turn after the command: a limit that is reached never takes its end from it.
    asks_before_turns=True,
    checks_tools=True,
    asks_people=True,
)
