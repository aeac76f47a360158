"""Sessions of the real `claude`: kept while they run, gone on with although Claude lost them, forked, compacted."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import anyio
import pytest
from msgspec.structs import replace

from nightherd.model.jobs.outcome import Tally
from nightherd.model.journal.event import AssistantEvent, Event, ToolResultEvent, ToolUseEvent
from nightherd.model.journal.system import CompactBoundary, Complete
from nightherd.model.sessions.session import SessionMode, SessionTerms
from nightherd.ports import RuntimeFork
from nightherd.runtimes.claude.runtime import ClaudeRuntime
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say, Tokens
from runtimes.claude.claude_stage import JOB, PATIENCE_S, ClaudeStage
from runtimes.heard import codes, payloads, session_of
from runtimes.stage import until

PERSISTENT = SessionTerms(mode=SessionMode.PERSISTENT)


def said(texts: list[str], *wanted: str) -> list[str]:
    return [text for text in texts if text in wanted]


def transcript_of(stage: ClaudeStage, session: str) -> Path:
    (path,) = stage.claude_home.glob(f"projects/*/{session}.jsonl")
    return path


def test_transcript_is_kept_and_packed_when_its_session_is_over(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="blue")) as api:
        events = stage.run(api, "pick a colour")

    session = session_of(events)
    packed = stage.transcripts / f"{session}.jsonl.gz"
    assert gzip.decompress(packed.read_bytes()) == transcript_of(stage, session).read_bytes()
    assert packed.stat().st_mode & 0o777 == 0o600
    assert codes(events) == []
    assert [path.name for path in stage.transcripts.rglob("*") if path.is_file()] == [packed.name]


@pytest.mark.either_runtime
def test_transcript_of_a_shared_session_stays_readable(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="blue")) as api:
        session = session_of(stage.run(api, "pick a colour", session=PERSISTENT))

    copy = stage.transcripts / f"{session}.jsonl"
    assert copy.read_bytes() == transcript_of(stage, session).read_bytes()


def test_transcript_is_copied_while_the_run_goes_on(stage: ClaudeStage) -> None:
    gate, is_written = threading.Event(), stage.work / "is-written"

    def until_in(place: Path) -> bool:
        begun = monotonic()
        while monotonic() - begun < PATIENCE_S:
            for path in place.rglob("*.jsonl"):
                data = path.read_bytes()
                if b"look around" in data and b"first words" in data:
                    return True
            sleep(0.05)
        return False

    def look(found: list[bool]) -> None:
        # Claude writes a moment after it speaks; what it says after that is when a copy is due.
        found.append(until_in(stage.claude_home / "projects"))
        is_written.touch()
        found.append(until_in(stage.transcripts))
        gate.set()

    ls = Say(text="first words", calls=(Call("Bash", {"command": "ls"}),))
    wait = Call("Bash", {"command": "until [ -e is-written ]; do sleep 0.05; done"})
    with MessagesApi(ls, Say(calls=(wait,)), Say(text="done", hold=gate)) as api:
        found: list[bool] = []
        watcher = threading.Thread(target=look, args=(found,))
        watcher.start()
        stage.run(api, "look around", permission_mode="bypassPermissions")
        watcher.join()

    assert found == [True, True]


def test_session_goes_on_although_claude_lost_everything(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="blue"), Say(text="it was blue")) as api:
        session = session_of(stage.run(api, "pick a colour"))
        shutil.rmtree(stage.claude_home)
        second = stage.run(api, "which one was it?", runtime_session_id=session)

    assert session_of(second) == session
    assert codes(second) == ["transcript_put_back"]
    wanted = ("pick a colour", "blue", "which one was it?")
    assert said(api.asked[1].texts, *wanted) == list(wanted)


@pytest.mark.either_runtime
def test_what_the_transcript_lacks_is_told_when_the_job_goes_on(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="I begin"), Say(text="done")) as api:
        session = session_of(stage.run(api, "do it all"))
        call = ToolUseEvent(tool_name="Bash", tool_use_id="t-9", input={"command": "make it"})
        result = ToolResultEvent(tool_use_id="t-9", result="it is made", success=True, uuid="u-9")
        second = stage.run(
            api,
            "do it all",
            execution=f"{JOB}.2",
            runtime_session_id=session,
            job_turns=1,
            history=(call, result),
        )

    assert payloads(second, Complete)
    assert any("make it" in text and "it is made" in text for text in api.asked[1].texts)


def test_copy_that_cannot_be_made_is_a_warning_and_no_more(stage: ClaudeStage) -> None:
    stage.transcripts.write_text("in the way")
    with MessagesApi(Say(text="blue"), Say(text="it was blue")) as api:
        first = stage.run(api, "pick a colour")
        second = stage.run(api, "which one?", runtime_session_id=session_of(first))

    assert payloads(first, Complete)
    assert payloads(second, Complete)
    assert codes(first) == ["transcript_not_kept"]
    assert codes(second) == ["transcript_not_kept"] * 2


@pytest.mark.either_runtime
def test_fork_knows_everything_and_leaves_the_original_alone(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="blue"), Say(text="forked"), Say(text="on")) as api:
        session = session_of(stage.run(api, "pick a colour"))
        before = transcript_of(stage, session).read_bytes()
        fork = stage.run(api, "and now?", fork=RuntimeFork(runtime_session_id=session))
        again = stage.run(api, "go on", runtime_session_id=session_of(fork))

    assert session_of(fork) != session
    assert transcript_of(stage, session).read_bytes() == before
    assert said(api.asked[1].texts, "pick a colour", "blue") == ["pick a colour", "blue"]
    assert session_of(again) == session_of(fork)
    assert said(api.asked[2].texts, "blue", "and now?", "forked") == ["blue", "and now?", "forked"]


@pytest.mark.either_runtime
def test_fork_at_a_message_knows_nothing_after_it(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="blue"), Say(text="green"), Say(text="forked")) as api:
        first = stage.run(api, "pick a colour", session=PERSISTENT)
        session = session_of(first)
        stage.run(api, "pick another", runtime_session_id=session, session=PERSISTENT)
        before = transcript_of(stage, session).read_bytes()
        shutil.rmtree(stage.claude_home)
        (answer,) = [event for event in first if getattr(event, "content", None) == "blue"]
        fork = stage.run(
            api,
            "which ones?",
            fork=RuntimeFork(runtime_session_id=session, at_uuid=answer.uuid),
        )

    assert payloads(fork, Complete)
    assert session_of(fork) != session
    wanted = ("pick a colour", "blue", "pick another", "green", "which ones?")
    assert said(api.asked[2].texts, *wanted) == ["pick a colour", "blue", "which ones?"]
    assert transcript_of(stage, session).read_bytes() == before


@pytest.mark.either_runtime
def test_compacted_session_says_so(stage: ClaudeStage) -> None:
    with MessagesApi(Say(text="blue"), Say(text="a summary"), Say(text="it was blue")) as api:
        session = session_of(stage.run(api, "pick a colour", session=PERSISTENT))
        compacted = stage.run(api, "/compact", runtime_session_id=session, session=PERSISTENT)
        after = stage.run(api, "which one?", runtime_session_id=session, session=PERSISTENT)

    (boundary,) = payloads(compacted, CompactBoundary)
    assert boundary.trigger == "manual"
    assert payloads(compacted, Complete)
    assert payloads(after, Complete)
    assert any("a summary" in text for text in api.asked[2].texts)


def patient(stage: ClaudeStage) -> ClaudeRuntime:
    """A runtime that gives a Claude which is interrupted all the time it needs to say so."""
    return stage.make_runtime(grace=timedelta(seconds=PATIENCE_S))


def test_interrupted_answer_is_kept_by_the_sdk(sdk_stage: ClaudeStage) -> None:
    gate = threading.Event()
    seen: list[Event] = []

    async def run_and_cancel(api: MessagesApi) -> None:
        request = sdk_stage.request(api, "hello")
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sdk_stage.follow, request, seen.append, patient(sdk_stage))
                assert await anyio.to_thread.run_sync(api.wait_until_asked, 1)
                await until(lambda: bool(seen))
                tasks.cancel_scope.cancel()

    with MessagesApi(Say(text="never heard", hold=gate), Say(text="fine")) as api:
        anyio.run(run_and_cancel, api)
        lines = transcript_of(sdk_stage, session_of(seen)).read_text().splitlines()

    entries = [json.loads(line) for line in lines]
    assert any("interrupted by user" in json.dumps(one.get("message", "")) for one in entries)
    assert sdk_stage.processes() == {}


def test_run_that_is_interrupted_still_says_what_it_had_cost(sdk_stage: ClaudeStage) -> None:
    seen: list[Event] = []
    late: list[Event] = []

    async def run_and_cancel(api: MessagesApi) -> None:
        request = replace(sdk_stage.request(api, "hello"), late=late.append)
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sdk_stage.follow, request, seen.append, patient(sdk_stage))
                assert await anyio.to_thread.run_sync(api.wait_until_asked, 2)
                await until(lambda: any(isinstance(event, ToolResultEvent) for event in seen))
                tasks.cancel_scope.cancel()

    ls = Say(calls=(Call("Bash", {"command": "ls"}),), tokens=Tokens(input=1000, output=100))
    with MessagesApi(ls, Say(text="never heard", hold=threading.Event())) as api:
        anyio.run(run_and_cancel, api)

    (cost,) = late
    assert isinstance(cost, AssistantEvent)
    assert cost.usage is not None
    assert cost.usage.cost_microusd > 0
    tally = Tally()
    for event in (*seen, cost):
        tally = tally.add(event)
    # The tokens of the first answer are not counted twice, and nothing was added to what was said.
    assert 1000 <= tally.usage.input_tokens < 2000
    assert (tally.turns, tally.messages) == (1, 2)
