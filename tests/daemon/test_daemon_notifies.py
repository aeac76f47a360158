"""A daemon tells people what happens, takes over new targets when it reloads, and finishes before it leaves."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import pytest

from daemon.pasture import Pasture, wait_for
from daemon.test_reloading import rewrite
from nightherd.model.notifications.notification import NotificationQuery, NotificationStatus
from nightherd.wiring.stores import open_reader
from runtimes.notify.loopback import Loopback, loopback
from surfaces.drivers import submit_pending

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MakePasture = Callable[..., Pasture]
AGENTS = """\
agents:
  - name: calm
    runtime: scripted
    default_prompt: go
    script: [{say: done}]
"""


def fleet(*targets: str, timeout: str = "30s") -> str:
    entries = [
        f"  - {{name: {name}, url_env: {name.upper()}_URL, events: [completed], allow_hosts: [127.0.0.1], timeout: {timeout}}}\n"
        for name in targets
    ]
    return f"reload: auto\nnotify:\n{''.join(entries)}{AGENTS}"


def titles(server: Loopback) -> list[str]:
    return [json.loads(body)["title"] for body in server.bodies]


def statuses(pasture: Pasture) -> list[NotificationStatus]:
    reader = open_reader(pasture.state)
    try:
        return [one.status for one in reader.list_notifications(NotificationQuery())]
    finally:
        reader.close()


def follows(pasture: Pasture, *targets: str) -> bool:
    reader = open_reader(pasture.state)
    try:
        return {one.id for one in reader.list_notify_targets() if one.is_active} == {*targets}
    finally:
        reader.close()


def test_daemon_tells_takes_over_targets_and_finishes_before_it_leaves(
    make_pasture: MakePasture,
) -> None:
    with loopback() as phone, loopback() as mail:
        pasture = make_pasture(fleet("phone"))
        environ = {"PHONE_URL": phone.url(), "MAIL_URL": mail.url()}
        trial = pasture.daemon(environ=environ)
        wait_for(lambda: follows(pasture, "phone"), "the target is known")
        submit_pending(pasture.folder, "calm")
        wait_for(lambda: titles(phone) == ["calm completed: done"], "the first message")

        rewrite(pasture, trial, fleet("phone", "mail"))
        wait_for(lambda: follows(pasture, "phone", "mail"), "the new target is known")
        submit_pending(pasture.folder, "calm")
        wait_for(lambda: len(titles(phone)) == 2 and len(titles(mail)) == 1, "both are told")

        last = submit_pending(pasture.folder, "calm")
        pasture.wait_until_said(trial, f"ended {last}")
        trial.send(signal.SIGTERM)
        assert trial.wait().status == 0
        assert (len(titles(phone)), len(titles(mail))) == (3, 2)
        assert set(statuses(pasture)) == {NotificationStatus.SENT}


def test_a_message_on_its_way_when_the_daemon_is_killed_is_sent_by_the_next(
    make_pasture: MakePasture,
) -> None:
    with loopback() as phone:
        pasture = make_pasture(fleet("phone", timeout="3s"))
        environ = {"PHONE_URL": phone.url()}
        trial = pasture.daemon(environ=environ, claim_margin_s=0)
        wait_for(lambda: follows(pasture, "phone"), "the target is known")
        phone.hangs = True
        submit_pending(pasture.folder, "calm")
        assert phone.asked.wait(90)
        trial.send(signal.SIGKILL)
        trial.wait()
        assert statuses(pasture) == [NotificationStatus.SENDING]

        phone.hangs = False
        again = pasture.daemon(environ=environ)
        wait_for(lambda: statuses(pasture) == [NotificationStatus.SENT], "the claim has passed")
        again.send(signal.SIGTERM)
        assert again.wait().status == 0
        assert len(titles(phone)) >= 2, "at least once"
        assert set(titles(phone)) == {"calm completed: done"}
