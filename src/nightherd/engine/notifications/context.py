"""What following the ledger and delivering notifications need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from nightherd.engine.contexts import NO_SECRETS, NoLog
from nightherd.model.ids import RandomText
from nightherd.model.secrets import Secrets
from nightherd.next_step import SpellStep
from nightherd.ports import (
    ChangeFeed,
    Clock,
    Journals,
    OperatorLog,
    Probe,
    PushSender,
    Sender,
    StateReader,
    StateWriter,
    no_probe,
)


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
    pushes: PushSender
    spell: SpellStep
    by: str
    """Who claims notifications: a name that no other process has."""
    random_text: RandomText
    """For the secrets in answer links."""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    secrets: Secrets = NO_SECRETS
    is_whole: bool = True
    """Whether the fleet is all of the fleet file, and not some of its agents."""
    log: OperatorLog = msgspec.field(default_factory=NoLog)
    probe: Probe = no_probe
