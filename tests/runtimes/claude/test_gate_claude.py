"""The gate before the real `claude`: what waits, what passes, and that nothing turns it off."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from components import Components
from nightherd.model.journal.event import Event, ToolResultEvent, ToolUseEvent
from nightherd.model.journal.system import ToolProgress
from nightherd.runtimes.claude.gate import Gate
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage, make_stage
from runtimes.commanded import Commanded
from runtimes.heard import codes, error_of, payloads
from runtimes.stage import until
from soak import often

RAN = Call("Bash", {"command": "echo ran >> ran"})
FREE: dict[str, Any] = {"permission_mode": "bypassPermissions"}
TO_RUN_S = 0.3
"""In which a tool that does not wait has run; one that waits passes the test at any speed."""
BUNDLED = "bundled"


def transcripts(stage: ClaudeStage) -> bytes:
    """Everything that Claude has written so far."""
    found = stage.claude_home.glob("projects/**/*.jsonl")
    return b"".join(path.read_bytes() for path in found)


def results(events: list[Event]) -> list[ToolResultEvent]:
    return [event for event in events if isinstance(event, ToolResultEvent)]


def delegate(*, background: bool = False) -> Call:
    return Call(
        "Agent",
        {
            "description": "a part",
            "prompt": "do it",
            "subagent_type": "general-purpose",
            "run_in_background": background,
        },
    )


def test_no_tool_runs_before_its_call_is_in_the_journal(stage: ClaudeStage) -> None:
    ran_early: list[bool] = []

    async def record_slowly(api: MessagesApi) -> None:
        request = stage.request(api, **FREE)
        async for event in stage.make_runtime().execute(request):
            if isinstance(event, ToolUseEvent):
                # As long as this is not done, the event is not on record.
                await until(lambda: b'"name":"Bash"' in transcripts(stage))
                await anyio.sleep(TO_RUN_S)
                ran_early.append((stage.work / "ran").exists())

    with MessagesApi(Say(calls=(RAN,)), Say(text="done")) as api:
        anyio.run(record_slowly, api)

    assert ran_early == [False]
    assert (stage.work / "ran").exists()


def test_calls_of_one_message_and_of_nested_sub_agents_pass(stage: ClaudeStage) -> None:
    nested = Call("Bash", {"command": "echo nested >> ran"})
    with MessagesApi(
        Say(calls=(RAN, Call("Bash", {"command": "echo too >> ran"}), delegate())),
        Say(text="I pass it on", calls=(delegate(),)),
        Say(text="I do it", calls=(nested,)),
        Say(text="done"),
    ) as api:
        events = stage.run(api, **FREE)

    assert sorted((stage.work / "ran").read_text().split()) == ["nested", "ran", "too"]
    assert codes(events) == []
    assert all(result.success for result in results(events))
    called = json.dumps(nested.input)
    shown = [event for event in events if getattr(event, "content", None) or ""]
    assert [event for event in shown if called in str(getattr(event, "content", ""))]
    assert payloads(events, ToolProgress)


@pytest.fixture(params=[(BUNDLED, "cli"), (BUNDLED, "sdk"), ("2.1.197", "cli")])
def any_stage(
    tmp_path: Path, components: Components, slot: None, request: pytest.FixtureRequest
) -> ClaudeStage:
    """An empty place for both runtimes, and for a version that runs a tool when its input ends."""
    version, runtime = request.param
    program = components.claude() if version == BUNDLED else components.claude_version(version)
    return make_stage(tmp_path, program, runtime)


@pytest.mark.timeout(240)
def test_no_tool_starts_while_its_worker_is_frozen_nor_when_it_dies(any_stage: ClaudeStage) -> None:
    stage = any_stage
    fleet = (
        f"defaults: {{runtime: {stage.runtime}}}\nlease: 60s\nheartbeat: 2s\n"
        "agents: [{name: helper, permission_mode: bypassPermissions, working_directory: work}]\n"
    )
    asked = threading.Event()
    with MessagesApi(Say(text="I do it", calls=(RAN,), hold=asked), Say(text="Done.")) as api:
        herd = Commanded(stage.root, fleet, stage.environment(api))
        with herd.started("run", "helper", "-p", "make it") as worker:
            assert api.wait_until_asked(1, PATIENCE_S)
            os.kill(worker.pid, signal.SIGSTOP)
            asked.set()
            anyio.run(until, lambda: b'"name":"Bash"' in transcripts(stage))
            time.sleep(TO_RUN_S)
            ran_while_frozen = (stage.work / "ran").exists()
            worker.kill()
            worker.wait()
        anyio.run(until, lambda: stage.processes() == {})
        assert (ran_while_frozen, (stage.work / "ran").exists()) == (False, False)
        rescuer = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["summary"]) == ("completed", "Done.")
    assert not (stage.work / "ran").exists()


TIED = ("2.1.197", "2.1.100")[: often(1, soak=2)] if sys.platform == "linux" else ()
"""Only Linux kills a process together with its parent."""


@pytest.fixture(params=TIED)
def old_stage(
    tmp_path: Path, components: Components, slot: None, request: pytest.FixtureRequest
) -> ClaudeStage:
    """An empty place for versions that run a tool when their input ends."""
    return make_stage(tmp_path, components.claude_version(request.param), "cli")


@pytest.mark.timeout(240)
def test_no_tool_starts_when_worker_and_keeper_die_together(old_stage: ClaudeStage) -> None:
    stage = old_stage
    fleet = (
        "defaults: {runtime: cli}\nlease: 60s\nheartbeat: 2s\n"
        "agents: [{name: helper, permission_mode: bypassPermissions, working_directory: work}]\n"
    )
    asked = threading.Event()
    with MessagesApi(Say(text="I do it", calls=(RAN,), hold=asked), Say(text="Done.")) as api:
        herd = Commanded(stage.root, fleet, stage.environment(api))
        with herd.started("run", "helper", "-p", "make it") as worker:
            assert api.wait_until_asked(1, PATIENCE_S)
            os.kill(worker.pid, signal.SIGSTOP)
            asked.set()
            anyio.run(until, lambda: b'"name":"Bash"' in transcripts(stage))
            time.sleep(TO_RUN_S)
            children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
            for pid in (worker.pid, *map(int, children)):
                os.kill(pid, signal.SIGKILL)
            worker.wait()
        anyio.run(until, lambda: stage.processes() == {})

    assert children
    assert not (stage.work / "ran").exists()


REFUSING = """#!/usr/bin/env python3
import json, sys
asked = json.loads(sys.stdin.readline())
response = {{"request_id": asked["request_id"], {response}}}
print(json.dumps({{"type": "control_response", "response": response}}), flush=True)
told = sys.stdin.readline()
open("asked", "w").write(told)
"""


@pytest.mark.parametrize(
    "response",
    [
        '"subtype": "error", "error": "what is a hook?"',
        '"subtype": "success", "response": {"hooks_applied": False}',
    ],
)
def test_claude_that_refuses_the_gate_is_not_asked_anything(tmp_path: Path, response: str) -> None:
    program = tmp_path / "claude"
    program.write_text(REFUSING.format(response=response))
    program.chmod(0o755)
    stage = make_stage(tmp_path, program)

    error = error_of(stage.run())

    assert (error.code, error.extra) == ("claude_failed", None)
    assert "hook" in error.message
    assert not (stage.work / "asked").exists()
    assert stage.processes() == {}


@pytest.mark.either_runtime
def test_settings_of_a_project_do_not_turn_the_gate_off(stage: ClaudeStage) -> None:
    (stage.work / ".claude").mkdir()
    (stage.work / ".claude" / "settings.json").write_text('{"disableAllHooks": true}')
    with MessagesApi(Say(calls=(RAN,)), Say(text="done")) as api:
        events = stage.run(api, setting_sources=("project",), **FREE)

    assert [result.success for result in results(events)] == [True]
    assert codes(events) == []


@pytest.mark.either_runtime
def test_hooks_of_a_project_still_decide(stage: ClaudeStage) -> None:
    denied = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "the project says no",
        }
    }
    command = f"cat > /dev/null; echo '{json.dumps(denied)}'"
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]
    }
    (stage.work / ".claude").mkdir()
    (stage.work / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    with MessagesApi(Say(calls=(RAN,)), Say(text="done")) as api:
        events = stage.run(api, setting_sources=("project",), **FREE)

    (result,) = results(events)
    assert not result.success
    assert "the project says no" in str(result.result)
    assert not (stage.work / "ran").exists()


def test_call_that_claude_cannot_write_down_does_not_run(stage: ClaudeStage) -> None:
    stage.claude_home.mkdir()
    (stage.claude_home / "projects").write_text("no directory")
    runtime = stage.make_runtime()
    runtime.make_gate = lambda: Gate(timedelta(seconds=1))
    with MessagesApi(Say(calls=(RAN,)), Say(text="done")) as api:
        events = stage.run(api, runtime=runtime, **FREE)

    (result,) = results(events)
    assert not result.success
    assert "not in Claude's transcript" in str(result.result)
    assert not (stage.work / "ran").exists()
