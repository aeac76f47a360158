"""Usage limits of a subscription: read from events and texts, and waited for with the real `claude`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from nightherd.model.journal.event import ErrorEvent
from nightherd.runtimes.claude.translate import Translator
from nightherd.runtimes.claude.usage_limit import (
    UsageLimit,
    UsageLimits,
    limit_in_event,
    reset_in_text,
)
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Cut, Refuse, Say, UsageLimitHit
from runtimes.claude.claude_stage import PATIENCE_S, ClaudeStage
from runtimes.commanded import Commanded
from runtimes.heard import error_of

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
RESET = 1_794_824_874
AT_RESET = datetime.fromtimestamp(RESET, UTC)
HIT = "You've hit your 5-hour limit · resets 10:27am (UTC)"
OAUTH = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "dummy-token-of-the-tests"}


def limit_event(**info: Any) -> dict[str, Any]:
    return {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", **info}}


def api_error(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "error": "rate_limit", "message": {"content": content}, **more}


def failed_result(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, "result": text, **more}


def failure_in(*messages: dict[str, Any]) -> ErrorEvent:
    limits = UsageLimits(lambda: NOW)
    translator = Translator(runtime="cli", first_turn=1, is_resumed=False, usage_limits=limits)
    events = [event for message in messages for event in translator.message(message)]
    events += translator.finish()
    last = events[-1]
    assert isinstance(last, ErrorEvent)
    return last


def resets_at(error: ErrorEvent) -> datetime | None:
    text = (error.extra or {}).get("resets_at")
    return None if text is None else datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (HIT, datetime(2026, 11, 16, 10, 27, tzinfo=UTC)),
        ("You've hit your limit · resets 4:17am", datetime(2026, 11, 17, 4, 17, tzinfo=UTC)),
        ("5-hour limit reached ∙ resets 3pm", datetime(2026, 11, 16, 15, tzinfo=UTC)),
        ("resets 12am", datetime(2026, 11, 17, tzinfo=UTC)),
        ("resets 9:30am", NOW),
        (
            "You've hit your weekly limit · resets Nov 19, 8:27am (Europe/Berlin)",
            datetime(2026, 11, 19, 7, 27, tzinfo=UTC),
        ),
        ("Weekly limit reached ∙ resets Nov 20 at 1pm", datetime(2026, 11, 20, 13, tzinfo=UTC)),
        ("your Opus limit · resets Jan 2, 3:27pm (UTC)", datetime(2027, 1, 2, 15, 27, tzinfo=UTC)),
        ("resets Jan 2, 2027, 3pm (UTC)", datetime(2027, 1, 2, 15, tzinfo=UTC)),
        (f"Claude AI usage limit reached|{RESET}", AT_RESET),
        ("resets 4:17am (Not/AZone)", datetime(2026, 11, 17, 4, 17, tzinfo=UTC)),
        ("Approaching your limit", None),
        ("resets 25:00am", None),
        ("resets Feb 31, 4pm", None),
        ("resets Foo 3, 4pm", None),
    ],
)
def test_time_of_a_reset_is_read_from_a_text(text: str, at: datetime | None) -> None:
    assert reset_in_text(text, NOW, UTC) == at


def test_time_without_a_zone_is_in_the_zone_given() -> None:
    at = reset_in_text("resets 4:17pm", NOW, ZoneInfo("America/New_York"))

    assert at == datetime(2026, 11, 16, 21, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("info", "limit"),
    [
        (
            {"resetsAt": RESET, "rateLimitType": "five_hour", "isUsingOverage": False},
            UsageLimit(resets_at=AT_RESET, name="five_hour"),
        ),
        ({"resetsAt": RESET * 1000}, UsageLimit(resets_at=AT_RESET)),
        (
            {"resetsAt": RESET, "overageStatus": "rejected", "overageDisabledReason": "x"},
            UsageLimit(resets_at=AT_RESET),
        ),
        ({"resetsAt": "soon"}, UsageLimit(resets_at=None)),
        ({}, UsageLimit(resets_at=None)),
        ({"resetsAt": RESET, "overageStatus": "allowed", "isUsingOverage": True}, None),
        ({"resetsAt": RESET, "overageStatus": "allowed_warning"}, None),
        ({"status": "allowed_warning", "resetsAt": RESET}, None),
        ({"status": "allowed", "resetsAt": RESET}, None),
    ],
)
def test_only_a_rejection_without_usable_overage_counts(
    info: dict[str, Any], limit: UsageLimit | None
) -> None:
    assert limit_in_event(limit_event(**info)) == limit


def test_event_names_the_time_and_the_text_is_not_asked() -> None:
    error = failure_in(
        limit_event(resetsAt=RESET, rateLimitType="five_hour"),
        api_error("You've hit your limit · resets 11:59pm (UTC)", api_error_status=429),
        failed_result("You've hit your limit · resets 11:59pm (UTC)", api_error_status=429),
    )

    assert (error.code, resets_at(error)) == ("rate_limited", AT_RESET)
    assert (error.extra or {})["limit"] == "five_hour"


@pytest.mark.parametrize("before", [[], [limit_event(status="allowed_warning", resetsAt=RESET)]])
def test_text_names_the_time_when_no_event_reports_the_rejection(
    before: list[dict[str, Any]],
) -> None:
    error = failure_in(*before, api_error(HIT), failed_result(HIT))

    assert error.code == "rate_limited"
    assert resets_at(error) == datetime(2026, 11, 16, 10, 27, tzinfo=UTC)


def test_text_at_the_top_of_a_message_names_the_time_too() -> None:
    content = api_error(HIT)["message"]["content"]
    flat = {"type": "assistant", "error": "rate_limit", "content": content}

    error = failure_in(flat, failed_result(HIT))

    assert resets_at(error) == datetime(2026, 11, 16, 10, 27, tzinfo=UTC)


def test_overage_that_can_be_used_names_no_time() -> None:
    covered = limit_event(resetsAt=RESET, overageStatus="allowed", isUsingOverage=True)

    error = failure_in(covered, api_error(HIT), failed_result(HIT))

    assert (error.code, resets_at(error)) == ("rate_limited", None)


def test_what_the_model_says_about_limits_is_not_believed() -> None:
    said = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": HIT}]}}

    error = failure_in(said, failed_result(HIT, api_error_status=429))

    assert (error.code, resets_at(error)) == ("rate_limited", None)


@pytest.mark.parametrize(
    ("status", "code"), [(429, "rate_limited"), (529, "overloaded"), (500, "server_error")]
)
def test_status_that_only_the_text_has_is_read_from_it(status: int, code: str) -> None:
    """As 2.1.100 reports it."""
    text = f'API Error: {status} {{"type":"error","error":{{"type":"x","message":"no"}}}}'

    error = failure_in(api_error(text, error="unknown"), failed_result(text))

    assert (error.code, (error.extra or {}).get("recoverable")) == (code, True)


def test_status_that_the_model_writes_is_no_status() -> None:
    text = "API Error: 429 is what the log says"
    said = {
        "type": "assistant",
        "message": {"id": "m", "content": [{"type": "text", "text": text}]},
    }

    assert failure_in(said, failed_result(text)).code == "claude_failed"


@pytest.mark.either_runtime
def test_real_claude_names_the_reset_of_a_weekly_limit(stage: ClaudeStage) -> None:
    six_days = timedelta(days=6)
    hit = UsageLimitHit(resets_in_s=six_days.total_seconds(), claim="seven_day")
    begun = datetime.now(UTC).replace(microsecond=0)
    with MessagesApi(Refuse(status=429, limit=hit)) as api:
        error = error_of(stage.run(api, environment=OAUTH))

    assert (error.code, (error.extra or {})["limit"]) == ("rate_limited", "seven_day")
    at = resets_at(error)
    assert at is not None
    assert begun + six_days <= at <= datetime.now(UTC) + six_days


FLEET = """\
defaults: {{runtime: {runtime}}}
agents:
  - name: helper
    working_directory: work
"""


@pytest.mark.either_runtime
def test_job_waits_for_the_reset_and_completes_by_itself(stage: ClaudeStage) -> None:
    hit = Refuse(status=429, limit=UsageLimitHit(resets_in_s=15))
    with MessagesApi(hit, Say(text="All done.")) as api:
        environment = {**stage.environment(api), **OAUTH}
        herd = Commanded(stage.root, FLEET.format(runtime=stage.runtime), environment)
        first = herd.nightherd("run", "helper", "-p", "make it", "--json")
        waiting = json.loads(first.stdout)["data"]
        shown = herd.nightherd("jobs", "show", "@last").stdout
        with herd.started("worker"):
            assert api.wait_until_asked(2, PATIENCE_S)
            herd.wait_until_completed()
        done, journal = herd.job(), herd.journal()

    assert (first.returncode, waiting["status"], waiting["suspend_reason"]) == (
        8,
        "suspended",
        "rate_limit",
    ), first.stderr
    (failed,) = (line for line in journal if line["type"] == "error")
    assert waiting["resumes_at"] == done_at(failed)
    assert "suspended (rate_limit)" in shown
    assert (done["restart_count"], len(api.asked)) == (0, 2)
    resumed = [line for line in journal if line.get("subtype") == "execution_started"][1]
    assert resumed["timestamp"] >= waiting["resumes_at"]


FAST = "retry: {attempts: 1, first_pause: 3s}\n"


@pytest.mark.either_runtime
def test_limit_of_a_key_and_an_outage_are_waited_for_without_a_named_time(
    stage: ClaudeStage,
) -> None:
    refused = Refuse(status=429, retry_after_s=3600)
    with MessagesApi(refused, Say(text="never", drop=Cut.HEADERS), Say(text="All done.")) as api:
        fleet = FAST + FLEET.format(runtime=stage.runtime)
        herd = Commanded(stage.root, fleet, stage.environment(api))
        first = herd.nightherd("run", "helper", "-p", "make it", "--json")
        waiting = json.loads(first.stdout)["data"]
        with herd.started("worker"):
            assert api.wait_until_asked(3, PATIENCE_S)
            herd.wait_until_completed()
        journal = herd.journal()

    assert (first.returncode, waiting["status"], waiting["suspend_reason"]) == (
        8,
        "suspended",
        "rate_limit",
    ), first.stderr
    assert waiting["resumes_at"] is not None
    waits = [line["extra"] for line in journal if line.get("subtype") == "suspended"]
    assert [(one["reason"], one["code"]) for one in waits] == [
        ("rate_limit", "rate_limited"),
        ("error", "network"),
    ]
    assert all(one["until"] for one in waits)


def done_at(failed: dict[str, Any]) -> str:
    """The reset on record, as commands show times."""
    at = datetime.fromisoformat(failed["extra"]["resets_at"])
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
