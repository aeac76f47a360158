"""Upgrade of the mirror's memory: version 1 took a fork for the session that its agent continues."""

from __future__ import annotations

from nightherd.errors import StateFileError
from nightherd.mirror.behind import VERSION
from nightherd.mirror.images import SESSIONS, SessionImage, read_image
from nightherd.mirror.memory import Memory, Pending, current_session
from nightherd.ports import ChangeFeed


def upgrade(memory: Memory, feed: ChangeFeed, pending: Pending) -> None:
    """Read the sessions again, correct which one each agent continues, and note the files to be written for it."""
    for entry in feed.read():
        if entry.change > memory.change:
            break
        for table, row in entry.rows:
            if table != SESSIONS:
                continue
            try:
                image = read_image(table, row)
            except StateFileError:
                continue  # reported when its change was mirrored, and left out
            if isinstance(image, SessionImage) and image.id in memory.sessions:
                memory.sessions[image.id].image = image
    for name, agent in memory.agents.items():
        agent.persistent = current_session(memory, name)
        if agent.shown_session is not None:
            pending.agent_sessions.add(name)
    memory.v = VERSION
    pending.is_state_due = True
