"""Counters: what the server has done since it began, for `/metrics`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class Counters:
    """Numbers that only grow, and how many follow at this moment."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Answers by method and status."""
    deliveries: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Messages that came in, by endpoint and what became of them."""
    followers: int = 0
    """Streams that are open now."""
    events_sent: int = 0
    tokens_used: dict[str, datetime] = field(default_factory=dict)
    """When each named token was shown last, by its hash; browsers that logged in with it show it too."""
