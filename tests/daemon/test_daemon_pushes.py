"""A daemon with a dashboard pushes what waits and what failed to a device that subscribed, also after it was killed."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.pasture import Pasture, wait_for
from daemon.test_reloading import ask
from nightherd.model.notifications.notification import NotificationQuery, NotificationStatus
from nightherd.model.push.subscription import PushSubscription
from nightherd.state.push_keys import KEYS_FILE
from nightherd.wiring.stores import open_reader
from runtimes.notify.push_service import Browser, PushService, push_service
from surfaces.drivers import submit_pending
from web.web_world import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MakePasture = Callable[..., Pasture]
FLEET = """\
reload: auto
web:
  enabled: true
  port: {port}
  push: {{contact: "mailto:ops@fleet.example", allow_hosts: [localhost]}}
agents:
  - name: asker
    runtime: scripted
    default_prompt: go
    questions: true
    script: [{{tool: ask_person, input: {{question: "Which server?"}}}}, {{say: done}}]
  - name: broken
    runtime: scripted
    default_prompt: go
    script: [{{fail: {{message: no luck}}}}]
  - name: nosy
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    script:
      - tool: Bash
        input: {{command: cat .nightherd/push-keys.json}}
      - say: done
"""


@pytest.fixture
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PushService]:
    with push_service(tmp_path_factory.mktemp("service")) as served:
        yield served


def subscribe(pasture: Pasture, service: PushService, browser: Browser) -> str:
    """Subscribe the browser over the daemon's socket; the id of its subscription."""
    body = {
        "endpoint": service.endpoint(),
        "keys": {"p256dh": browser.p256dh, "auth": browser.auth},
        "label": "Phone",
        "topics": ["inbox", "failures"],
    }
    answer = ask(pasture, "POST", "/v1/push/subscriptions", json.dumps(body).encode())
    assert answer["data"]["status"] == "active", answer
    return str(answer["data"]["id"])


def payloads(service: PushService, browser: Browser) -> list[Any]:
    return [browser.read(one.body) for one in service.received]


def statuses(pasture: Pasture) -> list[NotificationStatus]:
    reader = open_reader(pasture.state)
    try:
        return [one.status for one in reader.list_notifications(NotificationQuery())]
    finally:
        reader.close()


def subscription(pasture: Pasture, push_id: str) -> PushSubscription:
    reader = open_reader(pasture.state)
    try:
        found = reader.find_push_subscription(push_id)
    finally:
        reader.close()
    assert found is not None
    return found


def environ(service: PushService) -> dict[str, str]:
    return {"REQUESTS_CA_BUNDLE": str(service.certificate)}


def test_a_browser_reads_what_waits_and_what_failed_until_it_is_gone(
    make_pasture: MakePasture, service: PushService
) -> None:
    pasture, browser = make_pasture(FLEET.format(port=free_port())), Browser()
    trial = pasture.daemon(environ=environ(service))
    device = subscribe(pasture, service, browser)

    submit_pending(pasture.folder, "asker")
    wait_for(lambda: len(service.received) == 1, "the question")
    submit_pending(pasture.folder, "broken")
    wait_for(lambda: len(service.received) == 2, "the failure")

    items = ask(pasture, "GET", "/v1/inbox")["data"]
    ids = {one["kind"]: one["id"] for one in items}
    assert payloads(service, browser) == [
        {
            "kind": "question",
            "title": "asker has a question: Which server?",
            "item": ids["question"],
            "path": f"inbox/{ids['question']}",
        },
        {
            "kind": "failed",
            "title": "broken failed: no luck",
            "item": ids["failure"],
            "path": f"inbox/{ids['failure']}",
        },
    ]
    key = ask(pasture, "GET", "/v1/push")["data"]["public_key"]
    assert service.received[0].claims(key)["sub"] == "mailto:ops@fleet.example"
    topics = {one.headers["topic"] for one in service.received}
    assert len(topics) == 2

    service.status = 410
    submit_pending(pasture.folder, "broken")
    wait_for(lambda: not subscription(pasture, device).is_active, "the end of the device")
    submit_pending(pasture.folder, "broken")
    trial.send(signal.SIGTERM)
    assert trial.wait().status == 0
    assert subscription(pasture, device).end_reason == "gone"
    assert len(service.received) == 3


def test_a_push_on_its_way_when_the_daemon_is_killed_is_sent_by_the_next(
    make_pasture: MakePasture, service: PushService
) -> None:
    pasture, browser = make_pasture(FLEET.format(port=free_port())), Browser()
    trial = pasture.daemon(environ=environ(service), claim_margin_s=-7)
    subscribe(pasture, service, browser)
    service.hangs = True
    submit_pending(pasture.folder, "asker")
    assert service.asked.wait(90)
    trial.send(signal.SIGKILL)
    trial.wait()
    assert statuses(pasture) == [NotificationStatus.SENDING]

    service.hangs = False
    again = pasture.daemon(environ=environ(service))
    wait_for(lambda: statuses(pasture) == [NotificationStatus.SENT], "the claim has passed")
    again.send(signal.SIGTERM)
    assert again.wait().status == 0
    assert len(service.received) == 2, "at least once"
    first, second = payloads(service, browser)
    assert first == second
    assert service.received[0].headers["topic"] == service.received[1].headers["topic"]


def test_an_agent_that_prints_the_key_prints_a_mask(
    make_pasture: MakePasture, service: PushService
) -> None:
    pasture = make_pasture(FLEET.format(port=free_port()))
    trial = pasture.daemon()
    key = json.loads((pasture.state / KEYS_FILE).read_text())["private_key"]
    job = submit_pending(pasture.folder, "nosy")
    pasture.wait_until_said(trial, f"ended {job}")
    trial.send(signal.SIGTERM)
    assert trial.wait().status == 0

    journal = Path(pasture.state / "jobs" / f"{job}.jsonl").read_text()
    assert "[secret:push-key]" in journal
    assert key not in journal
