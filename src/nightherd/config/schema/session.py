"""`session`: how an agent's jobs share context."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nightherd.config.schema.types import Count, Flag, Model, Span, Text
from nightherd.model.session import SessionMode

Mode = Literal["fresh_per_job", "persistent", "per_channel"]


class Session(Model):
    """How jobs share context, and how long that context lives."""

    mode: Mode = Field(
        SessionMode.FRESH_PER_JOB.value,
        description="fresh_per_job starts every job clean, persistent keeps one session for all jobs, per_channel one for each chat channel.",
    )
    timeout: Span | None = Field(
        None,
        description="How old a session may grow before a new one begins; without idle_timeout, how long it may go unused; under fresh_per_job, how long a job may run.",
    )
    idle_timeout: Span | None = Field(
        None,
        description="How long a session may go unused before a new one begins; a day when neither is given.",
    )
    max_context_tokens: Count | None = Field(
        None, description="Tokens of context beyond which older messages are summarised."
    )
    context_window: Count | None = Field(
        None,
        description="How many of the latest messages a summary leaves as they are; 20 when absent.",
    )
    auto_resume: Flag = Field(True, description="Whether an interrupted job goes on by itself.")
    resume_timeout: Span | None = Field(
        None, description="How long after the interruption a job still goes on by itself."
    )
    max_turns: Count | None = Field(
        None, description="Turns a job may take when the agent does not say so itself."
    )
    model: Text | None = Field(None, description="Model when the agent does not name one itself.")
