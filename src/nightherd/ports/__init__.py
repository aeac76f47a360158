"""THE DOORWAYS: what the engine and the views need from the world, as small protocols.

Reading state is synchronous, writing and running are asynchronous; nothing has both. Adapters implement
these in the ring outside; `wiring` chooses them; `nightherd.testing` has a contract suite for each.
"""

from __future__ import annotations

from nightherd.ports.hooks import HookCall, HookCarrier, HookResult
from nightherd.ports.journal import (
    BadLine,
    CallLater,
    Findings,
    FinishedJournals,
    Journal,
    Journals,
    LiveText,
    NoTranscripts,
    Tail,
    TextTail,
    Timer,
    TranscriptDraft,
    Transcripts,
    TranscriptShelf,
    Wait,
)
from nightherd.ports.notifications import Outgoing, Send, Sender, SendResult
from nightherd.ports.runtime import (
    NoTextStream,
    Runtime,
    RuntimeFork,
    RuntimeRequest,
    TextStream,
    no_history,
    no_limit,
    nothing_at,
)
from nightherd.ports.state import (
    ChangeFeed,
    FleetReader,
    InboxReader,
    JobList,
    JobReader,
    LedgerEntry,
    Mirror,
    NotificationReader,
    SessionReader,
    SpendingReader,
    StateReader,
    StateWriter,
)
from nightherd.ports.world import Clock, OperatorLog, Probe, Process, no_probe, process_of

__all__ = [
    "BadLine",
    "CallLater",
    "ChangeFeed",
    "Clock",
    "Findings",
    "FinishedJournals",
    "FleetReader",
    "HookCall",
    "HookCarrier",
    "HookResult",
    "InboxReader",
    "JobList",
    "JobReader",
    "Journal",
    "Journals",
    "LedgerEntry",
    "LiveText",
    "Mirror",
    "NoTextStream",
    "NoTranscripts",
    "NotificationReader",
    "OperatorLog",
    "Outgoing",
    "Probe",
    "Process",
    "Runtime",
    "RuntimeFork",
    "RuntimeRequest",
    "Send",
    "SendResult",
    "Sender",
    "SessionReader",
    "SpendingReader",
    "StateReader",
    "StateWriter",
    "Tail",
    "TextStream",
    "TextTail",
    "Timer",
    "TranscriptDraft",
    "TranscriptShelf",
    "Transcripts",
    "Wait",
    "no_history",
    "no_limit",
    "no_probe",
    "nothing_at",
    "process_of",
]
