"""A daemon sends a message with a link; the link's page answers, and exactly that call runs once."""

from __future__ import annotations

import http.client
import json
import re
import signal
from urllib.parse import urlencode

import pytest

from daemon.pasture import wait_for
from daemon.test_daemon_notifies import MakePasture, follows
from nightherd.model.inbox.item import InboxQuery
from nightherd.model.jobs.job import JobStatus
from nightherd.wiring.stores import open_reader
from runtimes.notify.loopback import loopback
from surfaces.drivers import submit_pending
from web.web_world import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FLEET = """\
web: {{enabled: true, port: {port}, public_url: "http://fleet.example"}}
notify:
  - {{name: phone, url_env: PHONE_URL, approver: alice, allow_hosts: [127.0.0.1]}}
agents:
  - name: pusher
    runtime: scripted
    default_prompt: go
    permission_mode: bypassPermissions
    approvals: [{{tool: "Bash(echo:*)", approvers: [alice]}}]
    script:
      - tool: Bash
        input: {{command: echo pushed >> pushed}}
      - say: done
"""


def ask(port: int, method: str, path: str, body: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"host": "fleet.example"}
    if body is not None:
        headers["content-type"] = "application/x-www-form-urlencoded"
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    try:
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_message_of_the_daemon_has_a_link_that_answers(make_pasture: MakePasture) -> None:
    port = free_port()
    with loopback() as phone:
        pasture = make_pasture(FLEET.format(port=port))
        trial = pasture.daemon(environ={"PHONE_URL": phone.url()})
        wait_for(lambda: follows(pasture, "phone"), "the target is known")
        job_id = submit_pending(pasture.folder, "pusher")
        wait_for(lambda: bool(phone.bodies), "the message")
        text = json.loads(phone.bodies[0])["message"]
        found = re.search(r"http://fleet.example(/answer/[a-z0-9]+)", text)
        assert found is not None, text

        looked = [ask(port, "GET", found[1]) for _ in range(3)]
        assert not (pasture.folder / "pushed").exists()
        seen = re.search(r'name="seen" value="([0-9a-f]+)"', looked[0][1])
        assert seen is not None
        fields = urlencode({"seen": seen[1], "verdict": "approve"})
        pressed = [ask(port, "POST", found[1], fields)[0] for _ in range(3)]

        reader = open_reader(pasture.state)
        wait_for(
            lambda: (
                (job := reader.find_job(job_id)) is not None and job.status is JobStatus.COMPLETED
            ),
            "the job continues",
        )
        (item,) = reader.list_items(InboxQuery(is_pending=False))
        reader.close()
        trial.send(signal.SIGTERM)
        assert trial.wait().status == 0

    assert [status for status, _ in looked] == [200, 200, 200]
    assert pressed == [200, 410, 410]
    assert (item.decided_by, item.decided_via) == ("alice", "link")
    assert (pasture.folder / "pushed").read_text() == "pushed\n"
    assert found[1].rpartition("/")[2] not in "".join(
        file.read_text(errors="replace") for file in (pasture.state / "logs").rglob("*.log*")
    )
