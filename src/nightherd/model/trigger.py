"""Trigger: the reason a job exists."""

from __future__ import annotations

from enum import StrEnum


class TriggerType(StrEnum):
    """What started a job; calls of the API count as manual."""

    MANUAL = "manual"
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    CHAT = "chat"
    DISCORD = "discord"
    SLACK = "slack"
    WEB = "web"
    FORK = "fork"
    SPAWNED = "spawned"


EXECUTION_WORD = {
    TriggerType.MANUAL: "api",
    TriggerType.SCHEDULE: "cron",
    TriggerType.WEBHOOK: "webhook",
    TriggerType.CHAT: "chat",
    TriggerType.DISCORD: "chat",
    TriggerType.SLACK: "chat",
    TriggerType.WEB: "api",
    TriggerType.FORK: "api",
    TriggerType.SPAWNED: "api",
}
"""The word an execution's row has for each trigger: that table knows four kinds of cause."""
