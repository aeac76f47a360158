"""Limits in words: what is used of one, what is left, and what happens there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nightherd.model.checkpoint import Checkpoint
from nightherd.model.job import Job
from nightherd.model.limits import LimitName, OnLimit, amount_of, shown
from nightherd.views.limits import LimitView


def limit_text(one: LimitView) -> str:
    """What is used and left of a limit, and what happens there unless the job just waits."""
    then = "" if one.outcome == OnLimit.SUSPEND.value else f", then {one.outcome}"
    maximum = shown(one.name, one.maximum)
    if one.used is None or one.left is None:
        return f"{one.name.value}: {maximum} at most{then}"
    used, left = shown(one.name, one.used), shown(one.name, one.left)
    return f"{one.name.value}: {used} of {maximum}, {left} left{then}"


def suspension_text(kept: Mapping[str, Any]) -> str | None:
    """What a job waited for at a checkpoint, as the checkpoint keeps it."""
    code, until = str(kept.get("code") or ""), kept.get("until")
    known = code.removesuffix("_exceeded")
    value, maximum = kept.get("current_value"), kept.get("current_max")
    said = code
    if known in set(LimitName) and value is not None and maximum is not None:
        name = LimitName(known)
        said = f"{code}: {shown(name, amount_of(name, value))}, maximum {shown(name, amount_of(name, maximum))}"
    parts = [said, f"until {until}" if until else ""]
    return ", ".join(part for part in parts if part) or None


def tokens_text(used: Job | Checkpoint) -> str:
    """The tokens of a job by kind; those of the cache only when there are some."""
    text = f"{used.input_tokens} in, {used.output_tokens} out"
    if used.cache_creation_input_tokens:
        text += f", {used.cache_creation_input_tokens} cache write"
    if used.cache_read_input_tokens:
        text += f", {used.cache_read_input_tokens} cache read"
    return text
