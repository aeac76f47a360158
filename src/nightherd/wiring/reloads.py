"""Reloads that wait for a person: held to what is accepted, also in the inbox, and asked about there."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from nightherd.wiring.stores import open_reader, open_store, system_clock

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from nightherd.config.acceptance import Admission
    from nightherd.engine.inbox.reloads import HeldReload
    from nightherd.model.agents.agent import Fleet


def admit_answered(
    fleet: Fleet,
    state_dir: Path,
    *,
    at: datetime,
    before: Fleet | None = None,
    is_accepted: bool = False,
) -> Admission:
    """Hold the fleet to what was accepted, as `admit` does; what a person accepted in the inbox takes effect now.

    So an answer takes effect whichever process loads the files next, and also when the one that took it was killed.
    """
    from nightherd.config.acceptance import admit
    from nightherd.engine.inbox import reloads

    found = admit(fleet, state_dir, at=at, before=before, is_accepted=is_accepted)
    if not found.pending:
        return found
    with closing(open_reader(state_dir)) as reader:
        if not reloads.is_accepted(held_by(found), reader):
            return found
    return admit(fleet, state_dir, at=at, before=before, is_accepted=True)


def held_by(admission: Admission) -> HeldReload:
    """What the inbox has to ask about after a fleet was admitted."""
    from nightherd.engine.inbox.reloads import HeldReload

    return HeldReload(
        subject=admission.subject,
        key=admission.key,
        changes=tuple(admission.pending_texts),
    )


async def ask_about(held: HeldReload, state_dir: Path) -> None:
    """Put what is held into the inbox, and take out what is not any more. Writes only where something changes."""
    from nightherd.engine.inbox.reloads import changes_for

    clock = system_clock()
    with closing(open_reader(state_dir)) as reader:
        changes = changes_for(held, reader, clock.now())
    if changes:
        state = open_store(state_dir, clock)
        try:
            await state.apply(changes)
        finally:
            await state.close()
