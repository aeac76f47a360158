"""From a checked `session` section, of an agent or of a schedule, to the terms that the engine goes by."""

from __future__ import annotations

from nightherd.config.schema.session import Session
from nightherd.model.session import SessionMode
from nightherd.model.session_terms import DEFAULT_CONTEXT_WINDOW, SessionTerms


def resolve_session(session: Session) -> SessionTerms:
    """What the section says, gaps filled."""
    window = session.context_window
    return SessionTerms(
        mode=SessionMode(session.mode),
        timeout=session.timeout,
        idle_timeout=session.idle_timeout,
        max_context_tokens=session.max_context_tokens,
        context_window=DEFAULT_CONTEXT_WINDOW if window is None else window,
        auto_resume=session.auto_resume,
        resume_timeout=session.resume_timeout,
        max_turns=session.max_turns,
        model=session.model,
    )
