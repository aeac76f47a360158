"""What the player of scripts can do."""

from __future__ import annotations

from nightherd.model.agents.runtime import CostSource, RuntimeCapabilities, RuntimeName

SCRIPTED = RuntimeCapabilities(
    name=RuntimeName("scripted"),
    cost=CostSource.REPORTED,
    uses_model=False,
    takes_script=True,
    needs_script=True,
    asks_before_turns=True,
    repeats_calls=True,
    checks_every_call=True,
    checks_tools=True,
    asks_people=True,
    takes_servers=True,
)
