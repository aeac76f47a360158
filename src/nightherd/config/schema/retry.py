"""`retry`: how jobs wait for failures that can pass."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from nightherd.config.schema.types import Count, Model, Span


class Retry(Model):
    """Tries and pauses after rate limits, overload and outages; a time that the provider names counts first."""

    attempts: Count = Field(
        5, description="Quick tries without a finished turn before the job pauses."
    )
    first_pause: Span = Field(
        timedelta(minutes=2),
        description="The first pause after the quick tries; each further one is twice as long.",
    )
    longest_pause: Span = Field(timedelta(hours=1), description="The longest of these pauses.")
    max_wait: Span = Field(
        timedelta(hours=24),
        description="How long after the first failure the job tries again by itself; then it waits for you.",
    )
