"""A lost conversation in words: who said what, of whom, and how much of it."""

from __future__ import annotations

from nightherd.model.ids import JobId
from nightherd.model.journal.event import (
    AssistantEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
)
from nightherd.model.journal.system import SystemSubtype
from nightherd.runtimes.claude.memory import since
from nightherd.runtimes.claude.recount import RECOUNT_LENGTH, SHOWN_EACH, recounted

BEFORE, NOW = JobId("job-2026-11-14-aaaaaa"), JobId("job-2026-11-15-bbbbbb")


def asked(text: str, job: JobId = BEFORE) -> Event:
    return SystemEvent(
        subtype=SystemSubtype.USER_INPUT, content=text, end=True, execution=f"{job}.1"
    )


def answered(text: str, helper_of: str | None = None) -> Event:
    return AssistantEvent(
        content=text, end=True, execution=f"{BEFORE}.1", parent_tool_use_id=helper_of
    )


def test_everything_before_the_job_is_told_in_its_order() -> None:
    call = ToolUseEvent(tool_name="Bash", tool_use_id="t", input={"command": "ls"}, end=True)
    result = ToolResultEvent(tool_use_id="t", result="a file", success=False, end=True)
    helper = answered("of a helper", helper_of="t")

    told = recounted(
        [asked("look"), call, helper, result, answered("done"), asked("now", NOW)], NOW
    )

    assert told == (
        "You were asked:\nlook\n\n"
        'You called Bash {"command": "ls"}\n\n'
        "It failed:\na file\n\n"
        "You said:\ndone"
    )


def test_nothing_before_the_job_is_nothing_to_tell() -> None:
    assert recounted([], NOW) is None
    assert recounted([asked("now", NOW), asked("later", NOW)], NOW) is None


def test_of_a_long_conversation_the_end_is_told() -> None:
    count = 2 * RECOUNT_LENGTH // SHOWN_EACH
    long = [answered(f"answer {number} {'x' * SHOWN_EACH}") for number in range(count)]

    told = recounted(long, NOW)

    assert told is not None
    assert len(told) < RECOUNT_LENGTH + 2 * SHOWN_EACH
    assert f"answer {count - 1} " in told
    kept = told.count("You said:")
    assert told.startswith(f"({count - kept} earlier messages are left out here.)")


def test_what_the_job_said_itself_begins_with_its_first_event() -> None:
    history = [asked("before"), asked("now", NOW), answered("so far")]

    assert list(since(history, NOW)) == history[1:]
