"""Hooks that write to a channel queue a notification; requests may have a body of their own."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.bench import Bench
from engine.hooks.played_hooks import PlayedCarrier, hook, hook_lines, with_hooks
from nightherd.model.hooks import ChatMessage, HookPoint, HttpRequest, fill_body
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import ErrorEvent
from nightherd.model.notifications.notification import NotificationQuery, NotificationStatus
from nightherd.testing.runtime import ANSWER, PlayedRuntime

SLACK = ChatMessage(service="slack", channel="C0123456789", token_env="SLACK_BOT_TOKEN")
REQUEST = HttpRequest(url="https://hooks.example/", timeout=timedelta(seconds=10))


def test_a_message_is_queued_for_the_channel_of_the_hook() -> None:
    bench = with_hooks(Bench(PlayedRuntime(ANSWER)), PlayedCarrier(), hook(action=SLACK))

    job = bench.run()

    assert job.status is JobStatus.COMPLETED
    (queued,) = bench.reader.list_notifications(NotificationQuery())
    assert queued.target == f"{bench.agent.name}/hooks.after_run[0]"
    assert (queued.status, queued.job_id) == (NotificationStatus.PENDING, job.id)
    texts = bench.reader.find_notification_texts(queued.id)
    assert texts is not None
    assert texts.fields["title"] == f"{bench.agent.name} completed"
    ended = hook_lines(bench, job.id)[-1]
    assert (ended.success, ended.output) == (True, f"queued as {queued.id}")


def test_a_hook_for_errors_says_what_went_wrong() -> None:
    failing = (ErrorEvent(message="no luck", code="bad_luck"),)
    carrier = PlayedCarrier()
    bench = with_hooks(
        Bench(PlayedRuntime(failing)), carrier, hook(HookPoint.ON_ERROR, action=SLACK)
    )

    bench.run()

    (queued,) = bench.reader.list_notifications(NotificationQuery())
    texts = bench.reader.find_notification_texts(queued.id)
    assert texts is not None
    assert "no luck" in texts.fields["what"]


def sent_body(body: Any) -> tuple[bytes, str]:
    carrier = PlayedCarrier()
    action = replace(REQUEST, body=body)
    bench = with_hooks(Bench(PlayedRuntime(ANSWER)), carrier, hook(action=action))
    bench.run()
    (call,) = carrier.calls
    return call.body, call.content_type


def test_a_request_has_the_body_that_its_template_makes() -> None:
    body, kind = sent_body({"text": "${job.agent}: ${hook.event}", "ok": "${result.success}"})

    assert kind == "application/json"
    found = json.loads(body)
    assert found["ok"] is True
    assert found["text"].endswith(": completed")


def test_a_template_that_is_a_text_is_sent_as_text() -> None:
    body, kind = sent_body("job ${job.id} ${job.nothing}.")

    assert kind == "text/plain; charset=utf-8"
    assert body.startswith(b"job job-")
    assert body.endswith(b" .")


@pytest.mark.parametrize(
    "hostile", ['", "admin": true, "x": "', "${job.id}", "a\r\nX: y", "{{7*7}}"]
)
def test_a_hostile_value_stays_inside_its_text(hostile: str) -> None:
    context = {"result": {"output": hostile}, "job": {"id": "job-1"}}

    filled = fill_body({"text": "said ${result.output}"}, context)

    assert json.loads(json.dumps(filled)) == {"text": f"said {hostile}"}
