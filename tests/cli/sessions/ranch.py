"""A fleet whose agents remember, and the questions tests ask of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surfaces.drivers import Cli

FLEET = """\
fleet: {name: ranch}

agents:
  - name: memory
    runtime: scripted
    default_prompt: go
    session: {mode: persistent}
    script:
      - say: "answer ${turn} to ${prompt}"
      - tool: Write
        input: {file_path: "note-${turn}.txt", content: "note of turn ${turn}"}
      - say: "answer ${turn} to ${prompt}"
      - usage: {input_tokens: 200, output_tokens: 40, cost_usd: 0.002}

  - name: fresh
    runtime: scripted
    default_prompt: go
    script:
      - say: "fresh answer ${turn} to ${prompt}"
      - say: "fresh answer ${turn} to ${prompt}"

  - name: talker
    runtime: scripted
    default_prompt: go
    session: {mode: per_channel, timeout: 24h, idle_timeout: 2h}
    script:
      - say: "heard ${prompt}"
      - say: "heard ${prompt} again"

  - name: waiting
    runtime: scripted
    default_prompt: go
    session: {mode: persistent, idle_timeout: 1ms}
    script:
      - say: "first"
      - say: "second"
"""


class Ranch:
    """The command in a directory with the fleet."""

    def __init__(self, root: Path, cli: Cli) -> None:
        self.root = root
        self.cli = cli

    @property
    def state(self) -> Path:
        return self.root / ".nightherd"

    def data(self, *words: str) -> Any:
        """What a command that succeeds says to programs."""
        result = self.cli(*words, "--json")
        assert result.code == 0, result
        return result.data

    def run(self, agent: str = "memory", *words: str) -> dict[str, Any]:
        """The result of a job, however it ended."""
        result = self.cli("run", agent, *words, "--json")
        found: dict[str, Any] = result.data
        assert "session_id" in found, found
        return found

    def show(self, session: str = "@last", *words: str) -> dict[str, Any]:
        found: dict[str, Any] = self.data("session", "show", session, *words)
        return found

    def texts(self, session: str = "@last") -> list[str]:
        """What was said, first to last."""
        shown = self.show(session, "--history", "--limit", "10000")
        return [message["text"] for message in shown["history"]]

    def files(self) -> dict[str, bytes]:
        """Every journal, byte for byte."""
        return {path.name: path.read_bytes() for path in (self.state / "jobs").glob("*.jsonl")}
