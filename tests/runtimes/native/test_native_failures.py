"""Everything that goes wrong between the loop and a provider, on a real client and a loopback API."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import exceptions as pa

from nightherd.model.jobs.failure import FAILURES as KNOWN
from nightherd.model.journal.event import AssistantEvent, ErrorEvent, Event, SystemEvent, payload_of
from nightherd.model.journal.system import Complete
from nightherd.model.units import MicroUsd
from nightherd.runtimes.native.failure import FAILURES, OTHERWISE, error_event
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Answer, Call, Cut, Garble, Refuse, Say, Tokens
from runtimes.heard import error_of
from runtimes.native.native_stage import NativeStage, Replies, of_type, results

MODEL = "anthropic:claude-sonnet-5-5"
AT = datetime(2026, 1, 2, 3, tzinfo=UTC)


def ask(stage: NativeStage, *answers: Answer, **more: Any) -> tuple[list[Event], MessagesApi]:
    """Every event of a run against an API that answers so."""
    with MessagesApi(*answers) as api:
        return stage.run(None, stage.request(api=api, agent={"model": MODEL}), **more), api


def test_a_whole_run_over_http(stage: NativeStage) -> None:
    call = Call("Bash", {"command": "echo made > made.txt"})

    events, api = ask(
        stage,
        Say(thinking="hm", text="I will.", calls=(call,), tokens=Tokens(input=1000, output=100)),
        Say(text="Done.", tokens=Tokens(input=1100, output=10, cache_read=900, cache_written=50)),
    )

    assert (stage.directory / "made.txt").exists()
    assert results(events)[0].success
    complete = payload_of(events[-1])  # type: ignore[arg-type]
    assert isinstance(complete, Complete)
    assert complete.usage is not None
    assert complete.usage.input_tokens == 2100
    assert complete.usage.cache_read_input_tokens == 900
    assert complete.usage.cache_creation_input_tokens == 50
    assert complete.usage.cost_microusd > MicroUsd(0)
    assert complete.api_duration_ms is not None
    sent = api.asked[1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"][0] == {
        "type": "thinking",
        "thinking": "hm",
        "signature": "signed-loopback1",
    }
    assert sent[2]["content"][0]["type"] == "tool_result"


def test_the_source_of_a_cost_is_on_record(stage: NativeStage) -> None:
    events, _ = ask(stage, Say(text="Done.", tokens=Tokens(input=1_000_000, output=0)))

    (answer,) = of_type(events, AssistantEvent)
    assert answer.extra["cost_source"] == "genai-prices"
    assert answer.usage.cost_microusd > MicroUsd(100_000)


def test_a_model_without_a_price_is_warned_about_once(stage: NativeStage) -> None:
    with MessagesApi(Say(calls=(Call("Bash", {"command": "true"}),)), Say(text="x")) as api:
        request = stage.request(api=api, agent={"model": "anthropic:claude-unheard-of"})
        events = stage.run(None, request)

    warnings = [
        event
        for event in events
        if isinstance(event, SystemEvent) and event.subtype.value == "warning"
    ]
    assert [warning.extra for warning in warnings] == [{"code": "price_unknown"}]


@pytest.mark.parametrize(
    ("answer", "code", "recoverable"),
    [
        (Refuse(status=400), "invalid_request", False),
        (Refuse(status=401), "auth_failed", False),
        (Refuse(status=403), "auth_failed", False),
        (Refuse(status=404), "model_not_found", False),
        (Refuse(status=402), "billing", False),
        (Refuse(status=408), "network", True),
        (Refuse(status=425), "network", True),
        (Refuse(status=413), "prompt_too_long", False),
        (Refuse(status=400, message="prompt is too long: 300000 tokens"), "prompt_too_long", False),
        (Refuse(status=429), "rate_limited", True),
        (Refuse(status=500), "server_error", True),
        (Refuse(status=503), "server_error", True),
        (Refuse(status=529), "overloaded", True),
        (Say(text="x", drop=Cut.HEADERS), "network", True),
        (Say(text="x", drop=Cut.START), "network", True),
        (Say(text="x", drop=Cut.MIDDLE), "network", True),
        (Say(text="x", stop_reason="refusal"), "refused", False),
        (Say(text="x", stop_reason="max_tokens"), "output_limit", False),
        (Say(), "empty_answer", True),
    ],
)
def test_what_a_provider_does_has_a_name(
    stage: NativeStage, answer: Answer, code: str, recoverable: bool
) -> None:
    events, api = ask(stage, answer)

    error = error_of(events)
    assert error.code == code, error
    assert bool((error.extra or {}).get("recoverable")) is recoverable
    assert len(api.asked) == 1, "trying again is the engine's business"


def test_a_body_that_is_no_answer_is_not_taken_for_one(stage: NativeStage) -> None:
    events, _ = ask(stage, Garble())

    error = error_of(events)
    assert (error.extra or {}).get("recoverable") is True
    assert not [line for line in of_type(events, AssistantEvent) if line.end]


def test_a_provider_that_names_a_time_is_quoted(stage: NativeStage) -> None:
    events, _ = ask(stage, Refuse(status=429, retry_after_s=17))

    assert error_of(events).extra == {"recoverable": True, "status": 429, "retry_after_s": 17.0}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"anthropic-ratelimit-requests-reset": "2026-01-02T04:00:00Z"}, 3600),
        ({"anthropic-ratelimit-requests-reset": "2026-01-02T02:00:00Z"}, 0),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "120ms"}, 360),
        ({"x-ratelimit-reset-tokens": "9h", "x-ratelimit-remaining-tokens": "5"}, None),
        ({"x-ratelimit-reset-tokens": "9h", "x-ratelimit-remaining-tokens": "0"}, 32_400),
        ({"x-ratelimit-reset": "1767326400000", "x-ratelimit-remaining": "0"}, 3600),
        ({"x-ratelimit-reset": "1767326400"}, 3600),
        ({"ratelimit-reset": "90"}, 90),
        ({"ratelimit-reset": "soon", "x-reset": "90"}, None),
        (None, None),
    ],
)
def test_a_provider_may_say_when_its_counters_begin_anew(
    headers: dict[str, str] | None, seconds: float | None
) -> None:
    error = pa.ModelHTTPError.for_category(
        pa.ModelRateLimitError, status_code=429, model_name="m", headers=headers
    )

    said = error_event(error, turn=1, at=AT).extra or {}

    assert said.get("retry_after_s") == (seconds or None)


def test_what_an_answer_that_was_cut_off_has_cost_is_counted(stage: NativeStage) -> None:
    events, _ = ask(stage, Say(text="x", tokens=Tokens(input=5000), drop=Cut.MIDDLE))

    used = (error_of(events).extra or {})["usage"]
    assert used["input_tokens"] == 5000
    assert used["cost_microusd"] > 0


def test_a_model_that_says_nothing_is_given_up(stage: NativeStage) -> None:
    held = threading.Event()

    events, _ = ask(stage, Say(text="x", hold=held), patience=timedelta(seconds=1))

    error = error_of(events)
    assert error.code == "stalled"
    assert (error.extra or {})["recoverable"] is True


def test_nobody_there_is_a_failure_of_the_network(stage: NativeStage) -> None:
    with free_port() as port:
        request = stage.request(
            agent={"model": MODEL},
            environment={
                **stage.environment(),
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
            },
        )
        events = stage.run(None, request)

    assert error_of(events).code == "network"


@contextmanager
def free_port() -> Iterator[int]:
    """A port that nobody listens on, and nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize(
    ("agent", "code", "told"),
    [
        ({}, "no_model", "set `model: provider:name`"),
        ({"model": "gpt"}, "model_not_found", "gpt"),
        ({"model": "nobody:gpt"}, "no_model", "nobody"),
        ({"model": "openai:gpt-5"}, "missing_api_key", "no key: OPENAI_API_KEY is not set"),
    ],
)
def test_a_model_that_cannot_be_had_is_said_so_before_anything_is_asked(
    stage: NativeStage, agent: dict[str, str], code: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    (error,) = stage.run(None, stage.request(agent=agent))

    assert isinstance(error, ErrorEvent)
    assert error.code == code
    assert told in error.message


def test_the_key_is_not_in_what_is_said_about_a_failure(stage: NativeStage) -> None:
    events, _ = ask(stage, Refuse(status=401, message="invalid x-api-key"))

    assert stage.environment()["ANTHROPIC_API_KEY"] not in repr(events)


def test_the_second_model_answers_when_the_first_is_not_to_be_had(stage: NativeStage) -> None:
    with MessagesApi(Refuse(status=529), Say(text="from the second")) as api:
        agent = {"model": MODEL, "fallback_model": "anthropic:claude-haiku-5-5"}
        events = stage.run(None, stage.request(api=api, agent=agent))

    assert [asked.body["model"] for asked in api.asked] == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert of_type(events, AssistantEvent)[-1].content == "from the second"


def test_when_both_fail_the_last_says_why(stage: NativeStage) -> None:
    with MessagesApi(Refuse(status=529), Refuse(status=429, retry_after_s=3)) as api:
        agent = {"model": MODEL, "fallback_model": "anthropic:claude-haiku-5-5"}
        events = stage.run(None, stage.request(api=api, agent=agent))

    assert error_of(events).code == "rate_limited"


def test_every_row_of_the_table_can_be_the_one_that_fits() -> None:
    """No row stands behind another one that takes everything it is about."""
    for place, row in enumerate(FAILURES):
        hiding = [
            one
            for one in FAILURES[:place]
            if issubclass(row.kind, one.kind) and one.statuses is None and one.text is None
        ]
        assert not hiding, (row, hiding)


OF_THE_LOOP = {
    "empty_answer": True,
    "max_turns": False,
    "limit": False,
    "output_limit": False,
    "refused": False,
    "stalled": True,
    "unreadable_record": False,
    "working_directory": False,
}
"""Codes that the loop gives by itself, and whether trying again can help."""


def test_every_code_is_known_to_programs_and_described_to_people() -> None:
    codes = {row.code: row.recoverable for row in (*FAILURES, OTHERWISE)} | OF_THE_LOOP

    assert {code: KNOWN[code].recoverable for code in codes} == codes
    page = (Path(__file__).parents[3] / "docs" / "guide" / "native.md").read_text()
    assert [code for code in codes if f"`{code}`" not in page] == []


def test_a_long_text_of_a_provider_is_shortened() -> None:
    event = error_event(pa.UnexpectedModelBehavior("x" * 10_000), turn=1, at=AT)

    assert len(event.message) < 3_000


def test_a_mistake_in_the_loop_itself_is_not_taken_for_a_failure_of_the_model(
    stage: NativeStage,
) -> None:
    with pytest.raises(ZeroDivisionError):
        stage.run(Replies(ZeroDivisionError()))
