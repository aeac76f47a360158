"""Shared sessions: what several journals together say about the one session their jobs were in."""

from __future__ import annotations

from dataclasses import replace

from nightherd.model.money import MicroUsd
from nightherd.model.session import Session, SessionMode, SessionStatus


def with_job(known: Session | None, found: Session) -> Session:
    """The session `known` so far, once one more job's journal tells of it as `found`.

    A session that one job was in may have been that job's own. With a second it was not: it is there for the
    next one. Jobs come oldest first.
    """
    if known is None:
        return found
    return replace(
        known,
        mode=SessionMode.PERSISTENT,
        status=SessionStatus.PAUSED,
        last_active_at=max(known.last_active_at, found.last_active_at),
        runtime_type=found.runtime_type,
        working_directory=found.working_directory or known.working_directory,
        runtime_session_id=found.runtime_session_id or known.runtime_session_id,
        cost_microusd=MicroUsd(known.cost_microusd + found.cost_microusd),
        job_count=known.job_count + found.job_count,
        turn_count=known.turn_count + found.turn_count,
        message_count=known.message_count + found.message_count,
        token_estimate=found.token_estimate or known.token_estimate,
    )
