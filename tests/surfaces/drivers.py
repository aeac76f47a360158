"""The command, driven: in this process, and as a process of its own; and the fleet it is driven with."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.cli.main import main
from nightherd.engine.jobs.runner import run_job
from nightherd.engine.operations.new_job import JobDraft, record_job
from nightherd.model.ids import JobId
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.running import open_worker

FLEET = """\
fleet:
  name: test-fleet

agents:
  - name: hello
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: everybody
    script:
      - think: Somebody wants a greeting.
      - say: I will greet ${prompt}.
      - tool: Write
        input: {file_path: hello.txt, content: "Hello, ${prompt}!\\n"}
      - usage: {input_tokens: 100, output_tokens: 20, cost_usd: 0.0012}
      - tool: Bash
        input: {command: cat hello.txt}
      - say: Done.
      - usage: {input_tokens: 130, output_tokens: 10, cost_usd: 0.0008}

  - name: echo
    runtime: scripted
    default_prompt: "topic ${inputs.topic}"
    script:
      - say: ${prompt}

  - name: mute
    runtime: scripted
    script:
      - say: never asked

  - name: limited
    runtime: scripted
    default_prompt: go
    script:
      - fail: {code: rate_limited, message: Too many requests.}

  - name: failing
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {command: "echo out of luck; exit 3"}
      - fail: {code: bad_luck, message: No luck today.}

  - name: late
    runtime: scripted
    default_prompt: go
    job_timeout: 1s
    script:
      - say: starting
      - sleep: 60s
      - say: never said

  - name: slow
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - say: working
      - tool: Bash
        input: {command: "touch started; sleep 60"}
      - say: never said

  - name: stubborn
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {command: "trap '' TERM INT; echo $$ > pid; mv pid started; while :; do sleep 0.1; done"}

  - name: patient
    runtime: scripted
    default_prompt: go
    script:
      - say: working
      - sleep: 60s
      - say: never said

  - name: hostile
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: go
    script:
      - tool: Bash
        input: {command: "printf 'a\\\\033]0;title\\\\007b\\\\033[2Jc\\\\rd'"}
      - say: "bell \\a and right-to-left \\u202E mark"

  - name: memory
    runtime: scripted
    default_prompt: go
    session: {mode: persistent}
    script:
      - say: turn ${turn}
      - fail: {code: stop, message: first job ends here}

  - name: claude
    runtime: sdk
    idempotent_tools: [Read]
    default_prompt: go
"""


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on standard output."""
        (line,) = self.out.splitlines()
        loaded = json.loads(line)
        assert isinstance(loaded, dict)
        assert set(loaded) >= {"schema", "as_of", "data"}
        return loaded

    @property
    def data(self) -> Any:
        """What the document says."""
        return self.document["data"]

    @property
    def documents(self) -> list[dict[str, Any]]:
        """One JSON document per line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Cli:
    """The command in this process."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capture.readouterr()
        code = main(arguments)
        out, err = self._capture.readouterr()
        return Result(code, out, err)


class Shell:
    """The command as a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._started: list[subprocess.Popen[bytes]] = []

    def run(self, *arguments: str, stdin: bytes = b"", **environ: str) -> Result:
        """Run it to its end."""
        done = subprocess.run(
            self.line(*arguments),
            cwd=self.directory,
            env={**os.environ, **environ},
            input=stdin,
            capture_output=True,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def python(self, program: str) -> Result:
        """Run a program of ours in a fresh interpreter."""
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=self.directory, capture_output=True, text=True
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start it; it does not outlive the test."""
        started = subprocess.Popen(self.line(*arguments), cwd=self.directory, **options)
        self._started.append(started)
        return started

    @staticmethod
    def line(*arguments: str) -> list[str]:
        """The words of the command line."""
        return [sys.executable, "-m", "nightherd", *arguments]

    def close(self) -> None:
        """End what still runs."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def submit_pending(directory: Path, agent: str = "hello", prompt: str = "the reader") -> JobId:
    """A job that is on record and that nobody runs."""

    async def work() -> JobId:
        loaded = load_fleet(directory / "nightherd.yaml", environ={}, cwd=directory)
        async with open_worker(directory / ".nightherd", loaded.fleet, os.environ) as context:
            request = JobDraft(agent=loaded.fleet.agents[agent], prompt=prompt)
            return (await record_job(request, context)).job.id

    return anyio.run(work)


def execute_pending(directory: Path, job_id: JobId, agent: str = "hello") -> None:
    """Run a job that is on record to its end."""

    async def work() -> None:
        loaded = load_fleet(directory / "nightherd.yaml", environ={}, cwd=directory)
        async with open_worker(directory / ".nightherd", loaded.fleet, os.environ) as context:
            declared = loaded.fleet.agents[agent]
            await run_job(job_id, declared, context, on_event=lambda _: None)

    anyio.run(work)
