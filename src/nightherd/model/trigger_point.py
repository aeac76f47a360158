"""TriggerPoint: the places in a run at which a checkpoint can be made."""

from __future__ import annotations

from enum import StrEnum


class TriggerPoint(StrEnum):
    """Where a run is."""

    PRE_TURN = "pre_turn"
    POST_LLM = "post_llm"
    POST_TOOLS = "post_tools"
    ON_SUSPEND = "on_suspend"
    ON_ERROR = "on_error"
    ON_CANCEL = "on_cancel"
