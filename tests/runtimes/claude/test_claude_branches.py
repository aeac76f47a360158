"""A branch of a session whose job was interrupted, on the real `claude`: each side knows its own past only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage
from runtimes.claude.test_claude_jobs import lines_of
from runtimes.commanded import Commanded
from runtimes.stage import until

FLEET = """\
defaults: {{runtime: {runtime}}}
lease: 2s
heartbeat: 500ms
agents:
  - name: keeper
    permission_mode: bypassPermissions
    session: {{mode: persistent}}
    working_directory: work
"""
ONE = Call("Bash", {"command": "echo one >> log"})
TWO = Call(
    "Bash", {"command": "touch began; until [ -e go ]; do sleep 0.05; done; echo two >> log"}
)
FIRST, ASIDE, GOES_ON = "FIRST-PROMPT", "ASIDE-PROMPT", "LAST-PROMPT"


def data_of(herd: Commanded, *words: str) -> Any:
    done = herd.nightherd(*words, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)["data"]


def said_in(asked: Asked, *words: str) -> list[str]:
    """Which of `words` the conversation holds, in the order in which they first stand there."""
    whole = json.dumps(asked.body["messages"])
    places = {word: whole.find(word) for word in words}
    return sorted((word for word, place in places.items() if place >= 0), key=places.__getitem__)


def transcripts(herd: Commanded) -> dict[str, str]:
    """Claude's own transcripts by session."""
    found = (herd.root / "home" / "claude").glob("projects/*/*.jsonl")
    return {path.stem: path.read_text() for path in found}


def journal_of(herd: Commanded, job_id: str) -> list[dict[str, Any]]:
    path = herd.root / ".nightherd" / "jobs" / f"{job_id}.jsonl"
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def history_of(herd: Commanded, session: str) -> str:
    return json.dumps(data_of(herd, "session", "show", session, "--history")["history"])


def interrupt(herd: Commanded, api: MessagesApi, work: Path) -> str:
    """The id of a job whose worker was killed in its second call."""
    with herd.started("run", "keeper", "-p", FIRST) as worker:
        assert api.wait_until_asked(2, PATIENCE_S)
        anyio.run(until, (work / "began").exists)
        anyio.run(
            until, lambda: "".join(transcripts(herd).values()).count('"type":"tool_use"') == 2
        )
        worker.kill()
    return str(herd.job()["id"])


@pytest.mark.either_runtime
def test_a_branch_and_the_interrupted_job_each_continue_with_their_own_past(
    stage: ClaudeStage,
) -> None:
    answers = (
        Say(text="I begin", calls=(ONE,)),
        Say(text="I go on", calls=(TWO,)),
        Say(text="answered aside"),
        Say(text="all of it is done"),
        Say(text="and that was it"),
    )
    with MessagesApi(*answers) as api:
        herd = Commanded(stage.root, FLEET.format(runtime=stage.runtime), stage.environment(api))
        job_id = interrupt(herd, api, stage.work)
        (stage.work / "go").touch()
        done = herd.nightherd("run", "keeper", "-p", ASIDE, "--branch", "--quiet")
        aside = herd.job()
        herd.nightherd("worker", "--until-idle")
        job = data_of(herd, "jobs", "show", job_id)
        last = herd.nightherd("run", "keeper", "-p", GOES_ON, "--quiet")

    words = (FIRST, "I begin", "I go on", ASIDE, "answered aside", "all of it", GOES_ON)
    assert (done.returncode, done.stdout.strip()) == (0, "answered aside"), done.stderr
    assert (job["status"], job["summary"]) == ("completed", "all of it is done")
    assert (last.returncode, last.stdout.strip()) == (0, "and that was it"), last.stderr
    assert (aside["trigger_type"], aside["forked_from"]) == ("fork", job_id)
    assert aside["session_id"] != job["session_id"]

    _, _, branch, original, end = api.asked
    assert said_in(branch, *words) == [FIRST, "I begin", ASIDE], "up to the last complete turn"
    assert said_in(original, *words) == [FIRST, "I begin", "I go on"]
    assert said_in(end, *words) == [FIRST, "I begin", "I go on", "all of it", GOES_ON]
    calls = lines_of(journal_of(herd, job_id), "tool_use")
    assert len({line["tool_use_id"] for line in calls}) == len(calls) == 2, "no call twice"

    kept = transcripts(herd)
    assert ASIDE not in kept[job["runtime_session_id"]]
    assert "all of it is done" in kept[job["runtime_session_id"]]
    assert "I go on" not in kept[aside["runtime_session_id"]]
    assert "answered aside" in kept[aside["runtime_session_id"]]
    for session, asked in ((aside["session_id"], branch), (job["session_id"], end)):
        shown = history_of(herd, session)
        places = [shown.find(word) for word in said_in(asked, *words)]
        assert places == sorted(places), "the order that the model saw"
        assert -1 not in places
