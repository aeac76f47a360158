"""What the events of a job mean, for programs."""

from __future__ import annotations

from nightherd.model.event import Event, is_terminal


def is_terminal_message(event: Event) -> bool:
    """Whether the runtime has nothing more to say after this event: an error, or its end."""
    return is_terminal(event)
