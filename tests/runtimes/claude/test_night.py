"""A night on the real `claude`: a usage limit, an outage, a killed `claude` and a rebooted daemon, and nobody there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio

from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Cut, Refuse, Say, UsageLimitHit
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.claude.test_claude_versions import claude_processes
from runtimes.commanded import Commanded
from runtimes.stage import until

FLEET = """\
lease: 5s
heartbeat: 1s
retry: {attempts: 2, first_pause: 1s, longest_pause: 1s}
agents:
  - name: coder
    runtime: cli
    permission_mode: bypassPermissions
    working_directory: work
    default_prompt: do the chores
"""
OAUTH = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "dummy-token-of-the-tests"}
LIMIT_S = 6
"""Until the usage limit resets: long enough to be waited for without a worker."""


def chore(number: int, *, more: str = "true") -> Say:
    command = f"echo {number} >> chores.txt; {more}"
    return Say(text=f"chore {number}", calls=(Call("Bash", {"command": command}),))


def hold(name: str) -> str:
    """A command that goes on until the test lets it."""
    return f"until [ -e {name} ]; do sleep 0.05; done"


def start_daemon(herd: Commanded, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "nightherd", "start"],
        cwd=herd.root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def subtypes(journal: list[dict[str, Any]]) -> list[str]:
    return [line["subtype"] for line in journal if line["type"] == "system"]


def test_a_night_of_limits_outages_kills_and_reboots_ends_with_the_job_done(
    cli_stage: ClaudeStage,
) -> None:
    work = cli_stage.work
    answers = (
        chore(1),
        chore(2),
        Refuse(status=429, limit=UsageLimitHit(resets_in_s=LIMIT_S)),
        chore(3),
        Say(text="cut", drop=Cut.HEADERS),
        chore(4, more=hold("claude-was-killed")),
        chore(5, more=hold("daemon-was-rebooted")),
        Say(text="All chores are done."),
    )
    with MessagesApi(*answers) as api:
        environment = {**cli_stage.environment(api), **OAUTH}
        herd = Commanded(cli_stage.root, FLEET, environment)
        daemon = start_daemon(herd, environment)
        try:
            herd.nightherd("run", "coder", "--detach")
            anyio.run(until, lambda: has_line(work / "chores.txt", "4"))
            for pid in claude_processes(cli_stage):
                os.kill(pid, signal.SIGKILL)
            (work / "claude-was-killed").touch()
            anyio.run(until, lambda: has_line(work / "chores.txt", "5"))
            daemon.kill()
            daemon.wait()
            (work / "daemon-was-rebooted").touch()
            daemon = start_daemon(herd, environment)
            herd.wait_until_completed()
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
        job, journal = herd.job(), herd.journal()

    assert (job["status"], job["summary"]) == ("completed", "All chores are done.")
    assert (work / "chores.txt").read_text().split() == ["1", "2", "3", "4", "5"], "each once"
    story = subtypes(journal)
    assert "suspended" in story, "the usage limit was waited for without a worker"
    assert "recovered" in story, "the daemon was rebooted"
    waits = [line for line in journal if line.get("subtype") == "suspended"]
    assert any(line["extra"].get("reason") == "rate_limit" for line in waits)
    calls = [line for line in journal if line["type"] == "tool_use"]
    assert len({line["tool_use_id"] for line in calls}) == len(calls) == 5


def has_line(path: Path, line: str) -> bool:
    return path.exists() and line in path.read_text().split()
