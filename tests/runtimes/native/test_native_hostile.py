"""Models that break every habit: ids that stand for several calls, and numbers that cannot be."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.usage import RequestUsage

from nightherd.model.journal.event import (
    AssistantEvent,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Summary, SystemSubtype
from nightherd.model.sessions.context_window import contextual
from nightherd.model.usage import Usage
from runtimes.native.native_stage import (
    NativeStage,
    Record,
    Replies,
    bash,
    calls,
    of_type,
    results,
    says,
    subtypes,
)


def test_every_call_has_an_id_of_its_own_whatever_the_model_calls_it(stage: NativeStage) -> None:
    same = [ToolCallPart("Bash", {"command": f"echo {word} >> said"}, "x") for word in "ab"]
    nameless = ToolCallPart("Bash", {"command": "echo c >> said"}, "")
    model = Replies(ModelResponse(same), ModelResponse([same[0], nameless]), says("done"))

    events = stage.run(model)

    assert (stage.directory / "said").read_text().split() == ["a", "b", "a", "c"]
    made = [use.tool_use_id for use in of_type(events, ToolUseEvent)]
    assert made == ["x", "x-1-1", "x-2-1", "call-2-1"]
    assert [result.tool_use_id for result in results(events)] == made
    sent = [part for message in model.conversations[-1] for part in message.parts]
    assert [one.tool_call_id for one in sent if isinstance(one, ToolReturnPart)] == made


def test_ids_are_of_their_own_also_after_a_kill(stage: NativeStage) -> None:
    record, first = Record(), Replies(bash("echo a"), says("done"))
    events = stage.run(first, stage.request(record))
    whole = next(place for place, event in enumerate(events) if isinstance(event, ToolResultEvent))
    record.add(*events[: whole + 1])

    later = stage.run(Replies(bash("echo b"), says("done")), stage.request(record, job_turns=1))

    assert [use.tool_use_id for use in of_type(later, ToolUseEvent)] == ["call-0-2-1"]


def test_an_id_that_only_a_summary_covers_is_still_taken(stage: NativeStage) -> None:
    record = Record()
    record.add(*stage.run(Replies(bash("echo a"), says("done")), stage.request(record)))
    record.add(
        describe(Summary(covers_message=4), "It said a."),
        SystemEvent(subtype=SystemSubtype.USER_INPUT, content="again", end=True),
    )
    model = Replies(bash("echo b"), says("done"))

    told = contextual(record.events)
    later = stage.run(model, stage.request(job_turns=2, history=lambda: told))

    assert "call-0" not in repr(model.conversations[0]), "the model is not told about it"
    assert [use.tool_use_id for use in of_type(later, ToolUseEvent)] == ["call-0-3-1"]


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ({"input_tokens": -5, "output_tokens": -7}, Usage()),
        ({"input_tokens": 10**30, "output_tokens": 1}, Usage(input_tokens=10**12, output_tokens=1)),
        ({"input_tokens": 9, "cache_read_tokens": -4}, Usage(input_tokens=9)),
        ({"input_tokens": 9, "cost": Decimal(-1)}, Usage(input_tokens=9)),
        ({"input_tokens": 9, "cost": Decimal("1e30")}, Usage(input_tokens=9)),
    ],
    ids=["below nothing", "beyond counting", "cached below nothing", "paid back", "beyond price"],
)
def test_what_an_answer_cannot_have_used_is_not_counted(
    stage: NativeStage, said: dict[str, Any], counted: Usage
) -> None:
    events = stage.run(Replies(ModelResponse([TextPart("x")], usage=RequestUsage(**said))))

    (answer,) = of_type(events, AssistantEvent)
    assert answer.usage == counted
    assert subtypes(events)[-1] == "complete"


@pytest.mark.parametrize("mode", ["bypassPermissions", "acceptEdits", "default"])
def test_path_that_nobody_can_look_up_is_answered_and_the_run_goes_on(
    stage: NativeStage, mode: str
) -> None:
    asked = (
        ("Write", {"file_path": "a\0b", "content": ""}),
        ("Read", {"file_path": "\0"}),
        ("Glob", {"pattern": "*", "path": "\0"}),
        ("Bash", {"command": "mkdir 'a\0b'"}),
    )
    agent = {"permission_mode": mode, "idempotent_tools": ("Edit(docs/**)", "Bash(mkdir *)")}

    events = stage.run(Replies(calls(*asked), says("oh")), stage.request(agent=agent))

    assert [one.success for one in results(events)] == [False] * 4
    assert subtypes(events)[-1] == SystemSubtype.COMPLETE
