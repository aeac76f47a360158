"""A usage limit met by several jobs at once, with a schedule, a killed daemon, a cancelled job and a raised one."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections import Counter
from typing import Any

import anyio

from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Refuse, Say, UsageLimitHit
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.claude.test_night import OAUTH, start_daemon
from runtimes.commanded import PAUSE_S, Commanded
from runtimes.stage import until

FLEET = """\
lease: 5s
heartbeat: 1s
defaults: {runtime: cli, permission_mode: bypassPermissions, working_directory: work}
agents:
  - name: coder
    instances: {max_concurrent: 3}
  - name: nightly
    schedules: {often: {interval: 2s, prompt: SLOT-PROMPT}}
"""
LIMIT_S = 30
"""Until the limit resets, as each refusal says: a slow machine restarts the daemon and runs three commands before it."""
PROMPTS = ("FIRST-PROMPT", "SECOND-PROMPT", "THIRD-PROMPT")


class LimitedApi(MessagesApi):
    """Refuses everything until the limit is lifted; each refusal names a time."""

    def __init__(self) -> None:
        super().__init__(Say(text="All done."))
        self.is_lifted = threading.Event()

    def take(self, asked: Asked) -> tuple[Answer, str]:
        answer, name = super().take(asked)
        if self.is_lifted.is_set():
            return answer, name
        return Refuse(status=429, limit=UsageLimitHit(resets_in_s=LIMIT_S)), name

    def counted(self) -> Counter[str]:
        """How often each prompt was sent."""
        sent = [json.dumps(asked.body["messages"]) for asked in self.asked]
        words = (*PROMPTS, "SLOT-PROMPT")
        return Counter(word for text in sent for word in words if word in text)


class Herd(Commanded):
    """The fleet, and what the command says about it."""

    def data(self, *words: str) -> Any:
        done = self.nightherd(*words, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)["data"]

    def why(self) -> str:
        return self.nightherd("schedule", "why", "nightly/often").stdout

    def wait_for(self, ids: list[str], *statuses: str) -> None:
        """Wait until the first of these jobs are so."""
        self.wait_for_statuses(
            lambda found: [found[one] for one in ids[: len(statuses)]] == [*statuses]
        )


def kill(daemon: subprocess.Popen[bytes]) -> None:
    daemon.kill()
    daemon.wait()


def test_every_job_of_a_limited_login_ends_as_it_should(cli_stage: ClaudeStage) -> None:
    with LimitedApi() as api:
        environment = {**cli_stage.environment(api), **OAUTH}
        herd = Herd(cli_stage.root, FLEET, environment)
        ids = [
            herd.data("run", "coder", "-p", prompt, "-d", "--limit", "turns=5")["job_id"]
            for prompt in PROMPTS
        ]
        daemon = start_daemon(herd, environment)
        try:
            # Those that start before the first is refused are refused too; the others wait for the login.
            herd.wait_for_statuses(lambda found: "suspended" in [found[one] for one in ids])
            herd.wait_for_statuses(lambda found: "running" not in [found[one] for one in ids])
            kill(daemon)
            before = herd.data("status")["rate_limits"]
            asked = api.counted()
            daemon = start_daemon(herd, environment)
            anyio.run(until, lambda: herd.data("status")["daemon"] is not None, PAUSE_S)
            after = herd.data("status")["rate_limits"]
            assert herd.nightherd("jobs", "cancel", ids[2]).returncode == 0
            raised = herd.nightherd("jobs", "resume", ids[1], "--raise", "turns=7", "-d")
            # Each refusal begins the limit anew; between two of them a slow machine may see none.
            anyio.run(until, lambda: "rate limited until" in herd.why(), PAUSE_S)
            herd.wait_for(ids, "suspended", "suspended")
            api.is_lifted.set()
            herd.wait_for(ids, "completed", "completed")
            anyio.run(until, lambda: api.counted()["SLOT-PROMPT"] > asked["SLOT-PROMPT"])
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
        jobs = [herd.data("jobs", "show", one) for one in ids]

    assert [job["status"] for job in jobs] == ["completed", "completed", "cancelled"]
    assert [job["turns"] for job in jobs] == [1, 1, 0]
    assert raised.returncode == 0, raised.stderr
    (kept,), (limit,) = before, after
    assert limit["until"] >= kept["until"], "the limit outlives the daemon"
    counted = api.counted()
    assert counted["THIRD-PROMPT"] == asked["THIRD-PROMPT"], "a cancelled job is not asked again"
    for job in jobs:
        lines = (herd.root / ".nightherd" / "jobs" / f"{job['id']}.jsonl").read_text()
        answers = [
            one
            for one in map(json.loads, lines.splitlines())
            if one["type"] == "assistant" and one.get("content") == "All done."
        ]
        assert len(answers) == job["turns"], "answered once"
