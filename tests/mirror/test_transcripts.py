"""Transcripts: what was said, in the envelope shape, appended once and never again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mirror.mirror_world import World, answer, end
from nightherd.mirror.envelope import DISPLAY_LIMIT, cut
from nightherd.mirror.layout import slug
from nightherd.model.jobs.job import ExitReason
from nightherd.model.jobs.outcome import Outcome
from nightherd.model.journal.event import (
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Complete, ExecutionStarted, Init, SystemSubtype
from nightherd.model.sessions.session import SessionMode
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Totals, Usage
from nightherd.testing.state_values import job_id, settle, start, submit

TURN: tuple[Event, ...] = (
    AssistantEvent(content="gra", partial=True, message=2, turn=1),
    AssistantEvent(
        content="I look.",
        thinking="where is the wolf?",
        usage=Usage(input_tokens=7, output_tokens=3),
        message=2,
        turn=1,
        index=0,
        uuid="u-1",
    ),
    ToolUseEvent(
        tool_name="Bash", tool_use_id="t1", input={"command": "ls"}, message=2, index=1, end=True
    ),
    ToolResultEvent(tool_use_id="t1", result="wolf", success=True, message=3, end=True),
)


def told(world: World) -> World:
    """A job with one turn behind it."""
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1")
    world.say(1, *TURN)
    return world


def test_a_conversation_becomes_envelopes(world: World) -> None:
    told(world).catch_up()

    prompt, said, result = world.transcript("s-1")
    assert prompt["type"] == "user"
    assert prompt["message"] == {"role": "user", "content": "Graze."}
    assert prompt["sessionId"] == "s-1"
    assert prompt["timestamp"].endswith("Z")
    assert said["type"] == "assistant"
    assert said["message"] == {
        "role": "assistant",
        "model": "sheepdog-1",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
        ],
        "usage": {
            "input_tokens": 7,
            "output_tokens": 3,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }
    assert result["type"] == "user"
    assert result["message"] == {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "wolf"}],
    }
    assert "thinking" not in json.dumps([said, result])
    assert [line["jobId"] for line in (prompt, said, result)] == [job_id(1)] * 3
    assert prompt["seq"] < said["seq"] < result["seq"]


def test_the_last_line_is_the_result_with_what_it_cost(world: World) -> None:
    told(world)
    world.name_session(1, "s-1")
    world.say(1, describe(Complete(stop_reason="end_turn")), end())
    used = Usage(input_tokens=7, output_tokens=3, cost_microusd=MicroUsd(130_000))
    world.apply(settle(1, totals=Totals(turns=7, messages=4, usage=used)))

    world.catch_up()

    last = world.transcript("s-1")[-1]
    assert last == {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 7,
        "result": "Grazed.",
        "total_cost_usd": 0.13,
        "total_input_tokens": 7,
        "total_output_tokens": 3,
        "total_cache_creation_input_tokens": 0,
        "total_cache_read_input_tokens": 0,
        "duration_ms": 60_000,
        "stop_reason": "end_turn",
        "timestamp": "2026-03-01T12:02:00.000250Z",
        "sessionId": "s-1",
        "jobId": job_id(1),
        "seq": 7,
    }


def test_an_error_is_an_assistant_line_that_says_so(world: World) -> None:
    told(world)
    world.say(1, ErrorEvent(message="Overloaded.", code="overloaded"), end("failed", "timeout"))
    outcome = Outcome(exit_reason=ExitReason.TIMEOUT, error="Overloaded.")
    world.apply(settle(1, outcome=outcome, answer=None))

    world.catch_up()

    error, result = world.transcript("s-1")[-2:]
    assert error["isApiErrorMessage"] is True
    assert error["error"] == "overloaded"
    assert error["message"]["content"] == [{"type": "text", "text": "Overloaded."}]
    assert (result["subtype"], result["is_error"], result["result"]) == (
        "error_timeout",
        True,
        None,
    )


def test_long_texts_are_cut_for_display_and_only_there(world: World) -> None:
    long = "é" * (DISPLAY_LIMIT + 5)
    shown = "é" * DISPLAY_LIMIT + "…[truncated 5 chars]"
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1", prompt=long)
    world.say(
        1,
        ToolUseEvent(tool_name="Write", tool_use_id="t", input={"a": [long]}, message=2, end=True),
        ToolResultEvent(tool_use_id="t", result=long, message=3, end=True),
        answer(long, message=4),
    )

    world.catch_up()

    prompt, call, result, said = world.transcript("s-1")
    assert prompt["message"]["content"] == shown
    assert call["message"]["content"][0]["input"] == {"a": [shown]}
    assert result["message"]["content"][0]["content"] == shown
    assert said["message"]["content"][0]["text"] == shown
    kept = [event for event in world.journals.read(job_id(1)) if isinstance(event, AssistantEvent)]
    assert kept[0].content == long


def test_a_text_of_exactly_the_limit_is_not_cut() -> None:
    assert cut("x" * DISPLAY_LIMIT) == "x" * DISPLAY_LIMIT


@pytest.mark.parametrize(
    ("event", "content", "is_error"),
    [
        (ToolResultEvent(tool_use_id="t", result={"a": 1}, success=True), '{"a": 1}', None),
        (ToolResultEvent(tool_use_id="t", error="no", success=False), "no", True),
        (ToolResultEvent(tool_use_id="t", result="out", error="no", success=False), "out", True),
        (ToolResultEvent(tool_use_id="t"), "", None),
    ],
)
def test_results_of_any_shape_are_text_and_failures_are_marked(
    world: World, event: ToolResultEvent, content: str, is_error: bool | None
) -> None:
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1")
    world.say(1, event)

    world.catch_up()

    block = world.transcript("s-1")[-1]["message"]["content"][0]
    assert block["content"] == content
    assert block.get("is_error") is is_error


def test_half_a_message_is_not_written_until_it_has_ended(world: World) -> None:
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1")
    world.say(1, *TURN[:2])
    world.catch_up()
    assert [line["type"] for line in world.transcript("s-1")] == ["user"]

    world.say(1, *TURN[2:])
    world.catch_up()
    lines = world.transcript("s-1")
    assert [line["type"] for line in lines] == ["user", "assistant", "user"]
    assert [block["type"] for block in lines[1]["message"]["content"]] == ["text", "tool_use"]


def test_half_a_message_of_a_lost_execution_is_never_written(world: World) -> None:
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1")
    world.say(1, AssistantEvent(content="lost words", message=2, turn=1))
    world.catch_up()

    world.say(1, describe(ExecutionStarted(worker="w2", continues_after=4)), epoch=2)
    world.say(1, answer("said again", message=2), epoch=2)
    world.catch_up()

    said = [line["message"]["content"] for line in world.transcript("s-1")]
    assert said == ["Graze.", [{"type": "text", "text": "said again"}]]


def test_a_running_job_is_followed_without_any_change_of_state(world: World) -> None:
    told(world).catch_up()
    before = len(world.transcript("s-1"))

    world.say(1, answer("The wolf is gone.", message=4, turn=2))
    world.catch_up()

    assert len(world.transcript("s-1")) == before + 1


def test_nothing_is_written_before_the_session_has_a_name(world: World) -> None:
    world.apply(submit(1), start(1))
    world.say(1, SystemEvent(subtype=SystemSubtype.USER_INPUT, content="Graze.", end=True))
    world.catch_up()
    assert not (world.root / "projects").exists()

    world.say(1, describe(Init(runtime="scripted", runtime_session_id="s-1")))
    world.catch_up()
    assert [line["message"]["content"] for line in world.transcript("s-1")] == ["Graze."]


@pytest.mark.parametrize("said", [None, "../../evil", "a b", "x" * 300])
def test_a_runtime_without_a_usable_name_leaves_ours(world: World, said: str | None) -> None:
    world.apply(submit(1), start(1))
    world.open_record(1, session=said)

    world.catch_up()

    assert [line["sessionId"] for line in world.transcript("sess-00000001")] == ["sess-00000001"]


def test_a_job_that_ends_before_its_runtime_speaks_still_has_a_transcript(world: World) -> None:
    world.apply(submit(1), start(1))
    world.say(1, SystemEvent(subtype=SystemSubtype.USER_INPUT, content="Graze.", end=True))
    world.say(1, ErrorEvent(message="no runtime"), end("failed", "error"))
    world.apply(settle(1, outcome=Outcome(exit_reason=ExitReason.ERROR, error="no runtime")))

    world.catch_up()

    kinds = [line["type"] for line in world.transcript("sess-00000001")]
    assert kinds == ["user", "assistant", "result"]


def test_jobs_of_one_session_share_one_transcript(world: World) -> None:
    for number in (1, 2):
        world.apply(submit(number, mode=SessionMode.PERSISTENT), start(number))
        world.open_record(number, session="s-1", prompt=f"Round {number}.")
        world.say(number, answer("Done.", message=2), end())
        world.name_session(number, "s-1")
        world.apply(settle(number))
        world.catch_up()

    lines = world.transcript("s-1")
    assert [line["type"] for line in lines] == ["user", "assistant", "result"] * 2
    assert [line["jobId"] for line in lines] == [job_id(1)] * 3 + [job_id(2)] * 3


def test_a_killed_follower_that_had_not_remembered_doubles_nothing(world: World) -> None:
    told(world).catch_up()
    memory = (world.root / "mirror.json").read_bytes()
    world.say(1, answer("The wolf is gone.", message=4, turn=2))
    world.catch_up()
    whole = world.transcript("s-1")

    # Killed after the append, before remembering it.
    (world.root / "mirror.json").write_bytes(memory)
    world.catch_up()
    assert world.transcript("s-1") == whole

    # Killed before it had ever remembered anything.
    (world.root / "mirror.json").unlink()
    world.catch_up()
    assert world.transcript("s-1") == whole


def test_rows_that_are_ahead_of_the_ledger_double_nothing(world: World) -> None:
    """A commit is in the database a moment before it is in the ledger."""
    for number in (1, 2):
        world.apply(submit(number, mode=SessionMode.PERSISTENT), start(number))
        world.open_record(number, session="s-1")
        world.name_session(number, "s-1")
        world.say(number, answer("Done.", message=2), end())
        world.apply(settle(number))
        settled = world.feed.entries.pop()
        world.catch_up()
        assert world.job(number)["status"] == "completed"

        world.feed.entries.append(settled)
        world.catch_up()

    lines = world.transcript("s-1")
    assert [line["type"] for line in lines] == ["user", "assistant", "result"] * 2
    assert [line["jobId"] for line in lines] == [job_id(1)] * 3 + [job_id(2)] * 3


def test_a_settled_job_is_not_written_again_either(world: World) -> None:
    told(world)
    world.say(1, end())
    world.apply(settle(1))
    world.catch_up()
    whole = world.transcript("s-1")

    (world.root / "mirror.json").unlink()
    world.catch_up()

    assert world.transcript("s-1") == whole


def test_a_torn_last_line_is_cut_and_written_whole(world: World) -> None:
    told(world).catch_up()
    path = world.root / "projects" / "-pasture" / "s-1.jsonl"
    whole = path.read_bytes()
    memory = (world.root / "mirror.json").read_bytes()

    for length in range(len(whole) - 1, len(whole) - 40, -7):
        path.write_bytes(whole[:length])
        (world.root / "mirror.json").unlink()
        world.catch_up()
        assert path.read_bytes() == whole

    # Remembered, and yet not all there: somebody cut the file.
    path.write_bytes(b"")
    (world.root / "mirror.json").write_bytes(memory)
    world.say(1, answer("The wolf is gone.", message=4, turn=2))
    world.catch_up()
    assert [line["seq"] for line in world.transcript("s-1")] == [8]


FULL_DISK = """\
import resource, sys
from pathlib import Path
from nightherd.errors import AtomicWriteError
from nightherd.mirror.transcripts import append

path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    append(path, path.stat().st_size, b"x" * 200 + b"\\n")
except AtomicWriteError as error:
    print(error.code)
"""


def test_a_line_that_does_not_fit_on_the_disk_leaves_nothing_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "s-1.jsonl"
    path.write_bytes(b'{"seq":1}\n')

    command = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert done.stdout == "EFBIG\n"
    assert path.read_bytes() == b'{"seq":1}\n'


def test_a_long_backlog_is_written_in_order(world: World) -> None:
    world.apply(submit(1), start(1))
    world.open_record(1, session="s-1")
    world.say(1, *(answer(f"line {n}", message=n) for n in range(2, 1302)))

    world.catch_up()

    lines: list[Any] = world.transcript("s-1")
    assert [line["seq"] for line in lines] == [2, *range(4, 1304)]


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("/pasture", "-pasture"),
        ("/home/agent/work space/a.b_c", "-home-agent-work-space-a-b-c"),
        ("/weide/grün", "-weide-gr-n"),
    ],
)
def test_working_directories_become_flat_names(directory: str, name: str) -> None:
    assert slug(directory) == name


def test_long_working_directories_still_fit_a_file_name_and_stay_apart() -> None:
    first, second = slug("/a" * 400 + "x"), slug("/a" * 400 + "y")

    assert len(first.encode()) < 255
    assert first.startswith("-a-a")
    assert first != second
