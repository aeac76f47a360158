"""`state.yaml` of a fleet that runs: every field of it is there and true, also after the fleet was killed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from daemon.pasture import QUIET, Pasture, wait_for
from daemon.test_daemon_process import began, hand_in
from nightherd.views.jobs.jobs import timestamp
from nightherd.wiring.stores import open_reader

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FLEET = f"""\
{QUIET}\
  - name: done
    runtime: scripted
    default_prompt: go
    schedules:
      never: {{cron: "0 0 1 1 *", enabled: false}}
    script: [{{say: done}}]
  - name: bad
    runtime: scripted
    default_prompt: go
    script: [{{fail: {{code: bad, message: No luck.}}}}]
"""
AGENT = {
    "status",
    "current_job",
    "last_job",
    "next_schedule",
    "next_trigger_at",
    "container_id",
    "error_message",
    "schedules",
}
SCHEDULE = {"status", "last_run_at", "next_run_at", "last_error"}


def mirrored(pasture: Pasture) -> dict[str, Any]:
    found = yaml.safe_load((pasture.state / "state.yaml").read_text())
    assert isinstance(found, dict)
    return found


def of(pasture: Pasture, agent: str, *names: str) -> tuple[Any, ...]:
    state = mirrored(pasture)["agents"].get(agent, {})
    return tuple(state.get(name) for name in names)


def test_every_field_is_there_and_true(make_pasture: Callable[..., Pasture]) -> None:
    pasture = make_pasture(FLEET)
    first = pasture.daemon()
    done, bad = hand_in(pasture, "done"), hand_in(pasture, "bad")
    running = hand_in(pasture, "calm")
    wait_for(lambda: began(pasture), "the job that runs")
    wait_for(
        lambda: (
            of(pasture, "calm", "status", "current_job") == ("running", running)
            and of(pasture, "done", "status", "last_job") == ("idle", done)
            and of(pasture, "bad", "status", "last_job") == ("error", bad)
        ),
        "the mirror",
    )

    state = mirrored(pasture)
    reader = open_reader(pasture.state)
    (planned,) = reader.list_schedules("calm")
    reader.close()
    first.send(signal.SIGKILL)
    first.wait()
    (pasture.folder / "go").touch()
    second = pasture.daemon()
    wait_for(
        lambda: of(pasture, "calm", "status", "last_job") == ("idle", running),
        "the end of the job that was lost",
    )
    later = mirrored(pasture)
    second.send(signal.SIGTERM)
    second.wait()

    assert set(state) == {"fleet", "agents"}
    assert set(state["agents"]) == {"calm", "done", "bad"}
    for agent in state["agents"].values():
        assert set(agent) == AGENT
        for schedule in agent["schedules"].values():
            assert set(schedule) == SCHEDULE
    due = timestamp(planned.next_run_at)
    calm = state["agents"]["calm"]
    assert (calm["next_schedule"], calm["next_trigger_at"]) == ("yearly", due)
    assert calm["schedules"]["yearly"]["next_run_at"] == due
    assert state["agents"]["done"]["schedules"]["never"]["status"] == "disabled"
    assert state["agents"]["done"]["next_trigger_at"] is None
    assert state["agents"]["bad"]["error_message"] == "No luck."
    assert state["fleet"]["started_at"] < later["fleet"]["started_at"]
    assert later["agents"]["calm"]["current_job"] is None
