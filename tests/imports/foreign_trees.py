"""What other tools leave on disk, made by hand: Claude Code's directory and herdctl's."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CWD = "/srv/shop"
SLUG = "-srv-shop"


def uuid(number: int) -> str:
    """A session's id at Claude Code."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def lines(*values: Any) -> str:
    """JSON lines; text stands as it is."""
    return "".join(
        (value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values
    )


def user(text: Any = "Why is the cart empty?", **more: Any) -> dict[str, Any]:
    """A line of what was asked."""
    return {
        "type": "user",
        "cwd": CWD,
        "timestamp": "2026-01-02T09:00:00.000Z",
        "message": {"role": "user", "content": text},
        **more,
    }


def assistant(
    text: str = "The cookie is renewed.", id: str = "msg_1", **more: Any
) -> dict[str, Any]:
    """A line of an answer."""
    return {
        "type": "assistant",
        "cwd": CWD,
        "timestamp": "2026-01-02T09:00:07.000Z",
        "message": {
            "id": id,
            "model": "claude-test",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 900, "output_tokens": 40, "cache_read_input_tokens": 60},
        },
        **more,
    }


def tool_result(call: str = "toolu_1") -> dict[str, Any]:
    """A line of a tool's result."""
    return user([{"type": "tool_result", "tool_use_id": call, "content": "3 files"}])


@dataclass
class ClaudeTree:
    """Claude Code's directory."""

    root: Path

    def path(self, number: int = 1, slug: str = SLUG) -> Path:
        """A transcript's place."""
        return self.root / "projects" / slug / f"{uuid(number)}.jsonl"

    def write(self, *values: Any, number: int = 1, slug: str = SLUG) -> Path:
        """A transcript of these lines."""
        path = self.path(number, slug)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines(*values))
        return path

    def talk(self, number: int = 1, slug: str = SLUG, more: int = 0) -> Path:
        """An ordinary transcript: a question, an answer of two lines around a call, its result."""
        call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
        second = assistant()
        second["message"]["content"] = [call]
        extra = [assistant(f"more {place}", id=f"msg_more_{place}") for place in range(more)]
        return self.write(
            user(), assistant(), second, tool_result(), *extra, number=number, slug=slug
        )


@dataclass
class HerdctlTree:
    """herdctl's state directory, and the project it is in."""

    project: Path
    root: Path = field(init=False)

    def __post_init__(self) -> None:
        self.root = self.project / ".herdctl"
        for name in ("jobs", "sessions", "logs"):
            (self.root / name).mkdir(parents=True)
        (self.root / "state.yaml").write_text("fleet: {}\nagents: {}\n")

    def job(self, number: int = 1, *output: Any, **fields: Any) -> str:
        """A job's two files; its id."""
        job_id = f"job-2026-01-{1 + number // 100:02d}-{number:06d}"
        values: dict[str, Any] = {
            "id": job_id,
            "agent": "coder",
            "trigger_type": "manual",
            "status": "completed",
            "exit_reason": "success",
            "session_id": "claude-session-1",
            "started_at": f"2026-01-{1 + number // 100:02d}T09:{number % 60:02d}:00.000Z",
            "finished_at": f"2026-01-{1 + number // 100:02d}T10:{number % 60:02d}:30.000Z",
            "prompt": "Bring the changelog up to date.\n",
            "summary": "It is up to date.",
            "output_file": f"/elsewhere/{job_id}.jsonl",
        } | fields
        given = {name: value for name, value in values.items() if value is not ...}
        (self.root / "jobs" / f"{job_id}.yaml").write_text(json.dumps(given, indent=1))
        said = output or ({"type": "assistant", "content": "It is up to date."},)
        (self.root / "jobs" / f"{job_id}.jsonl").write_text(lines(*said))
        return job_id

    def session(self, agent: str = "coder", **fields: Any) -> Path:
        """An agent's session pointer."""
        values = {
            "agent_name": agent,
            "session_id": "claude-session-1",
            "created_at": "2026-01-01T08:00:00.000Z",
            "last_used_at": "2026-01-05T08:00:00.000Z",
            "job_count": 15,
            "mode": "autonomous",
            "working_directory": CWD,
            "runtime_type": "sdk",
            "docker_enabled": False,
        } | fields
        path = self.root / "sessions" / f"{agent}.json"
        path.write_text(json.dumps(values))
        return path


def fingerprint(root: Path) -> dict[str, str]:
    """Every name below `root` with mode, time and content: what reading must not change."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        body = path.read_bytes() if path.is_file() else os.fsencode(str(path.is_symlink()))
        digest = hashlib.sha256(body).hexdigest()
        found[str(path.relative_to(root))] = f"{status.st_mode:o} {status.st_mtime_ns} {digest}"
    return found
