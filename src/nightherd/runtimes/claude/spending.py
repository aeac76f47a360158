"""What a run used, from what Claude reports. Its totals go on counting over a session; ours begin with the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nightherd.model.units import PER_DOLLAR, MicroUsd
from nightherd.model.usage import NOTHING_USED, Usage


def usage_of(reported: Any) -> Usage:
    """Tokens as the API counts them; what is no number counts nothing."""
    if not isinstance(reported, Mapping):
        return NOTHING_USED
    return Usage(
        input_tokens=_count(reported.get("input_tokens")),
        output_tokens=_count(reported.get("output_tokens")),
        cache_creation_input_tokens=_count(reported.get("cache_creation_input_tokens")),
        cache_read_input_tokens=_count(reported.get("cache_read_input_tokens")),
    )


def at_least_nothing(usage: Usage) -> Usage:
    """`usage`, where it is more than nothing: two counts of one thing may differ a little."""
    counts = msgspec.structs.asdict(usage)
    return Usage(**{name: max(count, 0) for name, count in counts.items()})


class Spending:
    """Adds up the results of one run. `is_cost_known` turns false when only a session's total was reported."""

    def __init__(self, *, is_resumed: bool) -> None:
        self.models: dict[str, Usage] = {}
        self.is_cost_known = True
        self._is_resumed = is_resumed
        self._seen_total = 0
        self._unnamed = NOTHING_USED

    @property
    def usage(self) -> Usage:
        """All of it."""
        return sum(self.models.values(), self._unnamed)

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one `result` message: what was used since the one before."""
        since = result.get("model_usage_since_last_result")
        if isinstance(since, Mapping):
            for name, reported in since.items():
                self.models[str(name)] = self.models.get(str(name), NOTHING_USED) + _of_model(
                    reported
                )
            return
        # An older Claude: tokens are those of the run, but the cost is that of the whole session.
        total = _microusd(result.get("total_cost_usd"))
        cost = 0 if self._is_resumed else max(total - self._seen_total, 0)
        self.is_cost_known = self.is_cost_known and not (self._is_resumed and total)
        self._seen_total = total
        self._unnamed += usage_of(result.get("usage")) + Usage(cost_microusd=MicroUsd(cost))


def _of_model(reported: Any) -> Usage:
    if not isinstance(reported, Mapping):
        return NOTHING_USED
    return Usage(
        input_tokens=_count(reported.get("inputTokens")),
        output_tokens=_count(reported.get("outputTokens")),
        cache_creation_input_tokens=_count(reported.get("cacheCreationInputTokens")),
        cache_read_input_tokens=_count(reported.get("cacheReadInputTokens")),
        cost_microusd=MicroUsd(_microusd(reported.get("costUSD"))),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _microusd(value: Any) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < PER_DOLLAR:
        return round(value * PER_DOLLAR)
    return 0
