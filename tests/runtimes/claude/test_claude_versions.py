"""Several versions of the real `claude`: each runs, uses tools, resumes and survives a kill.

`make test` runs the version that `npm install` gives on Node 20; the newest is the one of every other test here.
`make soak` runs all of them (scripts/claude-versions.txt).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from components import Components
from nightherd.model.journal.event import AssistantEvent, ToolResultEvent
from nightherd.model.journal.system import Complete
from nightherd.runtimes.claude.opening import FAILED
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Refuse, Say, UsageLimitHit
from runtimes.claude.claude_stage import ClaudeStage, make_stage
from runtimes.claude.test_claude_jobs import Herd, lines_of
from runtimes.claude.test_claude_resumes import PROMPT, RETRY, Told, copies
from runtimes.heard import error_of, payloads, session_of
from runtimes.stage import until
from soak import often

ALL = ("2.1.197", "2.1.100", "2.1.150", "2.1.240", "2.1.300", "2.1.325")
VERSIONS = ALL[: often(1, soak=len(ALL))]


@pytest.fixture(params=VERSIONS)
def old_stage(
    tmp_path: Path, components: Components, slot: None, request: pytest.FixtureRequest
) -> ClaudeStage:
    """An empty place to run one version in."""
    components.program("node")
    return make_stage(tmp_path, components.claude_version(request.param))


BUNDLED = "bundled"
KNOWS_BACKGROUND_AGENTS = (
    (BUNDLED, "cli"),
    (BUNDLED, "sdk"),
    ("2.1.240", "cli"),
    ("2.1.300", "cli"),
)[: often(2, soak=4)]


@pytest.fixture(params=KNOWS_BACKGROUND_AGENTS)
def any_stage(
    tmp_path: Path, components: Components, slot: None, request: pytest.FixtureRequest
) -> ClaudeStage:
    """An empty place to run a version in that can run agents in the background."""
    version, runtime = request.param
    program = components.claude() if version == BUNDLED else components.claude_version(version)
    return make_stage(tmp_path, program, runtime)


def test_each_version_answers_uses_a_tool_and_resumes(old_stage: ClaudeStage) -> None:
    call = Call("Bash", {"command": "echo made > made.txt"})
    answers = (Say(text="I try", calls=(call,)), Say(text="done"), Say(text="it was done"))
    with MessagesApi(*answers) as api:
        first = old_stage.run(api, "make it", allowed_tools=("Bash",))
        second = old_stage.run(api, "what was it?", runtime_session_id=session_of(first))

    assert (old_stage.work / "made.txt").read_text() == "made\n"
    assert [one.success for one in first if isinstance(one, ToolResultEvent)] == [True]
    assert payloads(first, Complete), first
    assert session_of(second) == session_of(first)
    assert [one.content for one in second if isinstance(one, AssistantEvent)] == ["it was done"]
    assert {"make it", "done", "what was it?"} <= set(api.asked[2].texts)


def test_each_version_reads_a_prompt_longer_than_a_pipe(old_stage: ClaudeStage) -> None:
    prompt = "word " * 100_000
    with MessagesApi(Say(text="fine")) as api:
        events = old_stage.run(api, prompt)

    assert payloads(events, Complete)
    assert any(text.strip() == prompt.strip() for text in api.asked[0].texts)


def test_each_version_reports_a_rate_limit_as_one(old_stage: ClaudeStage) -> None:
    with MessagesApi(Refuse(status=429)) as api:
        events = old_stage.run(api)

    error = error_of(events)
    assert (error.code, (error.extra or {}).get("recoverable")) == ("rate_limited", True)


def test_each_version_names_the_reset_of_a_usage_limit(old_stage: ClaudeStage) -> None:
    hit = Refuse(status=429, limit=UsageLimitHit(resets_in_s=3600))
    oauth = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "dummy-token-of-the-tests"}
    with MessagesApi(hit) as api:
        events = old_stage.run(api, environment=oauth)

    error = error_of(events)
    assert (error.code, (error.extra or {}).get("limit")) == ("rate_limited", "five_hour")
    assert (error.extra or {}).get("resets_at") is not None


def test_each_version_killed_in_a_tool_continues_and_repeats_nothing(
    old_stage: ClaudeStage,
) -> None:
    once = Call("Bash", {"command": "echo ran >> ran.txt; until [ -e go-on ]; do sleep 0.05; done"})
    with MessagesApi(Say(calls=(once,)), Say(text="I looked: it ran.")) as api:
        herd = Herd(old_stage, api)
        with herd.started("run", "helper", "-p", "make it") as worker:
            anyio.run(until, (old_stage.work / "ran.txt").exists)
            for pid in claude_processes(old_stage):
                os.kill(pid, signal.SIGKILL)
            (old_stage.work / "go-on").touch()
            worker.wait()
        job = herd.job()

    assert job["status"] == "completed", job
    assert (old_stage.work / "ran.txt").read_text() == "ran\n"
    assert len(lines_of(herd.journal(), "tool_use")) == 1
    # As a call or in words: the model knows of it, and hears of it once.
    assert json.dumps(api.asked[1].body["messages"]).count("echo ran >> ran.txt") == 1


def test_each_version_repeats_neither_prompt_nor_note_in_an_outage(old_stage: ClaudeStage) -> None:
    down = Refuse(status=529)
    with MessagesApi(down, down, down, Say(text="done")) as api:
        job = Told(old_stage, api)
        job.run(is_continued=False)
        for _ in range(3):
            job.run(RETRY)

    assert [copies(asked, PROMPT) for asked in api.asked] == [1, 1, 1, 1]
    assert [copies(asked, FAILED) for asked in api.asked] == [0, 1, 1, 1]


@contextmanager
def held_by_a_background_agent(stage: ClaudeStage, session: str) -> Iterator[None]:
    """Claude's register of live sessions says that one of its background agents has this one."""
    with subprocess.Popen(["sleep", "600"]) as holder:
        start = Path(f"/proc/{holder.pid}/stat").read_text().rpartition(")")[2].split()[19]
        entry = {
            "pid": holder.pid,
            "sessionId": session,
            "cwd": str(stage.work),
            "procStart": start,
            "startedAt": 1,
            "kind": "bg",
            "entrypoint": "cli",
        }
        register = stage.claude_home / "sessions"
        register.mkdir(exist_ok=True)
        (register / f"{holder.pid}.json").write_text(json.dumps(entry))
        try:
            yield
        finally:
            holder.kill()


def test_session_that_a_background_agent_of_claude_has_is_recognised_and_waited_for(
    any_stage: ClaudeStage,
) -> None:
    with MessagesApi(Say(text="blue"), Say(text="it was blue")) as api:
        session = session_of(any_stage.run(api, "pick a colour"))
        with held_by_a_background_agent(any_stage, session):
            refused = any_stage.run(api, "which one?", runtime_session_id=session)
        later = any_stage.run(api, "which one?", runtime_session_id=session)

    error = error_of(refused)
    assert (error.code, (error.extra or {}).get("recoverable")) == ("session_held", True)
    assert session_of(later) == session
    assert payloads(later, Complete)
    assert len(api.asked) == 2


def claude_processes(stage: ClaudeStage) -> list[int]:
    """The `claude` of this stage itself, not what it started nor its keeper."""
    found = []
    for pid in stage.processes():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if b"-p" in command[1:3]:  # behind the program, or behind `node cli.js`
            found.append(pid)
    return found
