"""Which calls Claude has written to its transcripts, read as the files grow."""

from __future__ import annotations

import re
from pathlib import Path

IDS = re.compile(rb'"id":\s*"([^"]+)"')
AGENTS = "subagents"


class WrittenCalls:
    """Follows the transcripts of one run. Each file is read once; only whole lines count."""

    def __init__(self) -> None:
        self._files: dict[Path, _File] = {}

    def has(self, transcript: Path, call: str, agent: str | None = None) -> bool:
        """Return whether the transcript has the call; with `agent`, that of this sub-agent may have it."""
        if agent is not None and self._file(_agent_transcript(transcript, agent)).has(call):
            return True
        # Old versions write what sub-agents do into the one transcript there is.
        return self._file(transcript).has(call)

    def _file(self, path: Path) -> _File:
        return self._files.setdefault(path, _File(path))


class _File:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._ids: set[bytes] = set()

    def has(self, call: str) -> bool:
        wanted = call.encode()
        if wanted not in self._ids:
            self._read_on()
        return wanted in self._ids

    def _read_on(self) -> None:
        try:
            size = self._path.stat().st_size
            if size < self._read:  # it was replaced
                self._read = 0
            if size == self._read:
                return
            with self._path.open("rb") as file:
                file.seek(self._read)
                grown = file.read()
        except OSError:
            return
        whole = grown[: grown.rfind(b"\n") + 1]
        self._read += len(whole)
        self._ids.update(IDS.findall(whole))


def _agent_transcript(transcript: Path, agent: str) -> Path:
    """Where Claude writes what a sub-agent does; deeper down for those that a workflow started."""
    folder, name = transcript.with_suffix("") / AGENTS, f"agent-{agent}.jsonl"
    if not (folder / name).exists():
        return next(folder.rglob(name), folder / name)
    return folder / name
