"""A place to run the real `claude` in: its own home, a dummy key, and an API that never leaves this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import Event
from nightherd.model.permissions.protected import ProtectedPaths
from nightherd.ports import RuntimeFork, RuntimeRequest
from nightherd.runtimes.claude.cli import ClaudeCliRuntime
from nightherd.runtimes.claude.runtime import ClaudeRuntime
from nightherd.runtimes.claude.sdk import ClaudeSdkRuntime
from nightherd.runtimes.keeper.census import Census
from nightherd.testing.messages_api import MessagesApi
from nightherd.wiring.runtimes import KNOWN_RUNTIMES

JOB = JobId("job-2025-03-04-cla123")
EXECUTION = ExecutionId(f"{JOB}.1")
GRACE = timedelta(seconds=5)
PATIENCE_S = 90


@dataclass(frozen=True)
class ClaudeStage:
    """Runs agents in `work` with the `claude` that stands in `programs`, or with the SDK's."""

    root: Path
    programs: Path
    runtime: str = "cli"
    agent: Mapping[str, Any] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def transcripts(self) -> Path:
        return self.root / "transcripts"

    @property
    def claude_home(self) -> Path:
        """Claude's own directory."""
        return self.root / "home" / "claude"

    def make_runtime(self, **more: Any) -> ClaudeRuntime:
        """The runtime of this stage."""
        kind = ClaudeSdkRuntime if self.runtime == "sdk" else ClaudeCliRuntime
        return kind(**{"grace": GRACE, "transcripts": self.transcripts, **more})

    def environment(self, api: MessagesApi | None = None) -> dict[str, str]:
        """Nothing of this machine's own settings, and no way out of it."""
        return {
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.root / "home"),
            "CLAUDE_CONFIG_DIR": str(self.claude_home),
            "TMPDIR": str(self.root / "tmp"),
            "ANTHROPIC_BASE_URL": api.url if api is not None else "http://127.0.0.1:9",
            "ANTHROPIC_API_KEY": "dummy-key-of-the-tests",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def request(
        self,
        api: MessagesApi | None = None,
        prompt: str = "go",
        *,
        environment: Mapping[str, str] | None = None,
        execution: str = EXECUTION,
        runtime_session_id: str | None = None,
        job_turns: int = 0,
        fork: RuntimeFork | None = None,
        history: tuple[Event, ...] = (),
        protected: ProtectedPaths | None = None,
        **agent: Any,
    ) -> RuntimeRequest:
        given = {"working_directory": str(self.work), **self.agent, **agent}
        return RuntimeRequest(
            job_id=JOB,
            execution=ExecutionId(execution),
            agent=Agent(name="tester", runtime=KNOWN_RUNTIMES.get(self.runtime), **given),
            prompt=prompt,
            job_turns=job_turns,
            runtime_session_id=runtime_session_id,
            fork=fork,
            is_continued=job_turns > 0 or execution != EXECUTION,
            history=lambda: iter(history),
            protected=protected,
            environment={**self.environment(api), **(environment or {})},
        )

    def processes(self) -> dict[int, int]:
        """Every process that runs with this stage's home: `claude`, and all it started."""
        home = f"HOME={self.root / 'home'}".encode()
        return dict(Census(marks=frozenset({home})).find())

    async def follow(
        self,
        request: RuntimeRequest,
        see: Callable[[Event], None],
        runtime: ClaudeRuntime | None = None,
    ) -> None:
        """Carry the request out; `see` is told of every event."""
        async for event in (runtime or self.make_runtime()).execute(request):
            see(event)

    def run(
        self,
        api: MessagesApi | None = None,
        prompt: str = "go",
        *,
        runtime: ClaudeRuntime | None = None,
        **request: Any,
    ) -> list[Event]:
        """Every event of one run."""
        asked = self.request(api, prompt, **request)
        seen: list[Event] = []

        async def carry_out() -> None:
            with anyio.fail_after(PATIENCE_S):
                await self.follow(asked, seen.append, runtime)

        anyio.run(carry_out)
        return seen


def make_stage(root: Path, program: Path, runtime: str = "cli") -> ClaudeStage:
    """An empty stage below `root`, where `program` is found as `claude`."""
    for name in ("home", "tmp", "work", "bin"):
        (root / name).mkdir()
    (root / "bin" / "claude").symlink_to(program)
    return ClaudeStage(root=root, programs=root / "bin", runtime=runtime)
