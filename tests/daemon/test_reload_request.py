"""`POST /v1/reload` to a real daemon: what its files say is in effect, or it says why not."""

from __future__ import annotations

import signal
from collections.abc import Callable

from daemon.pasture import QUIET, Pasture, wait_for
from daemon.test_reloading import ask

MakePasture = Callable[..., Pasture]
WIDER = QUIET.replace("reload: auto", "reload: ask")


def names(pasture: Pasture) -> list[str]:
    """The agents as they are declared; none while one server takes the place of another."""
    try:
        agents = ask(pasture, "GET", "/v1/agents")["data"]
    except OSError:
        return []
    return [one["name"] for one in agents if one["is_declared"]]


def test_daemon_reloads_on_request_and_answers_with_what_is_in_effect(
    make_pasture: MakePasture,
) -> None:
    pasture = make_pasture(QUIET)
    trial = pasture.daemon()
    before = ask(pasture, "GET", "/v1/status")["data"]["daemon"]

    same = ask(pasture, "POST", "/v1/reload", b"{}")
    pasture.rewrite("agents: [")
    broken = ask(pasture, "POST", "/v1/reload", b"{}")
    after_error = ask(pasture, "GET", "/v1/config")["data"]
    # Another lease takes another worker, and another server.
    pasture.rewrite(QUIET.replace("lease: 5s", "lease: 6s").replace("calm", "brisk"))
    changed = ask(pasture, "POST", "/v1/reload", b"{}")
    wait_for(lambda: names(pasture) == ["brisk"], "the new server")
    trial.send(signal.SIGTERM)
    trial.wait()

    assert same["data"]["pid"] == before["pid"]
    assert same["data"]["loaded_at"] > before["loaded_at"]
    assert (broken["status"], broken["code"]) == (422, "config_invalid")
    assert "nightherd.yaml:1:1" in broken["problems"][0]["message"]
    assert (after_error["is_valid"], len(after_error["problems"])) == (False, 1)
    assert changed["data"]["config_error"] is None
    assert changed["data"]["loaded_at"] > same["data"]["loaded_at"]


def test_what_gives_agents_more_waits_in_the_inbox_after_a_reload(
    make_pasture: MakePasture,
) -> None:
    pasture = make_pasture(WIDER)
    trial = pasture.daemon()

    pasture.rewrite(WIDER.replace("    allowed_tools: [Bash]", "    allowed_tools: [Bash, Write]"))
    row = ask(pasture, "POST", "/v1/reload", b"{}")["data"]
    accepted = ask(pasture, "GET", "/v1/config")["data"]["accepted"]
    item = ask(pasture, "GET", f"/v1/inbox/{accepted['item_id']}")["data"]
    trial.send(signal.SIGTERM)
    trial.wait()

    assert len(row["pending"]) == 1
    assert accepted["pending"] == row["pending"]
    assert (item["kind"], item["status"]) == ("reload", "pending")
