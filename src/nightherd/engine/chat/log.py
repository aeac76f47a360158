"""What a bot writes to the operator log, as far as its settings want it."""

from __future__ import annotations

from typing import Any

from nightherd.engine.chat.context import ChatContext
from nightherd.model.chat.settings import LogLevel as Detail
from nightherd.model.log import LogLevel, LogLine

ORDER = (Detail.MINIMAL, Detail.STANDARD, Detail.VERBOSE)


def write_log(
    context: ChatContext,
    event: str,
    message: str | None = None,
    *,
    detail: Detail = Detail.MINIMAL,
    level: LogLevel = LogLevel.INFO,
    job: str | None = None,
    **data: Any,
) -> None:
    """Write a line if the bot's `log_level` is `detail` or more."""
    settings = context.settings
    if ORDER.index(settings.log_level) < ORDER.index(detail):
        return
    masked = None if message is None else str(context.fleet.secrets.mask(message))
    line = LogLine(
        at=context.fleet.clock.now(),
        level=level,
        event=f"chat.{event}",
        agent=settings.agent,
        job=job,
        message=masked,
        data={"bot": settings.bot, **data},
    )
    context.fleet.log.write(line)
