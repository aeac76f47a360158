"""JSON values: what inputs, payloads, scratch and answers may hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def json_problem(value: Any) -> str | None:
    """Return why a value cannot be kept as JSON; None when it can. Python also reads and writes `NaN`, JSON does not."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, float) and not math.isfinite(part):
            return f"{part} is not a number of JSON"
        if isinstance(part, Mapping):
            unnamed = next((name for name in part if not isinstance(name, str)), None)
            if unnamed is not None:
                return f"the key {unnamed!r} is not a text"
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part
        elif part is not None and not isinstance(part, str | bool | int | float):
            return f"a {type(part).__name__} is not a value of JSON"
    return None
