"""Rate limits and outages of whole jobs by the command, on the runtimes that are our own."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Cut, Refuse, Say
from runtimes.commanded import Commanded
from runtimes.native.native_stage import NativeStage

PATIENCE_S = 100
pytestmark = pytest.mark.timeout(300)

FLEET = """\
defaults: {runtime: native, model: "anthropic:claude-sonnet-5-5", working_directory: work}
retry: {attempts: 1, first_pause: 2s, max_wait: 1h}
agents:
  - {name: helper, schedules: {nightly: {type: cron, expression: "0 2 * * *", prompt: go}}}
  - {name: other}
  - name: scripted
    runtime: scripted
    script:
      - fail: {code: network, message: No route, recoverable: true}
"""


def herd_of(root: Path, api: MessagesApi) -> Commanded:
    work = root / "work"
    work.mkdir()
    environment = {**NativeStage(work).environment(api), "HOME": str(root)}
    return Commanded(root, FLEET, environment)


def data_of(herd: Commanded, *words: str) -> dict[str, Any]:
    done = herd.nightherd(*words, "--json")
    found = json.loads(done.stdout)["data"]
    assert isinstance(found, dict), done.stderr
    return found


def test_native_job_waits_for_overload_and_outage_and_completes_by_itself(tmp_path: Path) -> None:
    broken = Say(text="never", drop=Cut.HEADERS)
    with MessagesApi(Refuse(status=529), broken, Say(text="All done.")) as api:
        herd = herd_of(tmp_path, api)
        waiting = data_of(herd, "run", "helper", "-p", "make it")
        with herd.started("worker"):
            assert api.wait_until_asked(3, PATIENCE_S)
            herd.wait_until_completed()
        waits = [line for line in herd.journal() if line.get("subtype") == "suspended"]

    assert (waiting["status"], waiting["suspend_reason"]) == ("suspended", "rate_limit")
    assert waiting["resumes_at"] is not None
    assert [one["extra"]["code"] for one in waits] == ["overloaded", "network"]


def test_limit_of_a_key_stops_every_job_with_that_key_until_its_reset(tmp_path: Path) -> None:
    with MessagesApi(Refuse(status=429, retry_after_s=3600), Say(text="All done.")) as api:
        herd = herd_of(tmp_path, api)
        hit = data_of(herd, "run", "helper", "-p", "make it")
        queued = data_of(herd, "run", "other", "-p", "make it", "-d")
        free = data_of(herd, "run", "scripted", "-p", "make it", "-d")
        herd.nightherd("worker", "--until-idle")
        left = [data_of(herd, "jobs", "show", one["job_id"]) for one in (queued, free)]
        why = herd.nightherd("schedule", "why", "helper/nightly").stdout
        shown = herd.nightherd("status").stdout
        asked = len(api.asked)

    resets_at = datetime.fromisoformat(hit["resumes_at"])
    begun = datetime.fromisoformat(data_of(herd, "jobs", "show", hit["job_id"])["created_at"])
    assert timedelta(hours=1) <= resets_at - begun <= timedelta(hours=1, minutes=3)
    assert (hit["suspend_reason"], asked) == ("rate_limit", 1)
    assert [one["status"] for one in left] == ["pending", "suspended"]
    until_then = f"rate limited until {resets_at:%Y-%m-%dT%H:%M:%S}Z"
    assert f"its login is {until_then}" in why
    assert until_then in shown
    assert f"rate limited until {resets_at:%Y-%m-%dT%H:%M:%S}Z" in left[0]["waits_for"]


def test_scripted_job_that_cannot_reach_anything_says_when_it_tries_again(tmp_path: Path) -> None:
    with MessagesApi(Say(text="never asked")) as api:
        herd = herd_of(tmp_path, api)
        waiting = data_of(herd, "run", "scripted", "-p", "make it")
        shown = herd.nightherd("jobs", "show", "@last").stdout

    assert (waiting["status"], waiting["suspend_reason"]) == ("suspended", "error")
    assert waiting["resumes_at"] is not None
    assert f"nightherd jobs resume {waiting['job_id']}" in shown
