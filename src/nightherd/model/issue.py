"""The issue or pull request a job is about, as its inputs or a webhook's payload name it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

INPUT_NAMES = ("issue_number", "issue")
PAYLOAD_NAMES = ("issue", "pull_request")
LARGEST = 2**53
NUMBER = re.compile(r"#?([0-9]{1,15})", re.ASCII)


def issue_of_inputs(inputs: Mapping[str, Any]) -> int | None:
    """Return the number in the input `issue_number` or `issue`; None when neither is a number."""
    numbers = (_number(inputs.get(name)) for name in INPUT_NAMES)
    return next((number for number in numbers if number is not None), None)


def issue_of_payload(payload: Any) -> int | None:
    """Return the number of the issue or pull request that a webhook's payload is about."""
    if not isinstance(payload, Mapping):
        return None
    subjects = (payload.get(name) for name in PAYLOAD_NAMES)
    numbers = (_number(one.get("number")) for one in subjects if isinstance(one, Mapping))
    return next((number for number in numbers if number is not None), None)


def _number(value: Any) -> int | None:
    if isinstance(value, str):
        match = NUMBER.fullmatch(value)
        value = int(match[1]) if match is not None else None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 < value <= LARGEST else None
