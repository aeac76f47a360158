"""The SDK's session store, in files: every entry of a transcript as it is handed over, before any raw copy has it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import cast

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from nightherd.files.atomic import append_jsonl
from nightherd.files.paths import safe_child
from nightherd.runtimes.claude.transcripts.claude_files import make_private

LINES = ".jsonl"


class FileSessionStore(SessionStore):
    """Entries below one directory: `<project>/<session>.jsonl`, and a folder for what belongs to a session.

    An entry that comes again, by its `uuid`, is not written again. What is written survives a kill.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Path, set[str]] = {}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Write `entries`, one line each."""
        path = self._path(key)
        known = self._uuids(path)
        fresh = [entry for entry in entries if entry.get("uuid") not in known]
        if not fresh:
            return
        make_private(path.parent)
        for entry in fresh:
            append_jsonl(path, entry)
        known.update(uuid for entry in fresh if (uuid := entry.get("uuid")))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Every entry in order; None when there never was one."""
        return _read(self._path(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, and when each was last written."""
        return [
            {"session_id": path.stem, "mtime": path.stat().st_mtime_ns // 1_000_000}
            for path in sorted(safe_child(self._root, project_key).glob(f"*{LINES}"))
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What the SDK sums each session of a project up to."""
        found: list[SessionSummaryEntry] = []
        for session in await self.list_sessions(project_key):
            key: SessionKey = {"project_key": project_key, "session_id": session["session_id"]}
            summary = fold_session_summary(None, key, await self.load(key) or [])
            summary["mtime"] = session["mtime"]
            found.append(summary)
        return found

    async def delete(self, key: SessionKey) -> None:
        """Remove a session with what belongs to it, or only one part of it."""
        path = self._path(key)
        path.unlink(missing_ok=True)
        self._known.clear()
        if not key.get("subpath"):
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The parts that belong to a session."""
        folder = safe_child(self._root, f"{key['project_key']}/{key['session_id']}")
        found = (path.relative_to(folder) for path in sorted(folder.rglob(f"*{LINES}")))
        return [str(path.with_suffix("")) for path in found]

    def _path(self, key: SessionKey) -> Path:
        parts = [key["project_key"], key["session_id"], key.get("subpath") or ""]
        return safe_child(self._root, "/".join(filter(None, parts)) + LINES)

    def _uuids(self, path: Path) -> set[str]:
        known = self._known.get(path)
        if known is None:
            entries = _read(path) or []
            known = {uuid for entry in entries if (uuid := entry.get("uuid"))}
            self._known[path] = known
        return known


def _read(path: Path) -> list[SessionStoreEntry] | None:
    """The entries that were written whole; a line that was not is none."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return None
    found: list[SessionStoreEntry] = []
    for line in lines:
        try:
            found.append(cast("SessionStoreEntry", json.loads(line)))
        except ValueError:
            continue
    return found
