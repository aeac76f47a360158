"""Whether the fleet's bots can be started here, and how they do, as a check of the doctor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nightherd.engine.doctor.doctor import Check
from nightherd.errors import RefusedError
from nightherd.model.chat.settings import BotSettings
from nightherd.model.doctor import Finding, Level
from nightherd.views.chat.bots import BotView, trouble_text

NAME = "bots"


def bots_check(
    look: Callable[[], Sequence[BotView]],
    why_not_opened: Callable[[BotSettings], RefusedError | None],
) -> Check:
    """The check of bots on chat platforms; `look` returns the declared ones."""
    return Check(NAME, "bots on chat platforms", lambda: _findings(look(), why_not_opened))


def _findings(
    bots: Sequence[BotView], why_not_opened: Callable[[BotSettings], RefusedError | None]
) -> Iterator[Finding]:
    for bot in bots:
        refusal = why_not_opened(bot.settings)
        if refusal is not None:
            yield _finding(bot, refusal.message, refusal.hint)
            continue
        trouble = trouble_text(bot)
        if trouble is not None:
            yield _finding(bot, trouble, None)


def _finding(bot: BotView, message: str, remedy: str | None) -> Finding:
    return Finding(
        check=NAME, level=Level.WARNING, message=f"{bot.settings.bot}: {message}", remedy=remedy
    )
