"""Sessions that came from elsewhere: what was said in them goes on record when somebody first asks for it."""

from __future__ import annotations

import anyio

from nightherd.cli.import_command import fleet_if_any
from nightherd.cli.invocation import Invocation
from nightherd.engine.retelling import Retold, retell_import
from nightherd.model.session import Session
from nightherd.wiring.care import open_retelling


def told(invocation: Invocation, session: Session) -> Session:
    """The session with everything on record that its transcript was imported with."""
    state, fleet = invocation.state_directory(), fleet_if_any(invocation)

    async def tell() -> Retold:
        async with open_retelling(state, fleet, invocation.environ) as retelling:
            return await retell_import(session, retelling)

    return anyio.run(tell).session
