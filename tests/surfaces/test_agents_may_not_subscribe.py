"""No process that an agent started can have what people are told sent to an address of its own, whichever way it asks."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

from nightherd.daemon.record import find_daemon
from nightherd.wiring.stores import open_reader
from runtimes.notify.push_service import Browser
from surfaces.drivers import Cli, Shell
from surfaces.test_agents_may_not_answer import ASK
from surfaces.test_agents_may_not_widen import BARE, NIGHTHERD
from web.web_world import free_port

PATH = "/v1/push/subscriptions"
FLEET = """\
web: {enabled: true, port: PORT}
agents:
  - name: shell
    runtime: scripted
    permission_mode: bypassPermissions
    script: [{tool: Bash, input: {command: "${prompt}"}}, {say: done}]
"""


def body() -> str:
    browser = Browser()
    keys = {"p256dh": browser.p256dh, "auth": browser.auth}
    said = {"endpoint": "https://push.example/x", "keys": keys, "label": "x", "topics": ["inbox"]}
    return json.dumps(said)


def test_an_agent_can_neither_subscribe_nor_try_a_device(
    cli: Cli, shell: Shell, fleet: Path
) -> None:
    (fleet / "nightherd.yaml").write_text(FLEET.replace("PORT", str(free_port())))
    (fleet / "ask.py").write_text(ASK)
    (fleet / "body.json").write_text(body())
    assert shell.run("start", "--detach").code == 0
    record = find_daemon(fleet / ".nightherd")
    assert record is not None
    try:
        mine = shell.run("api", "POST", PATH, "-d", body())
        device = json.loads(mine.out)["data"]["id"]
        lines = [f'{BARE} {NIGHTHERD} api POST {PATH} -d "$(cat body.json)"']
        for where in ("socket", *map(str, record.ports)):
            ask = f"{BARE} {sys.executable} ask.py {where}"
            lines += [f'{ask} {PATH} "$(cat body.json)"', f"{ask} {PATH}/{device}/test '{{}}'"]
        cli("run", "shell", "-p", f"({'; '.join(lines)}) > said 2>&1")
    finally:
        shell.run("stop")

    said = (fleet / "said").read_text()
    for what in ("subscribe a device", "send a push"):
        refusal = f"only a person may {what}, and an agent sent the request"
        assert said.count(refusal) == (3 if what == "subscribe a device" else 2), said
    with closing(open_reader(fleet / ".nightherd")) as reader:
        assert [one.id for one in reader.active_push_subscriptions()] == [device]
