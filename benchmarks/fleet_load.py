"""How long a fleet of 500 agent files takes to load, against a bare parse of the same files.

Run: `python benchmarks/fleet_load.py [AGENTS]`. Prints CPU seconds (the best of three) and their ratio.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from nightherd.wiring.fleets import load_fleet

AGENT = """\
name: agent-{number}
description: "Agent number {number}"
workspace: .
repo: owner/repository-{number}
runtime: scripted
default_prompt: "Look after part {number}: ${{prompt}}"
job_timeout: 30m
session:
  mode: persistent
  timeout: 24h
  max_context_tokens: 100000
permission_mode: acceptEdits
allowed_tools: [Bash, Read, Write, Edit, "mcp__github__*"]
mcp_servers:
  github:
    command: npx
    args: ["-y", "@modelcontextprotocol/server-github"]
    env:
      GITHUB_TOKEN: ${{GITHUB_TOKEN:-none}}
schedules:
  - name: check
    trigger: {{type: interval, every: 5m}}
    prompt: "Check for ready issues."
  - name: report
    trigger: {{type: cron, expression: "0 9 * * 1"}}
    prompt: "Report."
docker:
  pids_limit: 100
script:
  - say: "part {number}"
  - tool: Bash
    input: {{command: "echo ${{turn}}"}}
  - usage: {{input_tokens: 100, output_tokens: 20, cost_usd: 0.001}}
"""
DEFAULTS = (
    "version: 1\ndefaults:\n  docker: {enabled: true, memory: 8g}\n  max_turns: 50\nagents:\n"
)


def write_fleet(directory: Path, agents: int) -> list[Path]:
    """A fleet of that many agent files, and all its files."""
    (directory / "agents").mkdir()
    files = [directory / "nightherd.yaml"]
    lines = [DEFAULTS]
    for number in range(agents):
        file = directory / "agents" / f"agent-{number}.yaml"
        file.write_text(AGENT.format(number=number))
        files.append(file)
        lines.append(f"  - path: agents/{file.name}\n")
    files[0].write_text("".join(lines))
    return files


def best_cpu_seconds(work: Callable[[], object]) -> float:
    """The least CPU time of three rounds."""
    rounds = []
    for _ in range(3):
        before = time.process_time()
        work()
        rounds.append(time.process_time() - before)
    return min(rounds)


def main() -> None:
    """Measure and print."""
    agents = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        files = write_fleet(directory, agents)
        bare = best_cpu_seconds(
            lambda: [yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader) for file in files]
        )
        loaded = best_cpu_seconds(lambda: load_fleet(directory, environ={}, cwd=directory))
    print(f"bare parse of the same files: {bare:.3f} s")
    print(f"load {agents} agents: {loaded:.3f} s (limit 1.5 s)")
    print(f"load against a bare parse: {loaded / bare:.2f}x")


if __name__ == "__main__":
    main()
