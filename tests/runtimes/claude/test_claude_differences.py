"""The same conversation through both runtimes: their records differ in ids, times and prices of time only."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from components import Components
from nightherd.model.agents.agent import Plugin, Subagent
from nightherd.model.agents.mcp import McpServer, McpTransport
from nightherd.model.jobs.outcome import is_afterthought
from nightherd.model.journal.event import AssistantEvent, Event
from nightherd.model.units import MicroUsd
from nightherd.model.usage import NOTHING_USED, Usage
from nightherd.runtimes.claude import sdk
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Answer, Call, Refuse, Say, Tokens
from runtimes.claude.claude_stage import ClaudeStage, make_stage

OF_THE_RUN = frozenset({"uuid", "api_duration_ms", "runtime_session_id", "timestamp", "task_id"})
"""What no two runs have in common."""

VARYING = re.compile(r"agentId: '?\w+|to: '\w+'|duration_ms: \d+")
"""The same inside of texts: how Claude tells an agent of its subagent."""


def plain(value: Any, stage: ClaudeStage) -> Any:
    if isinstance(value, dict):
        return {
            name: plain(inner, stage) for name, inner in value.items() if name not in OF_THE_RUN
        }
    if isinstance(value, list):
        return [plain(inner, stage) for inner in value]
    if isinstance(value, str):
        return VARYING.sub("VARIES", value.replace(str(stage.root), "ROOT"))
    return value


def folded(events: list[Event]) -> list[Event]:
    """The events, what an answer used on its last line, though a quick tool was done before that was known."""
    found: list[Event] = []
    for event in events:
        match event:
            case AssistantEvent(usage=Usage() as more, partial=None) if is_afterthought(event):
                place = max(
                    place
                    for place, one in enumerate(found)
                    if isinstance(one, AssistantEvent) and one.end and one.turn == event.turn
                )
                ended = found[place]
                assert isinstance(ended, AssistantEvent)
                whole = (ended.usage or NOTHING_USED) + more
                found[place] = msgspec.structs.replace(ended, usage=whole)
            case _:
                found.append(event)
    return found


def record(events: list[Event], stage: ClaudeStage) -> list[Any]:
    found = [plain(msgspec.to_builtins(event), stage) for event in folded(events)]
    for line in found:
        if line.get("subtype") == "init":
            assert line["extra"].pop("runtime") == stage.runtime
    return found


WORK = Say(
    text="I try",
    thinking="hm",
    calls=(
        Call("Bash", {"command": "echo made > made.txt; cat made.txt"}),
        Call("Bash", {"command": "cat nothing-here"}),
    ),
    tokens=Tokens(input=100, output=20, cache_read=7),
)
# By itself: a command that fails cancels what is read beside it, unless that is faster.
READ = Say(calls=(Call("Read", {"file_path": "/nowhere"}),))
TASK = Call(
    "Task",
    {"description": "d", "prompt": "look", "subagent_type": "general-purpose"}
    | {"run_in_background": False},
)

CONVERSATIONS: dict[str, Callable[[], tuple[list[Answer], dict[str, Any]]]] = {
    "tools": lambda: (
        [WORK, READ, Say(text="done")],
        {"permission_mode": "bypassPermissions", "prompt": "-do @it /all"},
    ),
    "denials": lambda: (
        [
            Say(calls=(Call("Bash", {"command": "touch x"}), Call("Write", {"file_path": "y"}))),
            Say(text="a pity"),
        ],
        {"permission_mode": "default", "denied_tools": ("Write",)},
    ),
    "subagent": lambda: (
        [Say(calls=(TASK,)), Say(text="found"), Say(text="told")],
        {"system_prompt": "Be brief."},
    ),
    "turns": lambda: ([Say(calls=(Call("Bash", {"command": "ls"}),))], {"max_turns": 2}),
    "refused": lambda: ([Refuse(status=429, retry_after_s=1)], {}),
    "gone": lambda: (
        [Say(text="fine")],
        {"runtime_session_id": "6e964430-d2f6-475a-9e64-5130a5c62256"},
    ),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_both_runtimes_record_the_same(
    tmp_path: Path, components: Components, slot: None, name: str
) -> None:
    records, asked = [], []
    for runtime in ("cli", "sdk"):
        root = tmp_path / runtime
        root.mkdir()
        stage = make_stage(root, components.claude(), runtime)
        answers, request = CONVERSATIONS[name]()
        with MessagesApi(*answers) as api:
            records.append(record(stage.run(api, **request), stage))
        asked.append([plain(one.body["messages"], stage) for one in api.asked])

    assert records[0] == records[1]
    assert records[0][-1]["type"] in ("system", "error")
    assert len(asked[0]) == len(asked[1])


RECORDING = f"""#!{sys.executable}
import json, os, pathlib, sys
words = [word.partition("=") for word in sys.argv[1:]]
files = {{value: pathlib.Path(value).read_text() for _, _, value in words if os.path.isfile(value)}}
options = {{name: files.get(value, value) for name, _, value in words}}
if "-p" in options:  # and not only to be asked for its version
    pathlib.Path("started.json").write_text(json.dumps([options, dict(os.environ)]))
"""
"""A `claude` that writes down how it was started, with the files that it was given, and ends."""

EVERYTHING: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "fallback_model": "claude-haiku-4-5",
    "effort": "high",
    "system_prompt": "Be brief.",
    "permission_mode": "plan",
    "tools": ("Bash", "Read"),
    "allowed_tools": ("Bash(git *)", "mcp__far"),
    "denied_tools": ("Write", "Edit"),
    "required_caps": ("nightherd.tool.*",),
    "setting_sources": ("project", "local"),
    "add_dirs": ("/more", "/yet"),
    "max_turns": 7,
    "max_budget_microusd": MicroUsd(1_500_000),
    "subagents": {"critic": Subagent(description="d", prompt="p", tools=("Read",))},
    "plugins": (Plugin(path="/plug"),),
    "sandbox": {"enabled": True},
    "mcp_servers": (McpServer(name="far", transport=McpTransport.HTTP, url="http://127.0.0.1:9"),),
}
"""An agent with every key that Claude is told about."""


def test_both_runtimes_start_claude_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "recording"
    program.write_text(RECORDING)
    program.chmod(0o755)
    monkeypatch.setattr(
        sdk.ClaudeSdkRuntime, "_find_program", lambda self, environment: str(program)
    )
    options, environments = [], []
    for runtime in ("cli", "sdk"):
        root = tmp_path / runtime
        root.mkdir()
        stage = make_stage(root, program, runtime)
        stage.run(prompt="go", job_turns=2, runtime_session_id="s-1", **EVERYTHING)
        started = json.loads((stage.work / "started.json").read_text())
        options.append(plain(started[0], stage))
        environments.append(plain(started[1], stage))
        assert environments[-1].pop("NIGHTHERD_KEEPER"), "names its keeper"

    assert len(options[0]) >= len(EVERYTHING)
    assert options[1].pop("--session-mirror") == ""
    assert options[0] == options[1]
    only_sdk = environments[1].keys() - environments[0].keys()
    assert only_sdk == {"CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION"}
    assert environments[0].items() <= environments[1].items()
