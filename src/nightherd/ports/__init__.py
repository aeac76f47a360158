"""THE DOORWAYS: what the engine and the views need from the world, as small protocols.

Reading state is synchronous, writing and running are asynchronous; nothing has both. Adapters implement
these in the ring outside; `wiring` chooses them; `nightherd.testing` has a contract suite for each.
"""

from __future__ import annotations

from nightherd.ports.hooks import HookCall, HookCarrier, HookResult
from nightherd.ports.journal import (
    BadLine,
    Findings,
    FinishedJournals,
    Journal,
    Journals,
    NoTranscripts,
    Tail,
    TranscriptDraft,
    Transcripts,
    TranscriptShelf,
    Wait,
)
from nightherd.ports.runtime import (
    Runtime,
    RuntimeFork,
    RuntimeRequest,
    no_history,
    no_limit,
    nothing_at,
)
from nightherd.ports.state import (
    ChangeFeed,
    FleetReader,
    JobList,
    JobReader,
    LedgerEntry,
    Mirror,
    SessionReader,
    SpendingReader,
    StateReader,
    StateWriter,
)
from nightherd.ports.world import Clock, OperatorLog, Probe, Process, no_probe, process_of

__all__ = [
    "BadLine",
    "ChangeFeed",
    "Clock",
    "Findings",
    "FinishedJournals",
    "FleetReader",
    "HookCall",
    "HookCarrier",
    "HookResult",
    "JobList",
    "JobReader",
    "Journal",
    "Journals",
    "LedgerEntry",
    "Mirror",
    "NoTranscripts",
    "OperatorLog",
    "Probe",
    "Process",
    "Runtime",
    "RuntimeFork",
    "RuntimeRequest",
    "SessionReader",
    "SpendingReader",
    "StateReader",
    "StateWriter",
    "Tail",
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
