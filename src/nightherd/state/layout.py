"""The names of what a state directory holds (docs/formats/state.md)."""

from __future__ import annotations

DATABASE = "nightherd.db"
WRITE_LOCK = "write.lock"
JOBS = "jobs"
SESSIONS = "sessions"
LOGS = "logs"
LEDGER = "ledger"
BLOBS = "blobs"
GITIGNORE = ".gitignore"
STATE_FILE = "state.yaml"
DAMAGED_ROWS = "damaged-rows.jsonl"
NOTED_DAMAGE = "noted-damage.jsonl"
