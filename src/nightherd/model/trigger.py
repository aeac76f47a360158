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
