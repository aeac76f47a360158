"""What the real `claude` sends to the model when a job is continued: each thing once, and only what is true."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from nightherd.model.jobs.repeat import INTERRUPTED_CALL
from nightherd.model.journal.event import Event, ToolResultEvent, ToolUseEvent, describe
from nightherd.model.journal.system import ExecutionStarted, Resumed
from nightherd.runtimes.claude.opening import FAILED, INTERRUPTED
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Call, Refuse, Say, Tokens
from runtimes.claude.claude_stage import EXECUTION, JOB, PATIENCE_S, ClaudeStage
from runtimes.claude.test_claude_jobs import Herd, lines_of, run_until_killed_after_a_result
from runtimes.heard import session_of
from runtimes.stage import until

PROMPT = "count the sheep"


class Told:
    """A job that is run again and again, with everything it has said as its history."""

    def __init__(self, stage: ClaudeStage, api: MessagesApi) -> None:
        self.stage = stage
        self.api = api
        self.history: list[Event] = []
        self.session: str | None = None

    def run(self, *before: Event, is_continued: bool = True) -> list[Event]:
        """Run it once more; `before` is what the engine has put on record since."""
        self._record(before)
        events = self.stage.run(
            self.api,
            PROMPT,
            execution=f"{JOB}.2" if is_continued else EXECUTION,
            runtime_session_id=self.session,
            history=tuple(self.history),
            permission_mode="bypassPermissions",
        )
        self._record(events)
        self.session = session_of(events)
        return events

    def _record(self, events: Iterable[Event]) -> None:
        self.history += [msgspec.structs.replace(one, execution=EXECUTION) for one in events]


def copies(asked: Asked, text: str) -> int:
    """How often the request holds `text`, in whatever was said."""
    return sum(one.count(text) for one in asked.texts)


def notes(events: Iterable[Event]) -> list[str]:
    """What is on record as told to the model."""
    return [str(getattr(one, "content", "")) for one in events if "user_input" in repr(one)]


RETRY = describe(Resumed(reason="retry"))
LOST = describe(ExecutionStarted(worker="w"))


@pytest.mark.either_runtime
def test_outages_repeat_neither_the_prompt_nor_a_note(stage: ClaudeStage) -> None:
    down = Refuse(status=529)
    call = Call("Bash", {"command": "echo once >> times"})
    with MessagesApi(down, down, Say(calls=(call,)), down, down, Say(text="done")) as api:
        job = Told(stage, api)
        job.run(is_continued=False)
        for _ in range(4):
            job.run(RETRY)

    assert [copies(asked, PROMPT) for asked in api.asked] == [1] * 6
    # One note for each outage that the model has heard of: the first was over with its first call.
    assert [copies(asked, FAILED) for asked in api.asked] == [0, 1, 1, 1, 2, 2]
    assert not any("interrupted" in text for asked in api.asked for text in asked.texts)
    assert (stage.work / "times").read_text() == "once\n"
    assert notes(job.history) == [FAILED, FAILED]


@pytest.mark.either_runtime
def test_cut_off_call_that_the_transcript_lacks_is_mentioned_once(stage: ClaudeStage) -> None:
    call = ToolUseEvent(tool_name="Bash", tool_use_id="toolu_lost", input={"command": "make it"})
    cut_off = ToolResultEvent(tool_use_id="toolu_lost", success=False, error=INTERRUPTED_CALL)
    answers = (Say(text="I begin"), Refuse(status=529), Say(text="I see"), Say(text="done"))
    with MessagesApi(*answers) as api:
        job = Told(stage, api)
        first = job.run(is_continued=False)
        # As it was killed: what it had to say in the end is not on record, and neither is it said.
        job.history = [msgspec.structs.replace(one, execution=EXECUTION) for one in first[:-1]]
        job.run(call, LOST, cut_off)
        job.run(RETRY)
        job.history.pop()
        job.run(LOST)

    requests = api.asked[1:]
    assert [copies(asked, "toolu_lost") for asked in requests] == [1, 1, 1]
    assert [copies(asked, PROMPT) for asked in requests] == [1, 1, 1]
    # The second request was the first again; before the third it was interrupted once more.
    assert [copies(asked, INTERRUPTED) for asked in requests] == [1, 1, 2]
    told = notes(job.history)
    assert [text.count("toolu_lost") for text in told] == [1, 0]


def without_calls(path: Path) -> None:
    """As a `claude` leaves it that is killed before it has written that it called."""
    lines = path.read_bytes().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if b'"type":"tool_use"' in line)
    path.write_bytes(b"".join(lines[:first]))


def sent(asked: Asked) -> str:
    """Everything the model is sent of the conversation, calls included."""
    return json.dumps(asked.body["messages"])


def kill_in_a_tool(herd: Herd, stage: ClaudeStage, api: MessagesApi) -> None:
    with herd.started("run", "helper", "-p", PROMPT) as worker:
        anyio.run(until, (stage.work / "began").exists)
        anyio.run(until, lambda: len(lines_of(herd.journal(), "tool_use")) == 1)
        worker.kill()
    anyio.run(until, lambda: stage.processes() == {})


@pytest.mark.timeout(240)
def test_call_in_flight_reaches_the_model_once_after_a_kill_and_a_move(stage: ClaudeStage) -> None:
    command = "touch began; echo once >> times; tail -f /dev/null"
    answers = (Say(text="I begin", calls=(Call("Bash", {"command": command}),)), Say(text="Done."))
    with MessagesApi(*answers) as api:
        kill_in_a_tool(Herd(stage, api), stage, api)
        for path in stage.root.glob("**/*.jsonl"):
            if b'"type":"tool_use"' in path.read_bytes() and "jobs" not in path.parts:
                without_calls(path)
        moved = replace(
            stage, root=stage.root.with_name(f"moved-{stage.runtime}"), programs=stage.programs
        )
        shutil.copytree(stage.root, moved.root, symlinks=True)
        shutil.rmtree(moved.claude_home)
        herd = Herd(moved, api)
        rescuer = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["summary"]) == ("completed", "Done.")
    assert sent(api.asked[1]).count(json.dumps(command)[1:-1].replace('"', '\\"')) == 1
    assert copies(api.asked[1], PROMPT) == 1
    # Where the copy of the transcript was cut off too early for claude to resume it, it is told in a new session.
    told = [line for line in herd.journal() if line.get("subtype") == "user_input"]
    assert [command in line["content"] for line in told[-1:]] == [True]
    assert sum(command in line["content"] for line in told) == 1


@pytest.mark.timeout(240)
def test_open_call_of_the_transcript_reaches_the_model_once(cli_stage: ClaudeStage) -> None:
    command = "touch began; tail -f /dev/null"
    answers = (Say(text="I begin", calls=(Call("Bash", {"command": command}),)), Say(text="Done."))
    with MessagesApi(*answers) as api:
        herd = Herd(cli_stage, api)
        with herd.started("run", "helper", "-p", PROMPT) as worker:
            anyio.run(until, (cli_stage.work / "began").exists)
            anyio.run(until, lambda: b'"type":"tool_use"' in transcript(cli_stage))
            worker.kill()
        herd.nightherd("worker", "--until-idle")

    assert sent(api.asked[1]).count(command) == 1


def transcript(stage: ClaudeStage) -> bytes:
    found = stage.claude_home.glob("projects/*/*.jsonl")
    return b"".join(path.read_bytes() for path in found)


@pytest.mark.either_runtime
@pytest.mark.timeout(240)
def test_background_agents_that_died_are_mentioned(stage: ClaudeStage) -> None:
    given: dict[str, Any] = {
        "description": "side work",
        "prompt": "look",
        "subagent_type": "general-purpose",
        "run_in_background": True,
    }
    held = Say(text="never heard", hold=threading.Event())
    answers = (Say(text="I begin", calls=(Call("Agent", given),)), held, held, Say(text="Done."))
    with MessagesApi(*answers) as api:
        herd = Herd(stage, api)
        with herd.started("run", "helper", "-p", PROMPT) as worker:
            assert api.wait_until_asked(3, PATIENCE_S)
            anyio.run(until, lambda: b"side work (task" not in transcript(stage))
            anyio.run(until, lambda: any("task_id" in str(line) for line in herd.journal()))
            worker.kill()
        herd.nightherd("worker", "--until-idle")

    assert copies(api.asked[3], "side work (task ") == 1


@pytest.mark.timeout(240)
def test_answers_that_only_the_transcript_has_are_recovered(stage: ClaudeStage) -> None:
    """A `claude` outlives its worker for a moment: what it hears then is nowhere but in its transcript."""
    call = Call("Bash", {"command": "echo once >> times"})
    tokens = Tokens(input=1000, output=100)
    first = Say(text="I begin", calls=(call,), tokens=tokens, model="claude-opus-5-5")
    held = Say(text="never heard", hold=threading.Event())
    with MessagesApi(first, held, Say(text="Done.")) as api:
        herd = Herd(stage, api)
        run_until_killed_after_a_result(herd, api)
        anyio.run(until, lambda: stage.processes() == {})
        (journal,) = stage.root.glob(".nightherd/jobs/*.jsonl")
        lines = journal.read_bytes().splitlines(keepends=True)
        heard = next(at for at, line in enumerate(lines) if b'"type":"assistant"' in line)
        journal.write_bytes(b"".join(lines[:heard]))
        rescuer = herd.nightherd("worker", "--until-idle")
        job = herd.job()

    assert rescuer.returncode == 0, rescuer.stderr
    assert (job["status"], job["turns"]) == ("completed", 2)
    assert (stage.work / "times").read_text() == "once\n"
    record = herd.journal()
    assert [line["success"] for line in lines_of(record, "tool_result")] == [True]
    assert [line["turn"] for line in lines_of(record, "tool_use")] == [1]
    said = [line for line in lines_of(record, "assistant") if line.get("content")]
    assert [line["content"] for line in said] == ["I begin", "Done."]
    answers = lines_of(record, "assistant")
    estimated = [line for line in answers if (line.get("extra") or {}).get("cost_source")]
    assert estimated[0]["usage"]["cost_microusd"] > 0
    assert job["usage"]["input_tokens"] == 1010
    assert job["cost_usd"] >= estimated[0]["usage"]["cost_microusd"] / 1_000_000
    # The model knows all of it by its transcript, and is told only that it was interrupted.
    assert copies(api.asked[2], "I begin") == 1
    assert copies(api.asked[2], INTERRUPTED) == 1


@pytest.mark.timeout(240)
def test_cancelled_call_reaches_the_model_once_when_the_job_is_resumed(
    cli_stage: ClaudeStage,
) -> None:
    command = "touch began; tail -f /dev/null"
    answers = (Say(text="I begin", calls=(Call("Bash", {"command": command}),)), Say(text="Done."))
    with MessagesApi(*answers) as api:
        herd = Herd(cli_stage, api)
        with herd.started("run", "helper", "-p", PROMPT) as worker:
            anyio.run(until, (cli_stage.work / "began").exists)
            anyio.run(until, lambda: b'"type":"tool_use"' in transcript(cli_stage))
            herd.nightherd("jobs", "cancel", "@last")
            worker.wait()
        herd.nightherd("jobs", "resume", "@last", "--prompt", "well?")

    assert sent(api.asked[1]).count(command) == 1
    assert sent(api.asked[1]).count("outcome is unknown") == 1
    assert copies(api.asked[1], PROMPT) == 1
