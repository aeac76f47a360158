"""What our own turn loop can do."""

from __future__ import annotations

from nightherd.model.agents.runtime import CostSource, LoginKind, RuntimeCapabilities, RuntimeName

NATIVE = RuntimeCapabilities(
    name=RuntimeName("native"),
    package="pydantic_ai",
    extra="native",
    login=LoginKind.PROVIDER_KEY,
    cost=CostSource.MODEL_PRICE,
    needs_model=True,
    takes_script=True,
    asks_before_turns=True,
    records_every_step=True,
    repeats_calls=True,
    checks_every_call=True,
    checks_tools=True,
    asks_people=True,
    summarises=True,
    takes_servers=True,
)
