"""What following the ledger and delivering notifications need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from nightherd.engine.contexts import NO_SECRETS, NoLog
from nightherd.model.inbox.item import ItemId
from nightherd.model.secrets import Secrets
from nightherd.next_step import SpellStep
from nightherd.ports import (
    ChangeFeed,
    Clock,
    Journals,
    OperatorLog,
    Probe,
    Sender,
    StateReader,
    StateWriter,
    no_probe,
)

AnswerLink = Callable[[ItemId, str], str | None]
"""The link by which the target's reader answers the item; None where there is none."""


def no_link(item: ItemId, target: str) -> str | None:
    """Return no link: messages show the commands alone."""
    return None


class NotifyContext(msgspec.Struct, frozen=True, kw_only=True):
    """The ports of a notifier."""

    state: StateWriter
    reader: StateReader
    journals: Journals
    feed: ChangeFeed
    ledger_end: Callable[[], int]
    """The number of the ledger's last change; cheap."""
    clock: Clock
    sender: Sender
    spell: SpellStep
    by: str
    """Who claims notifications: a name that no other process has."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    secrets: Secrets = NO_SECRETS
    link: AnswerLink = no_link
    is_whole: bool = True
    """Whether the fleet is all of the fleet file, and not some of its agents."""
    log: OperatorLog = msgspec.field(default_factory=NoLog)
    probe: Probe = no_probe
