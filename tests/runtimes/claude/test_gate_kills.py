"""`claude` alone is killed by the first action of its tools, again and again: no call is made twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Call, Say
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.commanded import Commanded
from soak import often

FLEET = """\
defaults: {{runtime: {runtime}}}
agents:
  - name: helper
    permission_mode: bypassPermissions
    working_directory: work
"""
KILLS = often(3, soak=10)
ROUNDS = often(1, soak=20)


class ForgetfulModel(MessagesApi):
    """A model that makes every planned call the conversation does not mention, one after the other."""

    def __init__(self, plan: dict[str, Call]) -> None:
        super().__init__(Say(text="All done."))
        self._plan = plan

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """The next call that nothing in the request speaks of; the end when there is none."""
        done, name = super().take(asked)
        conversation = json.dumps(asked.body["messages"])
        for mark, call in self._plan.items():
            if mark not in conversation:
                return Say(text="Next.", calls=(call,)), name
        return done, name


def plan_of(kills: int) -> dict[str, Call]:
    """Calls that kill the `claude` which makes them, each after one that does not."""
    plan = {}
    for number in range(1, kills + 1):
        plan[f"calm-{number}."] = Call("Bash", {"command": f"echo calm-{number}. >> times"})
        fatal = f"echo fatal-{number}. >> times; kill -9 $PPID; tail -f /dev/null"
        plan[f"fatal-{number}."] = Call("Bash", {"command": fatal})
    return plan


def blocks_of(asked: Asked, kind: str) -> list[dict[str, Any]]:
    return [
        block
        for message in asked.body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block.get("type") == kind
    ]


@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.timeout(300)
def test_no_call_is_made_twice_when_claude_is_killed_as_its_tool_starts(
    stage: ClaudeStage, number: int
) -> None:
    plan = plan_of(KILLS)
    with ForgetfulModel(plan) as api:
        fleet = FLEET.format(runtime=stage.runtime)
        herd = Commanded(stage.root, fleet, stage.environment(api))
        done = herd.nightherd("run", "helper", "-p", "make it", "--quiet")
        job = herd.job()

    assert (done.returncode, done.stdout.strip()) == (0, "All done."), done.stderr
    assert job["status"] == "completed"
    assert (stage.work / "times").read_text().split() == list(plan)
    calls = {
        block["id"]: mark
        for block in blocks_of(api.asked[-1], "tool_use")
        for mark in plan
        if mark in block["input"]["command"]
    }
    assert list(calls.values()) == list(plan)
    results = [
        (calls[block["tool_use_id"]], "nterrupted" in json.dumps(block["content"]))
        for block in blocks_of(api.asked[-1], "tool_result")
    ]
    assert results == [(mark, mark.startswith("fatal")) for mark in plan]
    assert stage.processes() == {}
