"""The same loop on another provider's protocol, at an address that the environment names."""

from __future__ import annotations

import msgspec
from pydantic_ai.messages import ModelRequest, ModelResponse

from nightherd.model.journal.event import AssistantEvent, Event, SystemEvent, payload_of
from nightherd.model.journal.system import Complete
from nightherd.model.units import MicroUsd
from nightherd.runtimes.native.decode import Reader
from runtimes.native.chat_api import call, chat_api, text
from runtimes.native.native_stage import NativeStage, of_type, results


def test_a_server_that_is_compatible_with_openai_is_a_model_like_any_other(
    stage: NativeStage,
) -> None:
    with chat_api(call("Bash", '{"command": "echo hi"}'), text("It ", "said hi.")) as (url, asked):
        events = stage.run(None, stage.chat_request(url))

    assert [one.result for one in results(events)] == ["hi\n"]
    assert of_type(events, AssistantEvent)[-1].content == "It said hi."
    assert isinstance(events[-1], SystemEvent)
    complete = payload_of(events[-1])
    assert isinstance(complete, Complete)
    assert complete.usage is not None
    assert (complete.usage.input_tokens, complete.usage.output_tokens) == (2000, 200)
    assert complete.usage.cost_microusd > MicroUsd(0)
    roles = [message["role"] for message in asked[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert {tool["function"]["name"] for tool in asked[0]["tools"]} >= {"Bash", "Glob"}


def test_what_it_answers_needs_no_validation_to_be_read_again(stage: NativeStage) -> None:
    """Most of a long record is this: validation takes several times as long."""
    with chat_api(call("Bash", '{"command": "echo hi"}'), text("It ", "said hi.")) as (url, _):
        events = stage.run(None, stage.chat_request(url))

    reader = Reader()
    reader.take(msgspec.json.decode(msgspec.json.encode(one), type=Event) for one in events)
    assert [type(one) for one in reader.made()] == [ModelResponse, ModelRequest, ModelResponse]
