"""The bots of the fleet, as `nightherd status` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nightherd.cli.screen.render import Screen, length, one_line, status_cell, table
from nightherd.views.chat.bots import BotView, trouble_text

HEADING = ("BOT", "STATUS", "SINCE", "NAME", "WAITING", "ABOUT")


def show_bots_table(bots: Sequence[BotView], screen: Screen, now: datetime) -> None:
    """Show each bot on a line, those with trouble too."""
    rows = [_cells(bot, now) for bot in bots]
    screen.show(table(HEADING, rows, width=screen.width, style=screen.out))


def _cells(bot: BotView, now: datetime) -> tuple[str, ...]:
    return (
        bot.settings.bot,
        status_cell(bot.status.value),
        "-" if bot.since is None else length(now - bot.since),
        one_line((bot.row.name if bot.row is not None else None) or "-"),
        str(bot.waiting),
        one_line(trouble_text(bot) or "-"),
    )
